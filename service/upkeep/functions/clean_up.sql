-- Deletes at most `batch_size` rows per table that have expired at time `at`; returns the rows removed by table. With
-- SKIP LOCKED and the limit, upkeep never waits for a request, and requests wait for it only briefly.
CREATE OR REPLACE FUNCTION clean_up(
    at timestamptz,
    job_days integer,
    embedding_days integer,
    history_days integer,
    batch_size integer
)
RETURNS TABLE (name text, removed bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    target record;
BEGIN
    FOR target IN SELECT * FROM (VALUES
        ('idempotency', 'expires_at', at),
        ('llm_cache', 'expires_at', at),
        ('embedding_cache', 'created_at', at - make_interval(days => embedding_days)),
        ('erased_memory', 'erased_at', at - make_interval(days => history_days)),
        ('model_day', 'day', at - interval '400 days'),
        ('operation', 'finished_at', at - make_interval(days => job_days)),
        ('webhook_delivery', 'finished_at', at - make_interval(days => job_days)),
        ('job', 'finished_at', at - make_interval(days => job_days))
    ) AS old (relation, since, before) LOOP
        name := target.relation;
        EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY('
                       'SELECT ctid FROM %1$I WHERE %2$I < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))',
                       target.relation, target.since)
        USING target.before, batch_size;
        GET DIAGNOSTICS removed = ROW_COUNT;
        RETURN NEXT;
    END LOOP;
END $$;

GRANT EXECUTE ON FUNCTION clean_up TO loxodon_worker;
