-- Webhooks of all workspaces, at most `most`, with settled changes after their place in the feed.
CREATE OR REPLACE FUNCTION find_webhooks(most integer)
RETURNS TABLE (workspace_id uuid, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, w.id FROM webhook w
    WHERE w.enabled AND (
        EXISTS (SELECT FROM memory_history h
                WHERE h.workspace_id = w.workspace_id AND (h.position, h.seq) > (w.position, w.seq)
                  AND h.position < pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
        OR EXISTS (SELECT FROM erased_memory e
                   WHERE e.workspace_id = w.workspace_id AND (e.position, e.seq) > (w.position, w.seq)
                     AND e.position < pg_snapshot_xmin(pg_current_snapshot())::text::bigint))
    LIMIT most
$$;

GRANT EXECUTE ON FUNCTION find_webhooks TO loxodon_worker;
