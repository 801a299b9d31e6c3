-- Deletes at most `batch_size` rows of the workspace's conversation log, recorded until `until`; returns how many.
CREATE OR REPLACE FUNCTION erase_conversation_log(until timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    DELETE FROM conversation_log l USING (
        SELECT workspace_id, recorded_at, id FROM conversation_log
        WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND recorded_at <= until
        LIMIT batch_size
    ) old
    WHERE l.workspace_id = old.workspace_id AND l.recorded_at = old.recorded_at AND l.id = old.id;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

REVOKE EXECUTE ON FUNCTION erase_conversation_log(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_conversation_log(timestamptz, integer) TO loxodon_app;
