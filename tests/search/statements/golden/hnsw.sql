-- Large scope: the graph, here with a condition that has filter keys (approximate.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set all_of_categories '''{}'''
\set all_of_metadata '''{"project": ["atlas"]}'''
\set all_of_words '''{travel}'''
\set and_context_terms '''{}'''
\set and_text_terms '''{}'''
\set any_of_1_categories '''{}'''
\set any_of_1_metadata '''{}'''
\set any_of_1_words '''{}'''
\set any_of_2_categories '''{}'''
\set any_of_2_metadata '''{}'''
\set any_of_2_words '''{}'''
\set arm_limit '50'
\set asked_at '''2026-03-02T09:30:00+00:00''::timestamptz'
\set candidate_limit '500'
\set channel '''_global'''
\set context_idf '''{12:7.590962128638915,13:3.3522743705029763}/1000000000''::sparsevec'
\set context_terms '''{11}'''
\set enough '20'
\set filter_0 '''project'''
\set filter_1 '''"atlas"'''
\set match_any 'false'
\set max_scanned '30000'
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set of_agent 'NULL'
\set of_channels '''{_global}'''
\set of_run 'NULL'
\set of_user '''alice'''
\set query_vector 'array_fill(0.05::real, ARRAY[384])::halfvec'
\set scan_limit '20000'
\set since 'NULL'
\set tags '''{boat}'''
\set text_idf '''{12:7.811633490807735,13:3.506401244490661}/1000000000''::sparsevec'
\set text_terms '''{11}'''
\set until 'NULL'
\set user_id '''alice'''
\set wide '200'
\set with_shared 'false'
\set with_tags '''{travel}'''
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH known AS MATERIALIZED (SELECT narrow_ids(
        CAST(:of_user AS text), CAST(:of_agent AS text), CAST(:of_run AS text), CAST(:of_channels AS text[]),
        :since, :until,
        memory_filter_keys(:workspace, CAST(:all_of_words AS text[]), '{}', CAST(:all_of_categories AS text[]),
            '{}', CAST(CAST(:all_of_metadata AS text) AS jsonb), false),
        memory_filter_keys(:workspace, CAST(:any_of_1_words AS text[]), '{}', CAST(:any_of_1_categories AS text[]),
            '{}', CAST(CAST(:any_of_1_metadata AS text) AS jsonb), false),
        memory_filter_keys(:workspace, CAST(:any_of_2_words AS text[]), '{}', CAST(:any_of_2_categories AS text[]),
            '{}', CAST(CAST(:any_of_2_metadata AS text) AS jsonb), false),
        CAST(:max_scanned AS integer), :match_any, :with_shared) AS ids), approximate AS MATERIALIZED (
    SELECT v.memory_id AS id, v.embedding::halfvec(384) <=> CAST(:query_vector AS halfvec(384)) AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE v.workspace_id = :workspace
        AND v.user_id = :user_id
        AND v.channel = :channel
        AND v.generation = 1
        AND v.kind = 'text'
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
        AND m.tag_prefixes && CAST(:with_tags AS text[])
        AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false)
        AND ((SELECT ids IS NULL FROM known) OR v.memory_id IN (SELECT unnest(ids) FROM known))
    ORDER BY v.embedding::halfvec(384) <=> CAST(:query_vector AS halfvec(384)) LIMIT :wide
), fallback AS MATERIALIZED (
    SELECT matching.id, v.distance
    FROM (SELECT m.id FROM memory m
        WHERE (SELECT count(*) FROM approximate) < :enough
            AND m.workspace_id = :workspace
            AND m.id = ANY (ARRAY(SELECT unnest(ids) FROM known))
         
              AND coalesce(m.workspace_id = :workspace
              AND m.user_id = :user_id
              AND m.channel = :channel
              AND (m.expires_at IS NULL OR m.expires_at > :now)
              AND m.review_status IS NULL
              AND NOT m.archived
              AND (m.t_valid IS NULL OR m.t_valid <= :now)
              AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
              AND m.tag_prefixes && CAST(:with_tags AS text[])
              AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false), false)
        UNION ALL
        SELECT m.id FROM memory m WHERE m.workspace_id = :workspace
            AND m.user_id = :user_id
            AND m.channel = :channel
            AND (m.expires_at IS NULL OR m.expires_at > :now)
            AND m.review_status IS NULL
            AND NOT m.archived
            AND (m.t_valid IS NULL OR m.t_valid <= :now)
            AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
            AND m.tag_prefixes && CAST(:with_tags AS text[])
            AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false)
            AND (SELECT count(*) FROM approximate) < :enough
            AND (SELECT ids IS NULL FROM known) OFFSET 0) matching LEFT JOIN LATERAL (
        SELECT (v.embedding <=> :query_vector) + 0 AS distance FROM memory_vector v
        WHERE v.workspace_id = :workspace AND v.memory_id = matching.id AND v.generation = 1
          AND v.kind = 'text'
        OFFSET 0
    ) v ON true
    ORDER BY v.distance, matching.id LIMIT :arm_limit
)
(SELECT 'hnsw' AS arm, id, distance AS place FROM approximate
    WHERE (SELECT count(*) FROM approximate) >= :enough ORDER BY distance + 0, id LIMIT :arm_limit)
UNION ALL (SELECT 'fallback', id, distance FROM fallback ORDER BY distance, id)

UNION ALL (SELECT 'text_lexical', m.id, l.place
    FROM lexical_ids(of_user => :of_user, of_agent => :of_agent, of_run => :of_run, of_channels => :of_channels,
                     in_context => false, any_of_terms => CAST(:text_terms AS integer[]),
                     and_terms => CAST(:and_text_terms AS integer[]), query_bm25 => :text_idf,
                     scan_limit => :scan_limit, candidate_limit => :candidate_limit,
                     min_candidates => CAST(:arm_limit AS integer), match_any => :match_any,
                     with_shared => :with_shared) WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:text_terms AS integer[])) > 0
        AND m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
        AND m.tag_prefixes && CAST(:with_tags AS text[])
        AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false) ORDER BY l.place LIMIT :arm_limit)
UNION ALL (SELECT 'context_lexical', m.id, l.place
    FROM lexical_ids(of_user => :of_user, of_agent => :of_agent, of_run => :of_run, of_channels => :of_channels,
                     in_context => true, any_of_terms => CAST(:context_terms AS integer[]),
                     and_terms => CAST(:and_context_terms AS integer[]), query_bm25 => :context_idf,
                     scan_limit => :scan_limit, candidate_limit => :candidate_limit,
                     min_candidates => CAST(:arm_limit AS integer), match_any => :match_any,
                     with_shared => :with_shared) WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:context_terms AS integer[])) > 0
        AND m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
        AND m.tag_prefixes && CAST(:with_tags AS text[])
        AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false) ORDER BY l.place LIMIT :arm_limit)
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
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
        AND m.tag_prefixes && CAST(:with_tags AS text[])
        AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false) ORDER BY l.place LIMIT :arm_limit)
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
            AND m.tag_prefixes && CAST(:with_tags AS text[])
            AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false)
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
            AND m.tag_prefixes && CAST(:with_tags AS text[])
            AND coalesce((m.metadata -> CAST(:filter_0 AS text)) @> CAST(CAST(:filter_1 AS text) AS jsonb), false)
            AND m."timestamp" < CAST(:asked_at AS timestamptz)
        ORDER BY m."timestamp" DESC LIMIT :arm_limit)
) both_sides ORDER BY place, id LIMIT :arm_limit);
