-- Memories that name the entities of a query (entity_arm.py).
-- Rendered by tests/db/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set arm '100'
\set channel '''_global'''
\set entities '''{00000000-0000-0000-0000-000000000002}'''
\set keys '''{zenobia}'''
\set links '5000'
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set query_keys '''{zenobia}'''
\set user_id '''alice'''
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH linked AS (
    SELECT DISTINCT l.memory_id, x.name_key
    FROM unnest(CAST(:entities AS uuid[]), CAST(:keys AS text[])) AS x (id, name_key)
    JOIN memory_entity l ON l.workspace_id = :workspace AND l.entity_id = x.id
    JOIN memory m ON m.workspace_id = l.workspace_id AND m.id = l.memory_id
    WHERE (SELECT count(*) FROM (SELECT FROM memory_entity f
                                 WHERE f.workspace_id = :workspace AND f.entity_id = x.id LIMIT :links + 1) c) <= :links
     
          AND m.workspace_id = :workspace
          AND m.user_id = :user_id
          AND m.channel = :channel
          AND (m.expires_at IS NULL OR m.expires_at > :now)
          AND m.review_status IS NULL
          AND NOT m.archived
          AND (m.t_valid IS NULL OR m.t_valid <= :now)
          AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
), counted AS (
    SELECT name_key, count(*)::float8 AS texts FROM linked GROUP BY name_key
)
SELECT l.memory_id, array_agg(l.name_key) AS names, array_agg(c.texts) AS texts
FROM linked l JOIN counted c USING (name_key)
GROUP BY l.memory_id
ORDER BY bool_or(l.name_key = ANY (CAST(:query_keys AS text[]))) DESC, sum(1 / c.texts) DESC, l.memory_id LIMIT :arm;
