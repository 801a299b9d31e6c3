-- Row-level security, which isolates workspaces. It is forced on every table, so that it applies to its owner too.

-- Tables with a workspace: protect() adds the policies `tenant` and `owner`.
SELECT protect(c.oid) FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname;

-- Memories without an owner belong to the whole workspace. Only a transaction that declares it (Database.begin), for a
-- request with the right memory:share, and the worker can write them. Reads need no such rule: every key of the
-- workspace may see them. docs/decisions/041-shared-memories.md
DO $$
DECLARE
    target text;
    allowed constant text := '(user_id IS NOT NULL OR agent_id IS NOT NULL OR run_id IS NOT NULL '
        'OR current_setting(''loxodon.shared'', true) = ''on'' OR pg_has_role(''loxodon_worker'', ''USAGE''))';
BEGIN
    FOREACH target IN ARRAY ARRAY['memory', 'memory_vector'] LOOP
        EXECUTE format('CREATE POLICY shared_insert ON %I AS RESTRICTIVE FOR INSERT TO loxodon_app, loxodon_walled '
                       'WITH CHECK %s', target, allowed);
        EXECUTE format('CREATE POLICY shared_update ON %I AS RESTRICTIVE FOR UPDATE TO loxodon_app, loxodon_walled '
                       'USING %s', target, allowed);
        EXECUTE format('CREATE POLICY shared_delete ON %I AS RESTRICTIVE FOR DELETE TO loxodon_app, loxodon_walled '
                       'USING %s', target, allowed);
    END LOOP;
END $$;

-- The worker sees the queue of all workspaces.
CREATE POLICY worker ON job TO loxodon_worker USING (true);

-- All workspaces may read the counts of terms over all workspaces, stored under the nil workspace.
CREATE POLICY common ON term_stat FOR SELECT TO loxodon_app, loxodon_walled
    USING (workspace_id = '00000000-0000-0000-0000-000000000000');

-- Tables without a workspace: everyone may read them.
ALTER TABLE embedding_generation ENABLE ROW LEVEL SECURITY;
ALTER TABLE embedding_generation FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON embedding_generation FOR SELECT TO loxodon_app, loxodon_walled USING (true);
CREATE POLICY owner ON embedding_generation TO loxodon_owner USING (true);
ALTER TABLE schedule ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedule FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON schedule FOR SELECT TO loxodon_app USING (true);
CREATE POLICY worker ON schedule TO loxodon_worker USING (true);
CREATE POLICY owner ON schedule TO loxodon_owner USING (true);
ALTER TABLE token_secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE token_secret FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON token_secret TO loxodon_owner USING (true);
DO $$
BEGIN
    IF current_setting('server_version_num')::integer >= 170000 THEN
        GRANT MAINTAIN ON embedding_generation, schedule TO loxodon_worker;  -- as protect() does
    END IF;
END $$;
