-- Adds a use to the totals of its tool. The totals belong to the workspace: a key made for one user adds to them but
-- cannot read them. The average is a running mean (Welford's update), so that no sum grows without bound.
CREATE OR REPLACE FUNCTION count_tool_use(used_tool text, succeeded boolean, took_ms double precision, at timestamptz)
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    INSERT INTO tool AS t (workspace_id, name, usage_count, success_count, timed_count, avg_latency_ms, last_used_at)
    VALUES (current_setting('loxodon.workspace')::uuid, used_tool, 1, succeeded::integer, (took_ms IS NOT NULL)::integer,
            took_ms, at)
    ON CONFLICT (workspace_id, name) DO UPDATE SET
        usage_count = t.usage_count + 1,
        success_count = t.success_count + excluded.success_count,
        timed_count = t.timed_count + excluded.timed_count,
        avg_latency_ms = CASE WHEN excluded.avg_latency_ms IS NULL THEN t.avg_latency_ms ELSE
            coalesce(t.avg_latency_ms, 0)
            + (excluded.avg_latency_ms - coalesce(t.avg_latency_ms, 0)) / (t.timed_count + 1) END,
        last_used_at = greatest(t.last_used_at, excluded.last_used_at)
$$;

REVOKE EXECUTE ON FUNCTION count_tool_use(text, boolean, double precision, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION count_tool_use(text, boolean, double precision, timestamptz) TO loxodon_app;
