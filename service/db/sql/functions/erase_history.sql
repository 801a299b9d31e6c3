-- Deletes at most `batch_size` rows of the workspace's history, recorded until `until`; returns how many.
CREATE OR REPLACE FUNCTION erase_history(until timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    -- a SECURITY DEFINER function reads past the policy, so the workspace is a condition here
    DELETE FROM memory_history h USING (
        SELECT workspace_id, recorded_at, id FROM memory_history
        WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND recorded_at <= until
        LIMIT batch_size
    ) old
    WHERE h.workspace_id = old.workspace_id AND h.recorded_at = old.recorded_at AND h.id = old.id;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

REVOKE EXECUTE ON FUNCTION erase_history(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_history(timestamptz, integer) TO loxodon_app;
