-- Ids of the scope's memories that meet the filter keys, as for narrow_ids(), from the bitmaps of scope and keys;
-- NULL when there are more than `reach`. Called by narrow_ids() alone. Planned for its values, so that what is not
-- given falls away. Working out the filter keys of a scope's rows one by one would take longer than anything else
-- could, so only bitmaps are allowed.
CREATE OR REPLACE FUNCTION scope_marked_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    of_since timestamptz,
    of_until timestamptz,
    all_of integer[],
    any_of integer[],
    also_of integer[],
    reach integer
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
    here uuid := current_setting('loxodon.workspace')::uuid;
    found uuid[];
BEGIN
    found := ARRAY(
        SELECT m.id FROM memory m WHERE m.workspace_id = here
            AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
            AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
            AND (of_since IS NULL OR m."timestamp" >= of_since) AND (of_until IS NULL OR m."timestamp" <= of_until)
            AND (all_of = '{}' OR memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) @> all_of)
            AND (any_of = '{}' OR memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) && any_of)
            AND (also_of = '{}' OR memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) && also_of)
        LIMIT reach + 1
    );
    RETURN CASE WHEN cardinality(found) <= reach THEN found END;
END $$;

REVOKE EXECUTE ON FUNCTION
    scope_marked_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer)
    FROM PUBLIC;
