-- Replication lag: the number of standbys, the longest time and the most bytes of WAL that one of them has still to
-- replay, and the most WAL kept for a replication slot. Null: not visible to this role (docs/metrics.md), or none.
CREATE OR REPLACE FUNCTION measure_replication()
RETURNS TABLE (standbys bigint, lag_s double precision, lag_bytes bigint, slot_bytes bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    WITH here AS (
        SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END AS lsn
    )
    SELECT (SELECT count(*) FROM pg_stat_replication),
           (SELECT max(extract(epoch FROM coalesce(r.replay_lag, CASE WHEN r.state = 'streaming' THEN interval '0' END)))
            FROM pg_stat_replication r)::double precision,
           (SELECT max(pg_wal_lsn_diff(here.lsn, r.replay_lsn)) FROM pg_stat_replication r)::bigint,
           (SELECT max(pg_wal_lsn_diff(here.lsn, s.restart_lsn)) FROM pg_replication_slots s)::bigint
    FROM here
$$;

REVOKE EXECUTE ON FUNCTION measure_replication() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION measure_replication() TO loxodon_app;
