-- How many memories the scope has, counted up to `most` + 1. Called by narrow_ids() alone.
CREATE OR REPLACE FUNCTION scope_rows(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    most integer
)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
BEGIN
    RETURN (SELECT count(*) FROM (
        SELECT FROM memory m WHERE m.workspace_id = here
            AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
            AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
        LIMIT most + 1
    ) few);
END $$;

REVOKE EXECUTE ON FUNCTION scope_rows(text, text, text, text[], integer) FROM PUBLIC;
