-- How large a scope is and who speaks in it (candidates.py).
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set channel '''_global'''
\set most '150000'
\set speakers '200'
\set user_id '''alice'''
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

WITH RECURSIVE named AS (
    (SELECT m.speaker FROM memory m WHERE m.workspace_id = :workspace
        AND m.user_id = :user_id
        AND m.channel = :channel
        AND m.speaker IS NOT NULL ORDER BY m.speaker LIMIT 1)
    UNION ALL
    SELECT next.speaker FROM named CROSS JOIN LATERAL (
        SELECT m.speaker FROM memory m WHERE m.workspace_id = :workspace
            AND m.user_id = :user_id
            AND m.channel = :channel
            AND m.speaker > named.speaker ORDER BY m.speaker LIMIT 1
    ) next
)
SELECT (SELECT count(*) FROM (SELECT FROM memory m WHERE m.workspace_id = :workspace
    AND m.user_id = :user_id
    AND m.channel = :channel LIMIT :most + 1) counted) AS rows,
       CAST(ARRAY(SELECT speaker FROM named LIMIT :speakers) AS text[]) AS speakers,
       EXISTS (SELECT FROM turn t WHERE t.workspace_id = :workspace
           AND t.user_id = :user_id
           AND t.channel = :channel) AS has_turns;
