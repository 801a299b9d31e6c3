-- Counts of the last run of each job, summed over all workspaces; and for `consolidate`, as lag_s, the longest time
-- from a turn to its facts among those stored in the last hour.
CREATE OR REPLACE FUNCTION measure_upkeep()
RETURNS TABLE (kind varchar, what text, items double precision)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT names.name, counted.key, sum(counted.value::double precision)
    FROM workspace w CROSS JOIN (SELECT name FROM schedule) names CROSS JOIN LATERAL (
        SELECT j.counts FROM job j
        WHERE j.workspace_id = w.workspace_id AND j.kind = names.name AND j.reason IS NOT NULL AND j.state = 'done'
        ORDER BY j.created_at DESC LIMIT 1) last
    JOIN LATERAL jsonb_each_text(last.counts) counted ON counted.key <> 'examples_until'  -- a moment
    GROUP BY names.name, counted.key
    UNION ALL
    SELECT 'consolidate', 'lag_s', max(extract(epoch FROM j.finished_at - t.created_at))::double precision
    FROM job j JOIN turn t ON t.workspace_id = j.workspace_id AND t.turn_index = (j.payload ->> 'last')::integer
        AND t.conversation_id = (j.payload ->> 'conversation_id')::uuid
    WHERE j.finished_at > now() - interval '1 hour' AND j.kind = 'consolidate' AND j.state = 'done'
      AND j.payload ? 'conversation_id'
$$;

GRANT EXECUTE ON FUNCTION measure_upkeep TO loxodon_app;
