-- What is measured of the candidates, with all optional features (features.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set channel '''_global'''
\set context_idf '''{12:7.6,13:3.3}/1000000000''::sparsevec'
\set ids '''{00000000-0000-0000-0000-000000000002}'''
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set original_vector 'NULL'
\set query_vector 'array_fill(0.05::real, ARRAY[384])::halfvec'
\set tags '''{boat}'''
\set text_idf '''{12:7.8,13:3.5}/1000000000''::sparsevec'
\set user_id '''alice'''
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH active_goals AS MATERIALIZED (
    SELECT g.id, gv.embedding FROM (
        SELECT * FROM (
            SELECT * FROM goal g WHERE g.workspace_id = :workspace
                AND g.user_id = :user_id
                AND g.channel = :channel
                AND g.status = 'active' ORDER BY g.created_at DESC OFFSET 0
        ) g ORDER BY g.priority DESC, g.created_at DESC, g.id LIMIT 8
    ) g LEFT JOIN LATERAL (SELECT * FROM goal_vector WHERE goal_vector.workspace_id = :workspace
        AND goal_vector.goal_id >= g.id
        AND goal_vector.goal_id <= g.id
        AND generation = 1 ORDER BY goal_vector.goal_id LIMIT 1) gv ON true
)
SELECT m.id AS ids,
       -(m.bm25 <#> :text_idf) AS text_lexical,
       -(m.context_bm25 <#> :context_idf) AS context_lexical,
       near.text_vector AS text_vector,
       near.context_vector AS context_vector,
       (SELECT bool_or(EXISTS (SELECT FROM goal_memory gm WHERE gm.workspace_id = m.workspace_id
            AND gm.goal_id = a.id AND gm.memory_id = m.id)) FROM active_goals a) AS goal_linked,
       near.goal_cosine AS goal_cosine,
       CASE WHEN strpos(m.content, '?') > 0 OR strpos(m.content, '？') > 0 OR strpos(m.content, '؟') > 0 THEN m.content END AS phrasing,
       m."timestamp" AS timestamp,
       near.vector AS vectors,
       near.original_cosine AS original_cosine,
       m.speaker AS speaker,
       m.role AS role,
       NULLIF(m.mentions, '[]') AS mentions,
       m.mentions <> '[]' AS dated,
       m.tag_prefixes && CAST(:tags AS text[]) AS tagged,
       m.terms AS terms,
       CASE WHEN m.t_invalid = m.valid_until AND m.t_invalid <= m."timestamp" THEN NULL
            ELSE least(m.valid_until, m.t_invalid) END AS ended,
       m.temporal_tag AS temporal_tag,
       m.importance AS importance
FROM (SELECT * FROM memory WHERE memory.workspace_id = :workspace
    AND memory.id = ANY (CAST(:ids AS uuid[])) ORDER BY memory.id OFFSET 0) m
CROSS JOIN LATERAL (
    SELECT max(1 - (v.embedding <=> :query_vector)) FILTER (WHERE v.kind = 'text') AS text_vector,
           max(1 - (v.embedding <=> :query_vector)) FILTER (WHERE v.kind = 'context') AS context_vector,
           max(1 - (v.embedding <=> :original_vector)) FILTER (WHERE v.kind = 'text') AS original_cosine,
           string_agg(halfvec_send(v.embedding), ''::bytea) FILTER (WHERE v.kind = 'text') AS vector,
           max((SELECT max(1 - (a.embedding <=> v.embedding)) FROM active_goals a)) FILTER (WHERE v.kind = 'text') AS goal_cosine
    FROM (SELECT * FROM memory_vector WHERE memory_vector.workspace_id = :workspace
        AND memory_vector.memory_id >= m.id
        AND memory_vector.memory_id <= m.id
        AND generation = 1 ORDER BY memory_vector.memory_id LIMIT 3) v
) near
WHERE m.workspace_id = :workspace
    AND m.user_id = :user_id
    AND m.channel = :channel
    AND (m.expires_at IS NULL OR m.expires_at > :now)
    AND m.review_status IS NULL
    AND NOT m.archived
    AND (m.t_valid IS NULL OR m.t_valid <= :now)
    AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until);
