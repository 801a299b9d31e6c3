-- How many jobs of all workspaces are dead, by kind.
CREATE OR REPLACE FUNCTION count_dead_jobs()
RETURNS TABLE (kind varchar, dead bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT j.kind, count(*) FROM job j WHERE j.state = 'dead' GROUP BY j.kind
$$;

REVOKE EXECUTE ON FUNCTION count_dead_jobs() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION count_dead_jobs() TO loxodon_app;
