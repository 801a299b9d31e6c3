-- Ids of the scope's memories that meet the filter keys, with the parameters of narrow_ids(), its only caller; NULL when
-- there are more than `max_ids`. Planned for its values, so that the planner drops conditions that are not given. Only
-- bitmaps of scope and keys are allowed: computing the filter keys of a scope's rows one by one is slower than any other
-- way.
CREATE OR REPLACE FUNCTION narrow_scope_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    since timestamptz,
    until timestamptz,
    all_of integer[],
    any_of_1 integer[],
    any_of_2 integer[],
    max_ids integer,
    match_any boolean,
    with_shared boolean
)
RETURNS uuid[]
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_indexscan = off
SET enable_indexonlyscan = off
SET work_mem = '64MB'
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    ids uuid[];
BEGIN
    ids := ARRAY(
        SELECT m.id FROM memory m
        WHERE m.workspace_id = this_workspace
          AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
          AND (of_channels IS NULL OR m.channel = ANY (of_channels))
          AND (since IS NULL OR m."timestamp" >= since)
          AND (until IS NULL OR m."timestamp" <= until)
          AND (all_of = '{}' OR memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) @> all_of)
          AND (any_of_1 = '{}' OR memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && any_of_1)
          AND (any_of_2 = '{}' OR memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && any_of_2)
        LIMIT max_ids + 1
    );
    RETURN CASE WHEN cardinality(ids) <= max_ids THEN ids END;
END $$;

REVOKE EXECUTE ON FUNCTION
    narrow_scope_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer,
                     boolean, boolean)
    FROM PUBLIC;
