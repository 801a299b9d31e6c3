-- Deletes at most `batch_size` working items of all workspaces that have expired at time `at`; returns how many. With
-- SKIP LOCKED and the limit, neither the sweeper nor requests wait for each other.
CREATE OR REPLACE FUNCTION sweep_working(at timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    DELETE FROM working_item WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM working_item WHERE expires_at <= at ORDER BY expires_at
        LIMIT batch_size FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

GRANT EXECUTE ON FUNCTION sweep_working TO loxodon_worker;
