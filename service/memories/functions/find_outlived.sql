-- Memories of all workspaces that have expired at `at` or are older than the retention of their workspace: the lower of
-- memory_retention_days in its settings and `retention_days`, or what an operator has granted instead of the latter;
-- NULL keeps memories for ever.
CREATE OR REPLACE FUNCTION find_outlived(at timestamptz, retention_days integer, max_rows integer)
RETURNS TABLE (workspace_id uuid, memory_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
    -- Materialized, so that memories are looked up for these workspaces: for a join they would all be read. Citus takes
    -- no LIMIT for each of them.
    WITH kept AS MATERIALIZED (
        SELECT w.workspace_id, least((w.settings ->> 'memory_retention_days')::numeric,
            CASE WHEN w.settings -> 'granted' ? 'memory_retention_days'
            THEN (w.settings #>> '{granted,memory_retention_days}')::numeric ELSE retention_days END) AS days
        FROM workspace w
    )
    (SELECT m.workspace_id, m.id FROM memory m WHERE m.expires_at <= at LIMIT max_rows)
    UNION
    (SELECT m.workspace_id, m.id
     FROM kept JOIN memory m ON m.workspace_id = kept.workspace_id
          AND m.created_at < at - make_interval(days => least(kept.days, 36500)::integer)  -- a date, whatever is stored
     WHERE kept.days IS NOT NULL LIMIT max_rows)
    LIMIT max_rows
$$;

GRANT EXECUTE ON FUNCTION find_outlived TO loxodon_worker;
