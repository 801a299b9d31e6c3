-- Drops the partitions of a log that end at or before `older_than`; returns how many. Only for logs listed in
-- partitioned_table.
CREATE OR REPLACE FUNCTION drop_partitions(parent_name text, older_than timestamptz)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '2s'
SET TimeZone = 'UTC'
AS $$
DECLARE
    log partitioned_table%ROWTYPE;
    child name;
    ends_at timestamptz;
    dropped integer := 0;
BEGIN
    SELECT * INTO STRICT log FROM partitioned_table WHERE name = parent_name;
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = log.name::regclass AND c.relname ~ ('^' || log.name || '_[0-9]+$')
    LOOP
        ends_at := to_timestamp(right(child, CASE log.step WHEN 'day' THEN 8 ELSE 6 END),
                                CASE log.step WHEN 'day' THEN 'YYYYMMDD' ELSE 'YYYYMM' END)
                + ('1 ' || log.step)::interval;
        IF ends_at <= older_than THEN
            EXECUTE format('DROP TABLE %I', child);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;

GRANT EXECUTE ON FUNCTION drop_partitions TO loxodon_worker;
