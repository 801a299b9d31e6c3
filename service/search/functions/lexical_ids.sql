-- Ids of up to `candidate_limit` memories of a scope, best BM25 first, read from the GIN indexes over terms: of the
-- text, or of its context where `in_context`.
--
-- Candidates have one of the terms `any_of_terms`; if `and_terms` is given, one of those as well, unless fewer than
-- `min_candidates` have both: for frequent terms, rows with several are the best, and an index finds them. `scan_limit`
-- limits the rows read if even the rarest term is frequent; the first ones then stand for the rest. `query_bm25` has
-- the weights of all terms of the query; <#> is the negative inner product, so the best comes first.
--
-- GIN operators are not leakproof, so no GIN index is used under row-level security. The function repeats the workspace
-- in its body and returns only ids; the caller joins them back under the policy. The plan is generic and cannot scan
-- sequentially: with the optional scope columns as parameters, it can only start from the GIN index. Each part says
-- itself when it is read: Citus, told so from outside of both, would ask all nodes.
-- docs/decisions/003-definer-functions.md
CREATE OR REPLACE FUNCTION lexical_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    in_context boolean,
    any_of_terms integer[],
    and_terms integer[],
    query_bm25 sparsevec,
    scan_limit integer,
    candidate_limit integer,
    min_candidates integer,
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
    keys integer[] := workspace_terms(this_workspace, any_of_terms);
    other_keys integer[] := coalesce(workspace_terms(this_workspace, and_terms), keys);
    ids uuid[];
BEGIN
    LOOP
        ids := ARRAY(
            SELECT c.id FROM (
                SELECT m.workspace_id, m.id, m.weights <#> query_bm25 AS distance FROM (
                    SELECT terms AS words, bm25 AS weights, memory.* FROM memory WHERE NOT in_context
                    UNION ALL SELECT context_terms, context_bm25, memory.* FROM memory WHERE in_context
                ) m
                WHERE m.words <> '{}'
                  AND workspace_terms(m.workspace_id, m.words) && keys
                  AND workspace_terms(m.workspace_id, m.words) && other_keys
                  AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                  AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                LIMIT scan_limit
            ) c
            WHERE c.workspace_id = this_workspace AND c.distance < 0
            ORDER BY c.distance, c.id LIMIT candidate_limit);
        EXIT WHEN other_keys IS NOT DISTINCT FROM keys OR cardinality(ids) >= min_candidates;
        other_keys := keys;
    END LOOP;
    RETURN QUERY SELECT found.id FROM unnest(ids) WITH ORDINALITY AS found (id, place) ORDER BY found.place;
END $$;

GRANT EXECUTE ON FUNCTION lexical_ids TO loxodon_app, loxodon_walled;
