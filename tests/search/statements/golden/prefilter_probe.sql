-- Does an index leave few rows? (prefilter.py)
-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again.

SELECT set_config('loxodon.workspace', '00000000-0000-0000-0000-000000000001', false);
\set all_of_categories '''{}'''
\set all_of_metadata '''{"project": ["atlas"]}'''
\set all_of_words '''{travel}'''
\set any_of_1_categories '''{}'''
\set any_of_1_metadata '''{}'''
\set any_of_1_words '''{}'''
\set any_of_2_categories '''{}'''
\set any_of_2_metadata '''{}'''
\set any_of_2_words '''{}'''
\set match_any 'false'
\set max_few '5000'
\set of_agent 'NULL'
\set of_channels '''{_global}'''
\set of_run 'NULL'
\set of_user '''alice'''
\set since 'NULL'
\set until 'NULL'
\set with_shared 'false'
\set workspace '''00000000-0000-0000-0000-000000000001''::uuid'

SELECT CASE WHEN narrow_ids(
        CAST(:of_user AS text), CAST(:of_agent AS text), CAST(:of_run AS text), CAST(:of_channels AS text[]),
        :since, :until,
        memory_filter_keys(:workspace, CAST(:all_of_words AS text[]), '{}', CAST(:all_of_categories AS text[]),
            '{}', CAST(CAST(:all_of_metadata AS text) AS jsonb), false),
        memory_filter_keys(:workspace, CAST(:any_of_1_words AS text[]), '{}', CAST(:any_of_1_categories AS text[]),
            '{}', CAST(CAST(:any_of_1_metadata AS text) AS jsonb), false),
        memory_filter_keys(:workspace, CAST(:any_of_2_words AS text[]), '{}', CAST(:any_of_2_categories AS text[]),
            '{}', CAST(CAST(:any_of_2_metadata AS text) AS jsonb), false),
        CAST(:max_few AS integer), :match_any, :with_shared) IS NOT NULL THEN 'filter keys' END AS narrowed_by;
