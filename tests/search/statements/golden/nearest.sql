-- The nearest vectors in a scope of any size (near_memories.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set channel '''_global'''
\set exact_rows '20000'
\set limit '5'
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set query_vector 'array_fill(0.05::real, ARRAY[384])::halfvec'
\set user_id '''alice'''
\set wide '20'
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH counted AS (
    SELECT count(*) AS vectors FROM (SELECT 1 FROM memory_vector v WHERE v.workspace_id = :workspace
        AND v.user_id = :user_id
        AND v.agent_id IS NULL
        AND v.run_id IS NULL
        AND v.channel = :channel
        AND v.generation = 1
        AND v.kind = 'text' LIMIT :exact_rows + 1) AS few
), approximate AS MATERIALIZED (
    SELECT v.memory_id, v.embedding::halfvec(384) <=> CAST(:query_vector AS halfvec(384)) AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE (SELECT vectors FROM counted) > :exact_rows
        AND v.workspace_id = :workspace
        AND v.user_id = :user_id
        AND v.agent_id IS NULL
        AND v.run_id IS NULL
        AND v.channel = :channel
        AND v.generation = 1
        AND v.kind = 'text'
        AND NOT m.archived
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
    ORDER BY v.embedding::halfvec(384) <=> CAST(:query_vector AS halfvec(384)) LIMIT :wide
), exact AS (
    SELECT v.memory_id, (v.embedding <=> :query_vector) + 0 AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE (SELECT count(*) FROM approximate) < :limit
        AND v.workspace_id = :workspace
        AND v.user_id = :user_id
        AND v.agent_id IS NULL
        AND v.run_id IS NULL
        AND v.channel = :channel
        AND v.generation = 1
        AND v.kind = 'text'
        AND NOT m.archived
        AND (m.expires_at IS NULL OR m.expires_at > :now)
        AND m.review_status IS NULL
    ORDER BY (v.embedding <=> :query_vector) + 0 LIMIT :limit
)
SELECT memory_id, distance FROM approximate WHERE (SELECT count(*) FROM approximate) >= :limit
UNION ALL SELECT memory_id, distance FROM exact
ORDER BY distance LIMIT :limit;
