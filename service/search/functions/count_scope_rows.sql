-- The number of memories in a scope, counted up to `max_rows` + 1. Only for narrow_ids().
CREATE OR REPLACE FUNCTION count_scope_rows(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    max_rows integer,
    match_any boolean,
    with_shared boolean
)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
BEGIN
    RETURN (SELECT count(*) FROM (
        SELECT FROM memory m
        WHERE m.workspace_id = this_workspace
          AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
          AND (of_channels IS NULL OR m.channel = ANY (of_channels))
        LIMIT max_rows + 1
    ) counted);
END $$;
