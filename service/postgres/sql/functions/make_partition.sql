-- Creates one partition of a log for [starts_at, ends_at): built separately, filled from DEFAULT, then attached. False
-- if it exists already. The lock on the parent is short; inserts wait for at most lock_timeout.
CREATE OR REPLACE FUNCTION make_partition(
    parent text,
    starts_at timestamptz,
    ends_at timestamptz,
    suffix text
)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '2s'
AS $$
DECLARE
    child text := parent || '_' || suffix;
BEGIN
    IF to_regclass(child) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)',
                   child, parent);
    EXECUTE (SELECT format('ALTER TABLE %I OWNER TO %s', child, relowner::regrole)
             FROM pg_class WHERE oid = parent::regclass);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN workspace_id SET (n_distinct = 10)', child);
    EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', parent);
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
    EXECUTE format('WITH moved AS (DELETE FROM %I WHERE recorded_at >= %L AND recorded_at < %L RETURNING *) '
                   'INSERT INTO %I SELECT * FROM moved', parent || '_default', starts_at, ends_at, child);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   parent, child, starts_at, ends_at);
    EXECUTE format('SELECT protect(%L)', child);
    RETURN true;
END $$;
