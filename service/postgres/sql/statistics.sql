-- Generic plans are made without values and assume that every workspace is an average one. When a hundred thousand
-- small tenants shared a database with one of a million memories, reading a whole workspace looked cheaper than ten
-- rows by their keys. So ANALYZE is told that there are ten workspaces, however many there are. make_partition() does
-- the same for later partitions.
DO $$
DECLARE
    target text;
BEGIN
    FOR target IN
        SELECT c.oid::regclass::text FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN workspace_id SET (n_distinct = 10)', target);
        EXECUTE format('ANALYZE %s (workspace_id)', target);
    END LOOP;
END $$;
