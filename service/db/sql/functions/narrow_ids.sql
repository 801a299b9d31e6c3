-- Ids of the scope's memories that meet three groups of filter keys and a span of time: all of `all_of`, one of
-- `any_of`, one of `also_of`; an empty group is no condition. NULL when there are too many to be worth it: more than
-- `reach`, or with a span of time more than ten times that before it is applied.
--
-- What ANALYZE knows of frequent keys chooses: the narrowest group alone where it leaves few rows (holding hundreds
-- of keys of a wide range against each row takes longer than reading the rows), else all groups together, else, in a
-- scope of at most 30,000 rows, the bitmaps of scope and keys (a key in the index takes a third of what a row of the
-- table does). work_mem: where the bitmap did not fit, the keys of whole pages would be computed again.
CREATE OR REPLACE FUNCTION narrow_ids(
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
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET work_mem = '64MB'
AS $$
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    deep integer := CASE WHEN of_since IS NULL AND of_until IS NULL THEN reach ELSE 10 * reach END;
    frequent integer[];
    shares real[];
    marked real := (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'ix_memory_marks'::regclass);
    of_all real;
    of_any real;
    of_also real;
    least_of real;
    middling constant integer := 30000;
    scoped bigint;
    seen bigint;
    found uuid[];
BEGIN
    SELECT s.most_common_elems::text::integer[], s.most_common_elem_freqs INTO frequent, shares
    FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = 'ix_memory_marks';
    of_all := (SELECT min(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(all_of) mark);
    of_any := (SELECT sum(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(any_of) mark);
    of_also := (SELECT sum(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(also_of) mark);
    least_of := least(of_all, of_any, of_also);
    IF marked * least_of <= 1.25 * deep THEN
        IF least_of = of_all THEN
            WITH met AS MATERIALIZED (
                SELECT m.id, m.workspace_id = here
                    AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                    AND (of_run IS NULL OR m.run_id = of_run)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (of_since IS NULL OR m."timestamp" >= of_since)
                    AND (of_until IS NULL OR m."timestamp" <= of_until) AS inside
                FROM memory m WHERE memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) @> all_of
                LIMIT deep + 1
            )
            SELECT count(*), coalesce(array_agg(met.id) FILTER (WHERE met.inside), '{}') INTO seen, found FROM met;
        ELSIF least_of = of_any THEN
            WITH met AS MATERIALIZED (
                SELECT m.id, m.workspace_id = here
                    AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                    AND (of_run IS NULL OR m.run_id = of_run)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (of_since IS NULL OR m."timestamp" >= of_since)
                    AND (of_until IS NULL OR m."timestamp" <= of_until) AS inside
                FROM memory m WHERE memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) && any_of
                LIMIT deep + 1
            )
            SELECT count(*), coalesce(array_agg(met.id) FILTER (WHERE met.inside), '{}') INTO seen, found FROM met;
        ELSE
            WITH met AS MATERIALIZED (
                SELECT m.id, m.workspace_id = here
                    AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                    AND (of_run IS NULL OR m.run_id = of_run)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (of_since IS NULL OR m."timestamp" >= of_since)
                    AND (of_until IS NULL OR m."timestamp" <= of_until) AS inside
                FROM memory m WHERE memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) && also_of
                LIMIT deep + 1
            )
            SELECT count(*), coalesce(array_agg(met.id) FILTER (WHERE met.inside), '{}') INTO seen, found FROM met;
        END IF;
        IF seen <= deep AND cardinality(found) <= reach THEN
            RETURN found;
        END IF;
    END IF;
    IF num_nonnulls(of_all, of_any, of_also) > 1 AND marked * least_of <= 10 * deep
            AND marked * coalesce(of_all, 1) * coalesce(of_any, 1) * coalesce(of_also, 1) <= 2 * deep THEN
        WITH met AS MATERIALIZED (
                SELECT m.id, m.workspace_id = here
                    AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                    AND (of_run IS NULL OR m.run_id = of_run)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (of_since IS NULL OR m."timestamp" >= of_since)
                    AND (of_until IS NULL OR m."timestamp" <= of_until) AS inside
                FROM memory m WHERE memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) @> all_of AND memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) && coalesce(nullif(any_of, '{}'), all_of)
                    AND memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                             ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                                   'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                             m.metadata, true) && coalesce(nullif(also_of, '{}'), nullif(any_of, '{}'), all_of)
                LIMIT deep + 1
            )
            SELECT count(*), coalesce(array_agg(met.id) FILTER (WHERE met.inside), '{}') INTO seen, found FROM met;
        IF seen <= deep AND cardinality(found) <= reach THEN
            RETURN found;
        END IF;
    END IF;
    IF num_nonnulls(of_user, of_agent, of_run) > 0 AND marked * least_of <= 1.5 * middling THEN
        scoped := scope_rows(of_user, of_agent, of_run, of_channels, middling);
        IF scoped <= middling AND marked * least_of <= 1.5 * scoped THEN
            RETURN scope_marked_ids(of_user, of_agent, of_run, of_channels, of_since, of_until, all_of, any_of, also_of,
                                    reach);
        END IF;
    END IF;
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer)
    TO loxodon_app;
