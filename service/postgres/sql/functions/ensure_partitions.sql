-- Creates the partitions of all logs from now until `upto`, and of every day or month with rows in the DEFAULT
-- partition, from which retention would never drop them. Returns how many were created. Safe to repeat.
CREATE OR REPLACE FUNCTION ensure_partitions(upto timestamptz)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET TimeZone = 'UTC'
AS $$
DECLARE
    parent partitioned_table%ROWTYPE;
    starts_at timestamptz;
    ends_at timestamptz;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('loxodon:partitions', 0));
    FOR parent IN SELECT * FROM partitioned_table ORDER BY name LOOP
        FOR starts_at IN EXECUTE format(
            'SELECT date_trunc(%1$L, recorded_at) FROM %2$I UNION '
            'SELECT generate_series(date_trunc(%1$L, now()), $1, %3$L::interval) ORDER BY 1',
            parent.step, parent.name || '_default', '1 ' || parent.step) USING upto
        LOOP
            ends_at := starts_at + ('1 ' || parent.step)::interval;
            IF make_partition(parent.name, starts_at, ends_at,
                              to_char(starts_at, CASE parent.step WHEN 'day' THEN 'YYYYMMDD' ELSE 'YYYYMM' END)) THEN
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

GRANT EXECUTE ON FUNCTION ensure_partitions TO loxodon_worker;
