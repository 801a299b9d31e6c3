"""How much work is due, for the health route: a number over all workspaces and nothing else"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

FUNCTION = """
CREATE FUNCTION queue_depth() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    -- counting stops at 10,000: a health check must stay cheap when the queue is long
    SELECT count(*)::integer FROM (SELECT 1 FROM job WHERE state = 'ready' AND run_after <= now() LIMIT 10000) due
$$;
REVOKE EXECUTE ON FUNCTION queue_depth() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION queue_depth() TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(FUNCTION)
    op.execute("INSERT INTO schema_version (version, description) VALUES (9, 'queue depth')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION queue_depth()")
    op.execute("DELETE FROM schema_version WHERE version = 9")
