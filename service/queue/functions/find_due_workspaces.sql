-- Workspaces with memories or conversations in which the job of this name has not started within its interval: that of
-- their own settings, else `interval_min`; 0 switches the job off. `consolidate` only if there are unread turns.
CREATE OR REPLACE FUNCTION find_due_workspaces(job_name text, interval_min double precision)
RETURNS TABLE (workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id
    FROM workspace w CROSS JOIN LATERAL (
        SELECT coalesce((w.settings #>> ARRAY['job_intervals_min', job_name])::double precision, interval_min) AS minutes
    ) own
    WHERE own.minutes > 0
      AND has_work(w.workspace_id, job_name)
      -- a minute less, because a run may start a little early
      AND NOT EXISTS (SELECT FROM job j WHERE j.workspace_id = w.workspace_id AND j.kind = job_name
                      AND j.reason IS NOT NULL AND j.created_at > now() - make_interval(secs => 60 * (own.minutes - 1)))
    ORDER BY w.workspace_id
$$;

GRANT EXECUTE ON FUNCTION find_due_workspaces TO loxodon_worker;
