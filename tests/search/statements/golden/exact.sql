-- Small scope: every row is read (exact.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set arm_limit '50'
\set asked_at '''2026-03-02T09:30:00+00:00''::timestamptz'
\set channel '''_global'''
\set exact_rows '20000'
\set limit '10'
\set max_close '800'
\set min_close '200'
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set query_vector 'array_fill(0.05::real, ARRAY[384])::halfvec'
\set tags '''{boat}'''
\set terms '''{11,12}'''
\set user_id '''alice'''
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH any_term AS MATERIALIZED (
    SELECT sparse_vector(string_agg(sparse_entry(term, 1), ',' ORDER BY term)) AS vector
    FROM unnest(CAST(:terms AS integer[])) AS given (term)
), scan AS MATERIALIZED (
    SELECT count(*) AS rows_read,
           count(*) FILTER (WHERE is_visible) AS texts,
           bool_or(NOT without_context) AS has_contexts,
           array_agg(id) FILTER (WHERE is_visible IS NOT TRUE) AS hidden_ids,
           array_agg(id) FILTER (WHERE false AND is_visible) AS ids,
           array_agg(id) FILTER (WHERE has_term AND is_visible) AS text_ids,
           array_agg(bm25) FILTER (WHERE has_term AND is_visible) AS texts_bm25,
           array_agg(without_context) FILTER (WHERE has_term AND is_visible) AS texts_without_context,
           array_agg(id) FILTER (WHERE context_has_term AND is_visible) AS context_ids,
           array_agg(context_bm25) FILTER (WHERE context_has_term AND is_visible) AS contexts_bm25,
           array_agg(id) FILTER (WHERE is_visible AND CAST(:asked_at AS timestamptz) IS NOT NULL) AS timed_ids,
           array_agg("timestamp") FILTER (WHERE is_visible AND CAST(:asked_at AS timestamptz) IS NOT NULL)
               AS timestamps,
           array_agg(id) FILTER (WHERE tagged AND is_visible) AS tagged_ids,
           array_agg(created_at) FILTER (WHERE tagged AND is_visible) AS tagged_created
    FROM (SELECT * FROM ((
    SELECT m.id, (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) AS is_visible, m.bm25, m.context_bm25, m.context_bm25 IS NULL AS without_context,
           m.bm25 <#> (SELECT vector FROM any_term) < 0 AS has_term,
           m.context_bm25 <#> (SELECT vector FROM any_term) < 0 AS context_has_term,
           m."timestamp", m.created_at, m.tag_prefixes && CAST(:tags AS text[]) AS tagged
    FROM memory m WHERE m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND cardinality(m.terms) + cardinality(m.context_terms) <= 120 ORDER BY m.channel, m.id)
    UNION ALL (
    SELECT m.id, (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) AS is_visible, m.bm25, m.context_bm25, m.context_bm25 IS NULL AS without_context,
           m.bm25 <#> (SELECT vector FROM any_term) < 0 AS has_term,
           m.context_bm25 <#> (SELECT vector FROM any_term) < 0 AS context_has_term,
           m."timestamp", m.created_at, m.tag_prefixes && CAST(:tags AS text[]) AS tagged
    FROM memory m WHERE m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND cardinality(m.terms) + cardinality(m.context_terms) > 120 ORDER BY m.id)) branches LIMIT :exact_rows + 1) scoped
), counted AS MATERIALIZED (
    SELECT rows_read, texts, has_contexts, rows_read <= :exact_rows AS is_small,
           greatest(:min_close, least(:max_close, rows_read / 40)) AS close_limit
    FROM scan
), term AS NOT MATERIALIZED (
    SELECT term, sparse_vector(sparse_entry(term, 1)) AS vector
    FROM unnest(CAST(:terms AS integer[])) AS given (term) OFFSET 0
), frequency AS MATERIALIZED (
    SELECT term.term, found.text_df, found.context_df FROM term CROSS JOIN LATERAL (
        SELECT (count(*) FILTER (WHERE is_text))::float8 AS text_df,
               (count(*) FILTER (WHERE is_context))::float8 AS context_df
        FROM (
            SELECT unnest(texts_bm25) AS bm25, true AS is_text, unnest(texts_without_context) AS is_context FROM scan
            UNION ALL
            SELECT unnest(contexts_bm25), false, true FROM scan
        ) weights WHERE weights.bm25 <#> term.vector < 0
    ) found
    WHERE (SELECT is_small FROM counted) AND cardinality(CAST(:terms AS integer[])) <= 48
    UNION ALL
    SELECT term, (count(*) FILTER (WHERE is_text))::float8, (count(*) FILTER (WHERE is_context))::float8
    FROM (
        SELECT unnest(m.terms) AS term, true AS is_text, matching.without_context AS is_context
        FROM (SELECT unnest(text_ids) AS id, unnest(texts_without_context) AS without_context FROM scan) matching,
            LATERAL (SELECT * FROM memory WHERE memory.workspace_id = :workspace
                AND memory.id >= matching.id
                AND memory.id <= matching.id ORDER BY memory.id LIMIT 1) m
        UNION ALL
        SELECT unnest(m.context_terms), false, true FROM (SELECT unnest(context_ids) AS id FROM scan) matching,
            LATERAL (SELECT * FROM memory WHERE memory.workspace_id = :workspace
                AND memory.id >= matching.id
                AND memory.id <= matching.id ORDER BY memory.id LIMIT 1) m
    ) occurrences
    WHERE (SELECT is_small FROM counted) AND cardinality(CAST(:terms AS integer[])) > 48
      AND term = ANY (CAST(:terms AS integer[]))
    GROUP BY term
), idf AS MATERIALIZED (
    SELECT sparse_vector(string_agg(sparse_entry(term, ln(1 + (texts - text_df + 0.5) / (text_df + 0.5))), ',' ORDER BY term) FILTER (WHERE text_df > 0))
               AS of_texts,
           sparse_vector(string_agg(sparse_entry(term, ln(1 + (texts - context_df + 0.5) / (context_df + 0.5))), ',' ORDER BY term) FILTER (WHERE context_df > 0))
               AS of_contexts
    FROM counted, frequency
), text_binary AS MATERIALIZED (
    SELECT v.memory_id AS id, v.binary_embedding <~> (SELECT binary_quantize(CAST(:query_vector AS halfvec))) AS bits FROM memory_vector v WHERE v.workspace_id = :workspace
        AND v.user_id = :user_id
        AND v.channel = :channel
      AND (SELECT is_small FROM counted) AND v.generation = 1 AND v.kind = 'text'
    ORDER BY bits, v.memory_id LIMIT (SELECT close_limit + rows_read - texts FROM counted)
), text_close AS (
    SELECT id FROM text_binary WHERE id NOT IN (SELECT unnest(hidden_ids) FROM scan)
    ORDER BY bits, id LIMIT (SELECT close_limit FROM counted)
), text_vector AS MATERIALIZED (
    SELECT v.memory_id AS id FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.memory_id = ANY (ARRAY(SELECT id FROM text_close))
      AND v.generation = 1 AND v.kind = 'text'
    ORDER BY (v.embedding <=> :query_vector) + 0, v.memory_id LIMIT :arm_limit
), context_binary AS MATERIALIZED (
    SELECT v.memory_id AS id, v.binary_embedding <~> (SELECT binary_quantize(CAST(:query_vector AS halfvec))) AS bits FROM memory_vector v WHERE v.workspace_id = :workspace
        AND v.user_id = :user_id
        AND v.channel = :channel
      AND (SELECT is_small FROM counted) AND v.generation = 1 AND v.kind = 'context'
    ORDER BY bits, v.memory_id LIMIT (SELECT close_limit + rows_read - texts FROM counted)
), context_close AS (
    SELECT id FROM context_binary WHERE id NOT IN (SELECT unnest(hidden_ids) FROM scan)
    ORDER BY bits, id LIMIT (SELECT close_limit FROM counted)
), context_vector AS MATERIALIZED (
    SELECT v.memory_id AS id FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.memory_id = ANY (ARRAY(SELECT id FROM context_close))
      AND v.generation = 1 AND v.kind = 'context'
    ORDER BY (v.embedding <=> :query_vector) + 0, v.memory_id LIMIT :arm_limit
)
SELECT rows_read, texts,
    ARRAY(SELECT term FROM frequency) AS terms,
    ARRAY(SELECT text_df FROM frequency) AS text_df,
    ARRAY(SELECT context_df FROM frequency) AS context_df,
    ARRAY(
        SELECT t.id FROM (SELECT unnest(text_ids) AS id, unnest(texts_bm25) AS bm25 FROM scan) t, idf
        WHERE (SELECT is_small FROM counted) ORDER BY t.bm25 <#> idf.of_texts, t.id LIMIT :arm_limit
    ) AS text_lexical,
    -- where no row has a context this would only repeat the arm of the texts
    ARRAY(
        SELECT c.id FROM (
            SELECT unnest(context_ids) AS id, unnest(contexts_bm25) AS bm25, true AS is_context FROM scan
            UNION ALL SELECT unnest(text_ids), unnest(texts_bm25), unnest(texts_without_context) FROM scan
        ) c, idf
        WHERE (SELECT is_small AND has_contexts FROM counted) AND c.is_context
        ORDER BY c.bm25 <#> idf.of_contexts, c.id LIMIT :arm_limit
    ) AS context_lexical,
    ARRAY(SELECT id FROM text_vector) AS text_vector,
    ARRAY(SELECT id FROM context_vector) AS context_vector,
    ARRAY(
        SELECT t.id FROM (SELECT unnest(timed_ids) AS id, unnest(timestamps) AS "timestamp" FROM scan) t
        WHERE (SELECT is_small FROM counted)
        ORDER BY abs(date_part('epoch', t."timestamp") - date_part('epoch', CAST(:asked_at AS timestamptz))), t.id
        LIMIT :arm_limit
    ) AS "time",
    ARRAY(
        SELECT t.id FROM (SELECT unnest(tagged_ids) AS id, unnest(tagged_created) AS created_at FROM scan) t
        WHERE (SELECT is_small FROM counted) ORDER BY t.created_at DESC, t.id LIMIT :arm_limit
    ) AS tag,
    -- the newest fill up what vectors cannot give: rows without one
    ARRAY(
        SELECT again.id FROM ((
    SELECT m.id, (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) AS is_visible, m.bm25, m.context_bm25, m.context_bm25 IS NULL AS without_context,
           m.bm25 <#> (SELECT vector FROM any_term) < 0 AS has_term,
           m.context_bm25 <#> (SELECT vector FROM any_term) < 0 AS context_has_term,
           m."timestamp", m.created_at, m.tag_prefixes && CAST(:tags AS text[]) AS tagged
    FROM memory m WHERE m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND cardinality(m.terms) + cardinality(m.context_terms) <= 120 ORDER BY m.channel, m.id)
    UNION ALL (
    SELECT m.id, (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
        AND NOT m.archived
        AND (m.t_valid IS NULL OR m.t_valid <= :now)
        AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until) AS is_visible, m.bm25, m.context_bm25, m.context_bm25 IS NULL AS without_context,
           m.bm25 <#> (SELECT vector FROM any_term) < 0 AS has_term,
           m.context_bm25 <#> (SELECT vector FROM any_term) < 0 AS context_has_term,
           m."timestamp", m.created_at, m.tag_prefixes && CAST(:tags AS text[]) AS tagged
    FROM memory m WHERE m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND cardinality(m.terms) + cardinality(m.context_terms) > 120 ORDER BY m.id)) again
        WHERE again.is_visible AND (SELECT is_small FROM counted) AND (SELECT count(*) FROM text_vector) < :limit
        ORDER BY again.created_at DESC, again.id LIMIT :limit
    ) AS newest
FROM counted;
