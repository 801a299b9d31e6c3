-- Deletes at most `batch_size` rows per table that have expired at time `at`; returns the rows removed by table.
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
    ) AS old (relation, since, until) LOOP
        name := target.relation;
        removed := delete_due(target.relation, target.since, target.until, batch_size);
        RETURN NEXT;
    END LOOP;
END $$;

GRANT EXECUTE ON FUNCTION clean_up TO loxodon_worker;
