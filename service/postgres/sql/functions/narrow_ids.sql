-- Ids of the scope's memories that meet three groups of filter keys and a span of time: all of `all_of`, one of
-- `any_of_1`, one of `any_of_2`; an empty group is no condition. NULL where an index does not make it cheap: more than
-- `max_ids` rows have the keys (or ten times as many before the span of time is applied).
--
-- What ANALYZE knows of frequent keys chooses between three ways:
--   1. only the most selective group, where it leaves few rows: comparing the hundreds of keys of a wide range with
--      each row costs more than reading the few rows of another group;
--   2. all groups together;
--   3. in a scope of at most 30,000 rows the bitmaps of scope and keys (narrow_scope_ids): a key in the index costs a
--      third of what a row of the table does. Ids are looked up twice, by the probe and by the search after it
--      (service/search/statements/prefilter.py).
--
-- Row-level security does not apply inside, as in lexical_ids(). work_mem: where the bitmap did not fit, the keys of
-- whole pages would be computed again.
CREATE OR REPLACE FUNCTION narrow_ids(
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
    match_any boolean DEFAULT false,
    with_shared boolean DEFAULT false
)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET work_mem = '64MB'
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    scan_limit integer := CASE WHEN since IS NULL AND until IS NULL THEN max_ids ELSE 10 * max_ids END;
    medium_scope constant integer := 30000;
    indexed_rows real := (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'ix_memory_filter_keys'::regclass);
    frequent_keys integer[];
    frequencies real[];
    share_all real;  -- of the rows, 0..1: how many have the keys of a group; NULL: the group is empty
    share_any_1 real;
    share_any_2 real;
    smallest_share real;
    scope_size bigint;
    rows_scanned bigint;
    ids uuid[];
BEGIN
    SELECT s.most_common_elems::text::integer[], s.most_common_elem_freqs INTO frequent_keys, frequencies
    FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = 'ix_memory_filter_keys';
    share_all := (SELECT min(coalesce(frequencies[array_position(frequent_keys, key)], 0)) FROM unnest(all_of) key);
    share_any_1 := (SELECT sum(coalesce(frequencies[array_position(frequent_keys, key)], 0)) FROM unnest(any_of_1) key);
    share_any_2 := (
        SELECT sum(coalesce(frequencies[array_position(frequent_keys, key)], 0)) FROM unnest(any_of_2) key);
    smallest_share := least(share_all, share_any_1, share_any_2);

    -- 1. The shares are known to a few hundredths, hence a quarter more than may be scanned.
    IF indexed_rows * smallest_share <= 1.25 * scan_limit THEN
        IF smallest_share = share_all THEN
            WITH candidates AS MATERIALIZED (
                SELECT m.id, m.workspace_id = this_workspace
                    AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (since IS NULL OR m."timestamp" >= since)
                    AND (until IS NULL OR m."timestamp" <= until) AS in_scope
                FROM memory m
                WHERE memory_filter_keys(
                    m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                    ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                          'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                    m.metadata, true) @> all_of
                LIMIT scan_limit + 1
            )
            SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
            FROM candidates c;
        ELSIF smallest_share = share_any_1 THEN
            WITH candidates AS MATERIALIZED (
                SELECT m.id, m.workspace_id = this_workspace
                    AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (since IS NULL OR m."timestamp" >= since)
                    AND (until IS NULL OR m."timestamp" <= until) AS in_scope
                FROM memory m
                WHERE memory_filter_keys(
                    m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                    ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                          'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                    m.metadata, true) && any_of_1
                LIMIT scan_limit + 1
            )
            SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
            FROM candidates c;
        ELSE
            WITH candidates AS MATERIALIZED (
                SELECT m.id, m.workspace_id = this_workspace
                    AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (since IS NULL OR m."timestamp" >= since)
                    AND (until IS NULL OR m."timestamp" <= until) AS in_scope
                FROM memory m
                WHERE memory_filter_keys(
                    m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                    ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                          'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                    m.metadata, true) && any_of_2
                LIMIT scan_limit + 1
            )
            SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
            FROM candidates c;
        END IF;
        IF rows_scanned <= scan_limit AND cardinality(ids) <= max_ids THEN
            RETURN ids;
        END IF;
    END IF;

    -- 2. An empty group is replaced by another group, so its condition is always true.
    IF num_nonnulls(share_all, share_any_1, share_any_2) > 1 AND indexed_rows * smallest_share <= 10 * scan_limit
            AND indexed_rows * coalesce(share_all, 1) * coalesce(share_any_1, 1) * coalesce(share_any_2, 1)
                <= 2 * scan_limit THEN
        WITH candidates AS MATERIALIZED (
            SELECT m.id, m.workspace_id = this_workspace
                AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                AND (since IS NULL OR m."timestamp" >= since)
                AND (until IS NULL OR m."timestamp" <= until) AS in_scope
            FROM memory m
            WHERE memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) @> all_of
              AND memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && coalesce(nullif(any_of_1, '{}'), all_of)
              AND memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true)
                  && coalesce(nullif(any_of_2, '{}'), nullif(any_of_1, '{}'), all_of)
            LIMIT scan_limit + 1
        )
        SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
        FROM candidates c;
        IF rows_scanned <= scan_limit AND cardinality(ids) <= max_ids THEN
            RETURN ids;
        END IF;
    END IF;

    -- 3. Counting a scope takes 0.1 ms per thousand rows.
    IF (with_shared OR num_nonnulls(of_user, of_agent, of_run) > 0)
            AND indexed_rows * smallest_share <= 1.5 * medium_scope THEN
        scope_size := count_scope_rows(of_user, of_agent, of_run, of_channels, medium_scope, match_any, with_shared);
        IF scope_size <= medium_scope AND indexed_rows * smallest_share <= 1.5 * scope_size THEN
            RETURN narrow_scope_ids(of_user, of_agent, of_run, of_channels, since, until, all_of, any_of_1, any_of_2,
                                    max_ids, match_any, with_shared);
        END IF;
    END IF;
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer,
               boolean, boolean)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer,
               boolean, boolean)
    TO loxodon_app;
