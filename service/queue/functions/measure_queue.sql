-- The queue of all workspaces by kind: the number of due, running and dead jobs, and for how many seconds the oldest
-- has been in that state.
CREATE OR REPLACE FUNCTION measure_queue()
RETURNS TABLE (kind varchar, state varchar, jobs bigint, oldest_s double precision)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    -- counting stops at 100,000 due jobs, because monitors ask every few seconds even if the queue is long
    SELECT j.kind, 'due', count(*), extract(epoch FROM now() - min(j.run_after))::double precision
    FROM (SELECT kind, run_after FROM job WHERE state = 'ready' AND run_after <= now() LIMIT 100000) j
    GROUP BY j.kind
    UNION ALL
    SELECT j.kind, j.state, count(*), extract(epoch FROM now() - min(coalesce(j.finished_at, j.started_at, j.run_after)))
    FROM job j WHERE j.state = 'running' OR j.state = 'dead' GROUP BY j.kind, j.state
$$;

GRANT EXECUTE ON FUNCTION measure_queue TO loxodon_app;
