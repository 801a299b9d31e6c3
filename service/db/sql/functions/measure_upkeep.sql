-- What the last `decay` of every workspace did, added up, and as `consolidation_lag_s` the longest time from a turn to its facts among
-- those that were kept in the last hour.
CREATE OR REPLACE FUNCTION measure_upkeep()
RETURNS TABLE (what text, items double precision)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT counted.key, sum(counted.value::double precision)
    FROM workspace w CROSS JOIN LATERAL (
        SELECT r.counts FROM job_run r
        WHERE r.workspace_id = w.workspace_id AND r.name = 'decay' AND r.state = 'done'
        ORDER BY r.created_at DESC LIMIT 1) last
    CROSS JOIN LATERAL jsonb_each_text(last.counts) counted
    GROUP BY counted.key
    UNION ALL
    SELECT 'consolidation_lag_s', max(extract(epoch FROM j.finished_at - t.created_at))::double precision
    FROM job j JOIN turn t ON t.workspace_id = j.workspace_id AND t.turn_index = (j.payload ->> 'last')::integer
        AND t.conversation_id = (j.payload ->> 'conversation_id')::uuid
    WHERE j.finished_at > now() - interval '1 hour' AND j.kind = 'consolidate' AND j.state = 'done'
      AND j.payload ? 'conversation_id'
$$;

REVOKE EXECUTE ON FUNCTION measure_upkeep() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION measure_upkeep() TO loxodon_app;
