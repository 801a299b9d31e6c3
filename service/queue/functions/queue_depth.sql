-- How many jobs of all workspaces are due, up to 10,000.
CREATE OR REPLACE FUNCTION queue_depth()
RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    -- counting stops at 10,000: a health check must stay cheap when the queue is long
    SELECT count(*)::integer FROM (SELECT 1 FROM job WHERE state = 'ready' AND run_after <= now() LIMIT 10000) due
$$;

REVOKE EXECUTE ON FUNCTION queue_depth() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION queue_depth() TO loxodon_app;
