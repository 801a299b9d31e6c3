-- Ids of the scope's memories with filter keys; for narrow_ids(), with its parameters. NULL if more than `scan_limit`
-- rows have the keys, or more than `max_ids` of these are in the scope. `by_scope`: indexes of the scope may be used as
-- well, and `scan_limit` counts only rows of the scope.
--
-- Planned for its values, so that the planner drops absent conditions. Only bitmap scans are allowed: computing the
-- filter keys of rows one by one is slower than anything else. work_mem: if the bitmap did not fit, the keys of whole
-- pages would be computed again.
CREATE OR REPLACE FUNCTION ids_with_keys(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    since timestamptz,
    until timestamptz,
    all_of integer[],
    any_of_1 integer[],
    any_of_2 integer[],
    scan_limit integer,
    max_ids integer,
    match_any boolean,
    with_shared boolean,
    by_scope boolean
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
    rows_scanned bigint;
    ids uuid[];
BEGIN
    WITH candidates AS MATERIALIZED (
        SELECT m.id, here.in_scope
        FROM memory m
        CROSS JOIN LATERAL (SELECT memory_filter_keys(
            m.workspace_id, m.tags, m.tag_prefixes, m.categories,
            ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                  'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
            m.metadata, true) AS keys) carried
        CROSS JOIN LATERAL (SELECT m.workspace_id = this_workspace
            AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
            AND (of_channels IS NULL OR m.channel = ANY (of_channels))
            AND (since IS NULL OR m."timestamp" >= since)
            AND (until IS NULL OR m."timestamp" <= until) AS in_scope) here
        WHERE (all_of = '{}' OR carried.keys @> all_of)
          AND (any_of_1 = '{}' OR carried.keys && any_of_1)
          AND (any_of_2 = '{}' OR carried.keys && any_of_2)
          AND (NOT by_scope OR here.in_scope)
        LIMIT scan_limit + 1
    )
    SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
    FROM candidates c;
    RETURN CASE WHEN rows_scanned <= scan_limit AND cardinality(ids) <= max_ids THEN ids END;
END $$;
