"""The worker may pass VACUUM over the tables, where Postgres knows that right (17)

What an erasure removes stays in the data files until VACUUM has passed. Up to Postgres 16 only the owner of a table may
run it, and the owner could read past the wall between tenants. MAINTAIN gives VACUUM, ANALYZE and REINDEX and no look
at a row. `protect` gives it to every table that is made from now on.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

PROTECT = """
CREATE OR REPLACE FUNCTION protect(target regclass) RETURNS void LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant ON %s TO loxodon_app '
                   'USING (workspace_id = current_setting(''loxodon.workspace'')::uuid)', target);
    EXECUTE format('CREATE POLICY owner ON %s TO loxodon_owner USING (true)', target);{more}
END $$
"""
MAINTAIN = """
    IF current_setting('server_version_num')::integer >= 170000 THEN
        EXECUTE format('GRANT MAINTAIN ON %s TO loxodon_worker', target);
    END IF;"""

EVERY = """
DO $$
DECLARE
    target regclass;
BEGIN
    IF current_setting('server_version_num')::integer >= 170000 THEN
        FOR target IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
            AND c.relkind IN ('r', 'p') AND c.relforcerowsecurity ORDER BY c.relname LOOP
            EXECUTE format('{what}', target);
        END LOOP;
    END IF;
END $$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(PROTECT.replace("{more}", MAINTAIN))
    script(EVERY.replace("{what}", "GRANT MAINTAIN ON %s TO loxodon_worker"))
    op.execute("INSERT INTO schema_version (version, description) VALUES (27, 'vacuum by the worker')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(EVERY.replace("{what}", "REVOKE MAINTAIN ON %s FROM loxodon_worker"))
    script(PROTECT.replace("{more}", ""))
    op.execute("DELETE FROM schema_version WHERE version = 27")
