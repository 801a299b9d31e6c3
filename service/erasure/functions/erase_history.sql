-- Deletes at most `batch_size` rows each of the workspace's history and conversation log, recorded until `until`; returns
-- how many. The change feed keeps the ids of memories.
CREATE OR REPLACE FUNCTION erase_history(until timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    -- a SECURITY DEFINER function bypasses the policies, so the workspace is a condition here
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    removed bigint;
    ended uuid[];
BEGIN
    WITH said AS (
        DELETE FROM conversation_log l USING (
            SELECT workspace_id, recorded_at, id FROM conversation_log
            WHERE workspace_id = this_workspace AND recorded_at <= until
            LIMIT batch_size
        ) old
        WHERE l.workspace_id = old.workspace_id AND l.recorded_at = old.recorded_at AND l.id = old.id
        RETURNING l.id
    ), erased AS (
        DELETE FROM memory_history h USING (
            SELECT workspace_id, recorded_at, id FROM memory_history
            WHERE workspace_id = this_workspace AND recorded_at <= until
            LIMIT batch_size
        ) old
        WHERE h.workspace_id = old.workspace_id AND h.recorded_at = old.recorded_at AND h.id = old.id
        RETURNING h.memory_id, h.recorded_to
    )
    SELECT (SELECT count(*) FROM said) + count(*), array_agg(memory_id) FILTER (WHERE recorded_to IS NULL)
    INTO removed, ended FROM erased;  -- the last entry of a memory is the open one
    INSERT INTO erased_memory (workspace_id, memory_id)
    SELECT this_workspace, id FROM unnest(ended) AS gone (id)
    WHERE NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = this_workspace AND m.id = gone.id);
    RETURN removed;
END $$;

GRANT EXECUTE ON FUNCTION erase_history TO loxodon_app;
