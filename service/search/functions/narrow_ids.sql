-- Ids of the scope's memories that match three groups of filter keys and a range of time: all of `all_of`, one of
-- `any_of_1`, one of `any_of_2`; an empty group matches everything. NULL if an index does not make this cheap: more
-- than `max_ids` rows have the keys (or ten times as many before the range of time is applied).
--
-- Statistics of frequent keys choose between three ways:
--   1. only the most selective group, if few rows have its keys: comparing the hundreds of keys of a wide range with
--      each row costs more than reading the few rows of another group;
--   2. all groups together;
--   3. in a scope of at most 30,000 rows, the bitmaps of scope and keys: a key in the index costs a third of a row of
--      the table.
-- Ids are looked up twice, by the probe and by the search after it (service/search/statements/search_plan.py).
--
-- Row-level security does not apply inside, as in lexical_ids().
CREATE OR REPLACE FUNCTION narrow_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    since timestamptz,
    until timestamptz,
    all_of integer[],
    any_of_1 integer[],
    any_of_2 integer[],
    max_ids integer,
    match_any boolean DEFAULT false,
    with_shared boolean DEFAULT false
)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    scan_limit integer := CASE WHEN since IS NULL AND until IS NULL THEN max_ids ELSE 10 * max_ids END;
    medium_scope constant integer := 30000;
    indexed_rows real := (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'ix_memory_filter_keys'::regclass);
    frequent_keys integer[];
    frequencies real[];
    share_all real;  -- share of rows, 0..1, that have the keys of a group; NULL: the group is empty
    share_any_1 real;
    share_any_2 real;
    smallest_share real;
    fewest_rows real;
    narrowest integer;
    scope_size bigint;
    ids uuid[];
BEGIN
    SELECT s.most_common_elems::text::integer[], s.most_common_elem_freqs INTO frequent_keys, frequencies
    FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = 'ix_memory_filter_keys';
    SELECT min(known.share) FILTER (WHERE asked.number = 0), sum(known.share) FILTER (WHERE asked.number = 1),
           sum(known.share) FILTER (WHERE asked.number = 2)
    INTO share_all, share_any_1, share_any_2
    FROM (SELECT 0, unnest(all_of) UNION ALL SELECT 1, unnest(any_of_1) UNION ALL SELECT 2, unnest(any_of_2))
        AS asked (number, key)
    CROSS JOIN LATERAL (
        SELECT coalesce(frequencies[array_position(frequent_keys, asked.key)], 0) AS share) known;
    smallest_share := least(share_all, share_any_1, share_any_2);
    fewest_rows := indexed_rows * smallest_share;

    -- 1. The shares are accurate to a few hundredths, hence a quarter more than may be scanned.
    IF fewest_rows <= 1.25 * scan_limit THEN
        narrowest := CASE smallest_share WHEN share_all THEN 0 WHEN share_any_1 THEN 1 ELSE 2 END;
        ids := ids_with_keys(of_user, of_agent, of_run, of_channels, since, until,
                             CASE narrowest WHEN 0 THEN all_of ELSE '{}' END,
                             CASE narrowest WHEN 1 THEN any_of_1 ELSE '{}' END,
                             CASE narrowest WHEN 2 THEN any_of_2 ELSE '{}' END,
                             scan_limit, max_ids, match_any, with_shared, false);
    END IF;

    -- 2.
    IF ids IS NULL AND num_nonnulls(share_all, share_any_1, share_any_2) > 1
            AND fewest_rows <= 10 * scan_limit
            AND indexed_rows * coalesce(share_all, 1) * coalesce(share_any_1, 1) * coalesce(share_any_2, 1)
                <= 2 * scan_limit THEN
        ids := ids_with_keys(of_user, of_agent, of_run, of_channels, since, until, all_of, any_of_1, any_of_2,
                             scan_limit, max_ids, match_any, with_shared, false);
    END IF;

    -- 3. Counting a scope takes 0.1 ms per thousand rows.
    IF ids IS NULL AND (with_shared OR num_nonnulls(of_user, of_agent, of_run) > 0)
            AND fewest_rows <= 1.5 * medium_scope THEN
        scope_size := count_scope_rows(of_user, of_agent, of_run, of_channels, medium_scope, match_any, with_shared);
        IF scope_size <= medium_scope AND fewest_rows <= 1.5 * scope_size THEN
            ids := ids_with_keys(of_user, of_agent, of_run, of_channels, since, until, all_of, any_of_1, any_of_2,
                                 max_ids, max_ids, match_any, with_shared, true);
        END IF;
    END IF;
    RETURN ids;
END $$;

GRANT EXECUTE ON FUNCTION narrow_ids TO loxodon_app, loxodon_walled;
