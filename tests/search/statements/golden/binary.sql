-- Medium scope: all binary quantisations (approximate.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set and_context_terms '''{}'''
\set and_text_terms '''{}'''
\set arm_limit '50'
\set asked_at '''2026-03-02T09:30:00+00:00''::timestamptz'
\set candidate_limit '500'
\set channel '''_global'''
\set context_idf '''{12:7.590962128638915,13:3.3522743705029763}/1000000000''::sparsevec'
\set context_terms '''{11}'''
\set enough '50'
\set match_any 'false'
\set max_checked '20000'
\set max_close '800'
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set of_agent 'NULL'
\set of_channels '''{_global}'''
\set of_run 'NULL'
\set of_user '''alice'''
\set query_vector 'array_fill(0.05::real, ARRAY[384])::halfvec'
\set scan_limit '20000'
\set tags '''{boat}'''
\set text_idf '''{12:7.811633490807735,13:3.506401244490661}/1000000000''::sparsevec'
\set text_terms '''{11}'''
\set user_id '''alice'''
\set wide '200'
\set with_shared 'false'
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH approximate AS MATERIALIZED (
    SELECT v.memory_id AS id, (v.embedding <=> :query_vector) + 0 AS distance FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.generation = 1 AND v.kind = 'text'
      AND v.memory_id = ANY (ARRAY(
        SELECT passing.id FROM (
            SELECT v.memory_id, v.binary_embedding <~> (SELECT binary_quantize(CAST(:query_vector AS halfvec))) AS bits FROM memory_vector v WHERE v.workspace_id = :workspace
                AND v.user_id = :user_id
                AND v.channel = :channel
                AND v.generation = 1
                AND v.kind = 'text'
            ORDER BY bits, v.memory_id LIMIT :max_checked
        ) by_bits CROSS JOIN LATERAL (
            SELECT m.id FROM memory m WHERE m.workspace_id = :workspace
                AND m.id = by_bits.memory_id
                AND (m.expires_at IS NULL OR m.expires_at > :now)
                AND m.review_status IS NULL
                AND NOT m.archived
                AND (m.t_valid IS NULL OR m.t_valid <= :now)
                AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) OFFSET 0
        ) passing LIMIT :max_close))
    ORDER BY distance, id LIMIT :wide
), fallback AS MATERIALIZED (
    SELECT matching.id, v.distance
    FROM (SELECT m.id FROM memory m WHERE m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
        AND (SELECT count(*) FROM approximate) < :enough OFFSET 0) matching LEFT JOIN LATERAL (
        SELECT (v.embedding <=> :query_vector) + 0 AS distance FROM memory_vector v
        WHERE v.workspace_id = :workspace AND v.memory_id = matching.id AND v.generation = 1
          AND v.kind = 'text'
        OFFSET 0
    ) v ON true
    ORDER BY v.distance, matching.id LIMIT :arm_limit
)
(SELECT 'binary' AS arm, id, distance AS place FROM approximate
    WHERE (SELECT count(*) FROM approximate) >= :enough ORDER BY distance + 0, id LIMIT :arm_limit)
UNION ALL (SELECT 'fallback', id, distance FROM fallback ORDER BY distance, id)

UNION ALL (SELECT 'context_vector', v.memory_id, (v.embedding <=> :query_vector) + 0 AS distance FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.generation = 1 AND v.kind = 'context'
      AND v.memory_id = ANY (ARRAY(
        SELECT passing.id FROM (
            SELECT v.memory_id, v.binary_embedding <~> (SELECT binary_quantize(CAST(:query_vector AS halfvec))) AS bits FROM memory_vector v WHERE v.workspace_id = :workspace
                AND v.user_id = :user_id
                AND v.channel = :channel
                AND v.generation = 1
                AND v.kind = 'context'
            ORDER BY bits, v.memory_id LIMIT :max_checked
        ) by_bits CROSS JOIN LATERAL (
            SELECT m.id FROM memory m WHERE m.workspace_id = :workspace
                AND m.id = by_bits.memory_id
                AND (m.expires_at IS NULL OR m.expires_at > :now)
                AND m.review_status IS NULL
                AND NOT m.archived
                AND (m.t_valid IS NULL OR m.t_valid <= :now)
                AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) OFFSET 0
        ) passing LIMIT :max_close))
    ORDER BY distance, v.memory_id LIMIT :arm_limit)

UNION ALL (SELECT 'text_lexical', m.id, l.place
    FROM lexical_ids(:of_user, :of_agent, :of_run, :of_channels, false, CAST(:text_terms AS integer[]),
                     CAST(:and_text_terms AS integer[]), :text_idf, :scan_limit, :candidate_limit,
                     CAST(:arm_limit AS integer), :match_any, :with_shared)
        WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:text_terms AS integer[])) > 0
        AND m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) ORDER BY l.place LIMIT :arm_limit)
UNION ALL (SELECT 'context_lexical', m.id, l.place
    FROM lexical_ids(:of_user, :of_agent, :of_run, :of_channels, true, CAST(:context_terms AS integer[]),
                     CAST(:and_context_terms AS integer[]), :context_idf, :scan_limit, :candidate_limit,
                     CAST(:arm_limit AS integer), :match_any, :with_shared)
        WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:context_terms AS integer[])) > 0
        AND m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) ORDER BY l.place LIMIT :arm_limit)
UNION ALL (SELECT 'tag', m.id, l.place
    FROM tag_ids(:of_user, :of_agent, :of_run, :of_channels, CAST(:tags AS text[]), :scan_limit, :candidate_limit,
                 :match_any, :with_shared)
        WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:tags AS text[])) > 0
        AND m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) ORDER BY l.place LIMIT :arm_limit)
UNION ALL (SELECT 'time', id, place FROM (
    (SELECT m.id, date_part('epoch', m."timestamp") - date_part('epoch', CAST(:asked_at AS timestamptz)) AS place
        FROM memory m
        WHERE m.workspace_id = :workspace
            AND m.user_id = :user_id
            AND m.channel = :channel
            AND (m.expires_at IS NULL OR m.expires_at > :now)
            AND m.review_status IS NULL
            AND NOT m.archived
            AND (m.t_valid IS NULL OR m.t_valid <= :now)
            AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
            AND m."timestamp" >= CAST(:asked_at AS timestamptz)
        ORDER BY m."timestamp" LIMIT :arm_limit)
    UNION ALL
    (SELECT m.id, date_part('epoch', CAST(:asked_at AS timestamptz)) - date_part('epoch', m."timestamp")
        FROM memory m
        WHERE m.workspace_id = :workspace
            AND m.user_id = :user_id
            AND m.channel = :channel
            AND (m.expires_at IS NULL OR m.expires_at > :now)
            AND m.review_status IS NULL
            AND NOT m.archived
            AND (m.t_valid IS NULL OR m.t_valid <= :now)
            AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
            AND m."timestamp" < CAST(:asked_at AS timestamptz)
        ORDER BY m."timestamp" DESC LIMIT :arm_limit)
) both_sides ORDER BY place, id LIMIT :arm_limit);
