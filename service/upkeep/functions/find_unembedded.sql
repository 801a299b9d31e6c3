-- Memories without a vector and without a job for it, unchanged for `untouched_for`. Each dead job doubles that wait,
-- so a text that the embedder refuses is not tried for ever.
CREATE OR REPLACE FUNCTION find_unembedded(untouched_for interval, max_rows integer)
RETURNS TABLE (workspace_id uuid, memory_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    -- Citus joins no table of its nodes with the queue, which is on the coordinator
    WITH unembedded AS MATERIALIZED (
        SELECT m.workspace_id, m.id FROM memory m
        WHERE m.embedding_status <> 'stored' AND m.updated_at < now() - untouched_for
    )
    SELECT m.workspace_id, m.id
    FROM unembedded m CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE j.state IN ('ready', 'running')) AS pending,
               count(*) FILTER (WHERE j.state = 'dead') AS deaths,
               max(j.finished_at) FILTER (WHERE j.state = 'dead') AS last_death
        FROM job j WHERE j.workspace_id = m.workspace_id AND j.memory_id = m.id AND j.kind = 'embed'
    ) tried
    WHERE tried.pending = 0 AND (tried.deaths = 0 OR tried.last_death < now() - untouched_for * power(2, least(tried.deaths, 10)))
    LIMIT max_rows
$$;

GRANT EXECUTE ON FUNCTION find_unembedded TO loxodon_worker;
