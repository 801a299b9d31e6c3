-- Ids of up to `candidate_limit` memories of a scope, newest first, that have a tag with one of the prefixes, read from
-- the GIN index over filter keys; `scan_limit` limits the rows read. Row-level security does not apply inside, as in
-- lexical_ids().
CREATE OR REPLACE FUNCTION tag_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    prefixes text[],
    scan_limit integer,
    candidate_limit integer,
    match_any boolean DEFAULT false,
    with_shared boolean DEFAULT false
)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    prefix_keys integer[] := memory_filter_keys(this_workspace, prefixes, '{}', '{}', '{}', '{}', false);
BEGIN
    RETURN QUERY
    WITH candidates AS MATERIALIZED (
        SELECT m.workspace_id, m.id, m.created_at FROM memory m
        WHERE memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && prefix_keys
          AND m.tag_prefixes && prefixes
          AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
          AND (of_channels IS NULL OR m.channel = ANY (of_channels))
        LIMIT scan_limit
    )
    SELECT c.id FROM candidates c WHERE c.workspace_id = this_workspace
    ORDER BY c.created_at DESC, c.id LIMIT candidate_limit;
END $$;

GRANT EXECUTE ON FUNCTION tag_ids TO loxodon_app, loxodon_walled;
