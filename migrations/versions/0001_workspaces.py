"""Workspaces and API keys, and the wall around every tenant table

`protect(table)` forces row-level security and adds the two policies: the app sees the workspace of its
transaction, the owner everything. The setting is read without `missing_ok`: a forgotten workspace is an error,
not an empty answer. Functions that run before a workspace is known are SECURITY DEFINER with a fixed search_path.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PROTECT = """
CREATE FUNCTION protect(target regclass) RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant ON %s TO loxodon_app '
                   'USING (workspace_id = current_setting(''loxodon.workspace'')::uuid)', target);
    EXECUTE format('CREATE POLICY owner ON %s TO loxodon_owner USING (true)', target);
END $$
"""

TABLES = """
CREATE TABLE schema_version (
    version integer CONSTRAINT pk_schema_version PRIMARY KEY,
    description text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE workspace (
    workspace_id uuid CONSTRAINT pk_workspace PRIMARY KEY,
    name varchar(200) NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}'::jsonb,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE api_key (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(200) NOT NULL,
    key_hash varchar(64) NOT NULL,
    hint varchar(16) NOT NULL,
    rights text[] NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT pk_api_key PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_api_key_key_hash UNIQUE (key_hash),
    CONSTRAINT fk_api_key_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (workspace_id) ON DELETE CASCADE
);
"""

WALL = """
SELECT protect('workspace'), protect('api_key');
ALTER TABLE schema_version ENABLE ROW LEVEL SECURITY;
ALTER TABLE schema_version FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON schema_version FOR SELECT TO loxodon_app USING (true);
CREATE POLICY owner ON schema_version TO loxodon_owner USING (true);
GRANT SELECT ON schema_version TO loxodon_app;
GRANT SELECT, UPDATE (name, settings) ON workspace TO loxodon_app;
GRANT SELECT, INSERT, UPDATE (name, rights, expires_at, revoked_at) ON api_key TO loxodon_app;
"""

FUNCTIONS = """
CREATE FUNCTION find_api_key(wanted text)
RETURNS TABLE (workspace_id uuid, id uuid, rights text[], user_id text, agent_id text, run_id text, channel varchar,
               expires_at timestamptz, settings jsonb)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT k.workspace_id, k.id, k.rights, k.user_id, k.agent_id, k.run_id, k.channel, k.expires_at, w.settings
    FROM api_key k JOIN workspace w USING (workspace_id)
    WHERE k.key_hash = wanted AND k.revoked_at IS NULL
$$;
CREATE FUNCTION create_workspace(new_workspace uuid, workspace_name text, new_key uuid, key_name text, hash text,
                                 hint text, key_rights text[])
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO workspace (workspace_id, name) VALUES (new_workspace, workspace_name);
    INSERT INTO api_key (workspace_id, id, name, key_hash, hint, rights)
    VALUES (new_workspace, new_key, key_name, hash, hint, key_rights);
$$;
REVOKE EXECUTE ON FUNCTION protect(regclass), find_api_key(text),
    create_workspace(uuid, text, uuid, text, text, text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key(text), create_workspace(uuid, text, uuid, text, text, text, text[])
    TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (PROTECT, TABLES, WALL, FUNCTIONS):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (1, 'workspaces and keys')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION create_workspace(uuid, text, uuid, text, text, text, text[]), find_api_key(text)")
    op.execute("DROP TABLE api_key, workspace, schema_version")
    op.execute("DROP FUNCTION protect(regclass)")
