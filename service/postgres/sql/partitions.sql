-- Partitions: vectors by a hash of the workspace, logs by the day or month of recording.
-- docs/decisions/009-partitions.md
--
-- A policy on the parent does not protect a partition that is read by its own name, so each is protected when it is
-- created. `:partitions` is the number of hash partitions, chosen once for a database.

CREATE TABLE partitioned_table (
    name text CONSTRAINT pk_partitioned_table PRIMARY KEY,
    step text NOT NULL CONSTRAINT ck_partitioned_table_step CHECK (step IN ('day', 'month'))
);
INSERT INTO partitioned_table (name, step) VALUES
    ('memory_history', 'month'), ('audit_log', 'day'), ('conversation_log', 'month'), ('tool_invocation', 'month');

SELECT set_config('loxodon.vector_partitions', (:partitions)::text, true);
DO $$
DECLARE
    parent text;
    child text;
    modulus constant integer := current_setting('loxodon.vector_partitions');
BEGIN
    FOREACH parent IN ARRAY ARRAY['memory_vector', 'turn_vector'] LOOP
        FOR remainder IN 0 .. modulus - 1 LOOP
            child := parent || '_p' || remainder;
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                           child, parent, modulus, remainder);
            EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STORAGE MAIN', child);
            PERFORM protect(child::regclass);
        END LOOP;
    END LOOP;
    FOR parent IN SELECT name FROM partitioned_table ORDER BY name LOOP
        child := parent || '_default';
        EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', child, parent);
        PERFORM protect(child::regclass);
    END LOOP;
END $$;
SELECT ensure_partitions(now() + interval '7 days');
