-- Deduplication in a small scope (near_memories.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set channel '''_global'''
\set exact_rows '20000'
\set hash '''0123'''
\set limit '5'
\set max_close '800'
\set min_close '200'
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set query_vector 'array_fill(0.05::real, ARRAY[384])::halfvec'
\set user_id '''alice'''
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH counted AS (
    SELECT count(*) AS vectors FROM (SELECT 1 FROM memory_vector v WHERE v.workspace_id = :workspace
        AND v.user_id = :user_id
        AND v.agent_id IS NULL
        AND v.run_id IS NULL
        AND v.channel = :channel
        AND v.generation = 1
        AND v.kind = 'text' LIMIT :exact_rows + 1) AS few
)
(SELECT CASE WHEN (m.expires_at IS NULL OR m.expires_at > :now)
    AND m.review_status IS NULL THEN 'equal' ELSE 'expired' END AS arm, m.id, m.content, m.hash, m.version,
        m.timestamp, m.t_valid, m.t_invalid, CAST(0 AS float8) AS distance, CAST(NULL AS halfvec) AS vector
 FROM memory m WHERE m.hash >= :hash
     AND m.hash <= :hash
     AND m.dedup_key = :hash
     AND m.workspace_id = :workspace
     AND m.user_id = :user_id
     AND m.agent_id IS NULL
     AND m.run_id IS NULL
     AND m.channel = :channel
     AND NOT m.archived ORDER BY m.hash LIMIT 1)
UNION ALL
(SELECT 'near', m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid, near.distance, near.vector
 FROM (
    SELECT v.memory_id AS id, (v.embedding <=> :query_vector) + 0 AS distance, v.embedding AS vector FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.generation = 1 AND v.kind = 'text' AND v.memory_id = ANY (ARRAY(
        SELECT passing.id FROM (
            SELECT v.memory_id, v.binary_embedding <~> (SELECT binary_quantize(CAST(:query_vector AS halfvec))) AS bits FROM memory_vector v WHERE (SELECT vectors FROM counted) <= :exact_rows
                AND v.workspace_id = :workspace
                AND v.user_id = :user_id
                AND v.agent_id IS NULL
                AND v.run_id IS NULL
                AND v.channel = :channel
                AND v.generation = 1
                AND v.kind = 'text'
            ORDER BY bits, v.memory_id
        ) by_bits CROSS JOIN LATERAL (
            SELECT m.id FROM memory m
            WHERE m.workspace_id = :workspace
                AND m.id >= by_bits.memory_id
                AND m.id <= by_bits.memory_id
                AND NOT m.archived
                AND (m.expires_at IS NULL OR m.expires_at > :now)
                AND m.review_status IS NULL
            ORDER BY m.id LIMIT 1
        ) passing LIMIT (SELECT greatest(:min_close, least(:max_close, vectors / 40)) FROM counted)))
    ORDER BY distance LIMIT :limit
 ) near CROSS JOIN LATERAL (SELECT * FROM memory WHERE memory.workspace_id = :workspace
     AND memory.id >= near.id
     AND memory.id <= near.id ORDER BY memory.id LIMIT 1) m)
UNION ALL
SELECT 'large', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM counted WHERE vectors > :exact_rows
ORDER BY distance;
