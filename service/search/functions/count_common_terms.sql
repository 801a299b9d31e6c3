-- Sums term_stat over all workspaces into rows of the nil workspace; returns how many rows were written.
CREATE OR REPLACE FUNCTION count_common_terms(min_workspaces integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    nil constant uuid := '00000000-0000-0000-0000-000000000000';
    made bigint;
BEGIN
    DELETE FROM term_stat t WHERE t.workspace_id = nil OR NOT EXISTS
        (SELECT FROM workspace w WHERE w.workspace_id = t.workspace_id);
    -- words of only one or two tenants must not affect another tenant's scores
    INSERT INTO term_stat (workspace_id, term, texts, contexts)
    SELECT nil, t.term, least(sum(t.texts), 2147483647), least(sum(t.contexts), 2147483647)
    FROM term_stat t GROUP BY t.term HAVING t.term = 0 OR count(*) >= min_workspaces
    ON CONFLICT DO NOTHING;  -- else Citus would copy them into the table, which row-level security refuses
    GET DIAGNOSTICS made = ROW_COUNT;
    RETURN made;
END $$;

GRANT EXECUTE ON FUNCTION count_common_terms TO loxodon_worker;
