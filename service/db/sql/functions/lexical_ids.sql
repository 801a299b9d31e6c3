-- Ids of up to `wanted` memories of a scope, best BM25 first, read past row-level security from the GIN indexes.
--
-- Candidates have one of `opening`; where `beside` is given, one of these as well, unless fewer than `few` do.
-- `reach` bounds the rows read where even the rarest term is frequent: the rows met first stand for the rest.
--
-- GIN operators are not leakproof, so no GIN index is used under row-level security. The function repeats the
-- workspace in its body and returns ids alone; the caller joins them back under the policy. The plan is generic and
-- cannot scan sequentially: with the optional scope columns as parameters only the GIN index is left to begin with.
CREATE OR REPLACE FUNCTION lexical_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    in_context boolean,
    opening integer[],
    beside integer[],
    asked sparsevec,
    reach integer,
    wanted integer,
    few integer
)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    opened integer[] := workspace_terms(here, opening);
    others integer[] := workspace_terms(here, beside);
    found uuid[] := '{}';
BEGIN
    IF in_context THEN
        IF others IS NOT NULL THEN
            found := ARRAY(
            SELECT met.id FROM (
                SELECT m.workspace_id, m.id, m.context_bm25 <#> asked AS distance FROM memory m
                WHERE workspace_terms(m.workspace_id, m.context_terms) && opened
                  AND workspace_terms(m.workspace_id, m.context_terms) && others AND m.context_terms <> '{}'
                  AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                  AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                LIMIT reach
            ) met WHERE met.workspace_id = here AND met.distance < 0 ORDER BY met.distance, met.id LIMIT wanted);
        END IF;
        IF others IS NULL OR cardinality(found) < few THEN
            found := ARRAY(
            SELECT met.id FROM (
                SELECT m.workspace_id, m.id, m.context_bm25 <#> asked AS distance FROM memory m
                WHERE workspace_terms(m.workspace_id, m.context_terms) && opened AND m.context_terms <> '{}'
                  AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                  AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                LIMIT reach
            ) met WHERE met.workspace_id = here AND met.distance < 0 ORDER BY met.distance, met.id LIMIT wanted);
        END IF;
    ELSE
        IF others IS NOT NULL THEN
            found := ARRAY(
            SELECT met.id FROM (
                SELECT m.workspace_id, m.id, m.bm25 <#> asked AS distance FROM memory m
                WHERE workspace_terms(m.workspace_id, m.terms) && opened
                  AND workspace_terms(m.workspace_id, m.terms) && others AND m.terms <> '{}'
                  AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                  AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                LIMIT reach
            ) met WHERE met.workspace_id = here AND met.distance < 0 ORDER BY met.distance, met.id LIMIT wanted);
        END IF;
        IF others IS NULL OR cardinality(found) < few THEN
            found := ARRAY(
            SELECT met.id FROM (
                SELECT m.workspace_id, m.id, m.bm25 <#> asked AS distance FROM memory m
                WHERE workspace_terms(m.workspace_id, m.terms) && opened AND m.terms <> '{}'
                  AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                  AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                LIMIT reach
            ) met WHERE met.workspace_id = here AND met.distance < 0 ORDER BY met.distance, met.id LIMIT wanted);
        END IF;
    END IF;
    RETURN QUERY SELECT ids.id FROM unnest(found) WITH ORDINALITY AS ids (id, place) ORDER BY ids.place;
END $$;

REVOKE EXECUTE ON FUNCTION
    lexical_ids(text, text, text, text[], boolean, integer[], integer[], sparsevec, integer, integer, integer)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    lexical_ids(text, text, text, text[], boolean, integer[], integer[], sparsevec, integer, integer, integer)
    TO loxodon_app;
