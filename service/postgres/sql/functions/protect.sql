-- Forces row-level security on a table: the app sees the workspace of its transaction, the owner everything. The
-- setting is read without missing_ok, so a forgotten workspace is an error, not an empty answer. From Postgres 17 on
-- the worker may VACUUM it; before that only the owner may. docs/decisions/002-row-level-security.md
CREATE OR REPLACE FUNCTION protect(target regclass)
RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant ON %s TO loxodon_app, loxodon_walled '
                   'USING (workspace_id = current_setting(''loxodon.workspace'')::uuid)', target);
    EXECUTE format('CREATE POLICY owner ON %s TO loxodon_owner USING (true)', target);
    IF current_setting('server_version_num')::integer >= 170000 THEN
        EXECUTE format('GRANT MAINTAIN ON %s TO loxodon_worker', target);
    END IF;
END $$;
