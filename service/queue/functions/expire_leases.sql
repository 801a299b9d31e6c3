-- Gives back jobs whose lease has ended. The attempt was counted when the job was claimed, so a job that kills its
-- worker every time ends up dead.
CREATE OR REPLACE FUNCTION expire_leases()
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    WITH lost AS (
        SELECT j.workspace_id, j.id FROM job j WHERE j.state = 'running' AND j.lease_until < now()
        ORDER BY j.lease_until LIMIT 500 FOR UPDATE SKIP LOCKED
    )
    UPDATE job j SET
        state = CASE WHEN j.attempts >= j.max_attempts THEN 'dead' ELSE 'ready' END,
        finished_at = CASE WHEN j.attempts >= j.max_attempts THEN now() END,
        run_after = now(), worker = NULL, lease_until = NULL,
        last_error = 'the lease of attempt ' || j.attempts || ' ran out: its worker stopped or lost the database'
    FROM lost WHERE j.workspace_id = lost.workspace_id AND j.id = lost.id
$$;
