-- Large scope without an embedder (approximate.py).
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
\set limit '10'
\set match_any 'false'
\set now '''2026-03-02T09:30:00+00:00''::timestamptz'
\set of_agent 'NULL'
\set of_channels '''{_global}'''
\set of_run 'NULL'
\set of_user '''alice'''
\set scan_limit '20000'
\set tags '''{boat}'''
\set text_idf '''{12:7.811633490807735,13:3.506401244490661}/1000000000''::sparsevec'
\set text_terms '''{11}'''
\set user_id '''alice'''
\set with_shared 'false'
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

(SELECT 'newest' AS arm, m.id, CAST(0 AS float8) AS place FROM memory m WHERE m.workspace_id = :workspace
    AND m.user_id = :user_id
    AND m.channel = :channel
    AND (m.expires_at IS NULL OR m.expires_at > :now)
    AND m.review_status IS NULL
    AND NOT m.archived
    AND (m.t_valid IS NULL OR m.t_valid <= :now)
    AND (m.t_invalid IS NULL OR m.t_invalid > :now OR m.t_invalid = m.valid_until)
    ORDER BY m.created_at DESC, m.id LIMIT :limit)

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
