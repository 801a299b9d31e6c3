"""Working memory: what an agent holds in mind for an hour

UNLOGGED, so a write costs no write-ahead log: the table is empty after a crash, a failover or a restore, and cannot be
read on a standby (B5). A copy of a turn goes with the turn. `sweep_working` is how the worker removes what expired in
all workspaces; it gives back a number and nothing else.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLE = """
CREATE SEQUENCE working_item_seq;
CREATE UNLOGGED TABLE working_item (
    workspace_id uuid NOT NULL,
    session_id uuid NOT NULL,
    kind varchar(8) NOT NULL
        CONSTRAINT ck_working_item_kind CHECK (kind IN ('turn', 'item', 'thought', 'goal', 'session')),
    key text NOT NULL,
    user_id text,
    agent_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    conversation_id text NOT NULL,
    turn_id uuid,
    value jsonb NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('working_item_seq'),
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT pk_working_item PRIMARY KEY (workspace_id, session_id, kind, key),
    CONSTRAINT fk_working_item_turn FOREIGN KEY (workspace_id, turn_id)
        REFERENCES turn (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_working_item_turn ON working_item (workspace_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ix_working_item_user ON working_item (workspace_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_working_item_agent ON working_item (workspace_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_working_item_expires ON working_item (expires_at);
"""

# SKIP LOCKED and a limit: the sweeper waits for no request, and none for it.
SWEEP = """
CREATE FUNCTION sweep_working(at timestamptz, batch integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    removed bigint;
BEGIN
    DELETE FROM working_item WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM working_item WHERE expires_at <= at ORDER BY expires_at LIMIT batch FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;
REVOKE EXECUTE ON FUNCTION sweep_working(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sweep_working(timestamptz, integer) TO loxodon_worker;
"""

WALL = """
SELECT protect('working_item');
GRANT SELECT, INSERT, UPDATE, DELETE ON working_item TO loxodon_app;
GRANT USAGE ON SEQUENCE working_item_seq TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (TABLE, SWEEP, WALL):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (13, 'working memory')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION sweep_working(timestamptz, integer)")
    op.execute("DROP TABLE working_item")
    op.execute("DROP SEQUENCE working_item_seq")
    op.execute("DELETE FROM schema_version WHERE version = 13")
