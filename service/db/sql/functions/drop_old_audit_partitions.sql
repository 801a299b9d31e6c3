-- Drops the days of audit that lie wholly beyond retention; returns how many.
CREATE OR REPLACE FUNCTION drop_old_audit_partitions(retention_days integer)
RETURNS integer
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT drop_partitions('audit_log', now() - make_interval(days => retention_days))
$$;

REVOKE EXECUTE ON FUNCTION drop_old_audit_partitions(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_old_audit_partitions(integer) TO loxodon_worker;
