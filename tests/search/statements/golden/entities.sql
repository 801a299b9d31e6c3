-- Memories that name the entities of a query (candidates.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set arm '50'
\set channel '''_global'''
\set fan '5'
\set links '200'
\set most '50'
\set names '''{zenobia}'''
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set user_id '''alice'''
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH known AS MATERIALIZED (
    SELECT e.id, e.name_key, e.name_key AS named_as FROM entity e
    WHERE e.workspace_id = :workspace AND e.user_id = :user_id AND e.name_key = ANY (CAST(:names AS text[]))
    UNION ALL
    SELECT e.id, e.name_key, a.alias_key FROM entity_alias a CROSS JOIN LATERAL (SELECT * FROM entity WHERE entity.workspace_id = :workspace
        AND entity.id >= a.entity_id
        AND entity.id <= a.entity_id ORDER BY entity.id LIMIT 1) e
    WHERE a.workspace_id = :workspace AND a.user_id = :user_id AND a.alias_key = ANY (CAST(:names AS text[]))
    LIMIT :most
), next_to AS MATERIALIZED (
    SELECT n.id, n.name_key, edge.strength
    FROM known x CROSS JOIN LATERAL (
        (SELECT target_id AS other, strength FROM entity_edge f WHERE f.workspace_id = :workspace AND f.source_id = x.id
           
                AND (f.t_valid IS NULL OR f.t_valid <= :now)
                AND (f.t_invalid IS NULL OR f.t_invalid > :now) ORDER BY strength DESC, target_id LIMIT :fan)
        UNION ALL
        (SELECT source_id, strength FROM entity_edge f WHERE f.workspace_id = :workspace AND f.target_id = x.id
           
                AND (f.t_valid IS NULL OR f.t_valid <= :now)
                AND (f.t_invalid IS NULL OR f.t_invalid > :now) ORDER BY strength DESC, source_id LIMIT :fan)
    ) edge CROSS JOIN LATERAL (SELECT * FROM entity WHERE entity.workspace_id = :workspace
        AND entity.id >= edge.other
        AND entity.id <= edge.other ORDER BY entity.id LIMIT 1) n
    WHERE n.name_key NOT IN (SELECT name_key FROM known) ORDER BY edge.strength DESC, n.id LIMIT :most
), linked AS MATERIALIZED (
    SELECT x.name_key, x.is_named, ARRAY(
        SELECT m.id FROM (SELECT * FROM memory WHERE memory.workspace_id = :workspace
            AND memory.id = ANY (links.ids) ORDER BY memory.id OFFSET 0) m
        WHERE cardinality(links.ids) <= :links
            AND m.workspace_id = :workspace
            AND m.user_id = :user_id
            AND m.channel = :channel
            AND (m.expires_at IS NULL OR m.expires_at > :now)
            AND m.review_status IS NULL
            AND NOT m.archived
            AND (m.t_valid IS NULL OR m.t_valid <= :now)
            AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
    ) AS ids
    FROM (SELECT id, name_key, true AS is_named FROM known UNION ALL SELECT id, name_key, false FROM next_to) x,
    LATERAL (
        SELECT ARRAY(SELECT l.memory_id FROM memory_entity l WHERE l.workspace_id = :workspace AND l.entity_id = x.id
                     LIMIT :links + 1) AS ids OFFSET 0
    ) links
)
SELECT id, ARRAY[name_key] AS names, named_as, CAST(NULL AS float8) AS strength, CAST(NULL AS float8[]) AS texts
FROM known
UNION ALL SELECT id, ARRAY[name_key], NULL, strength, NULL FROM next_to
UNION ALL (SELECT l.id, array_agg(l.name_key), NULL, NULL, array_agg(l.texts)
    FROM (SELECT unnest(ids) AS id, name_key, is_named, texts::float8
          FROM (SELECT *, sum(cardinality(ids)) OVER (PARTITION BY name_key) AS texts FROM linked) counted) l
    GROUP BY l.id ORDER BY bool_or(l.is_named) DESC, sum(1 / l.texts) DESC, l.id LIMIT :arm);
