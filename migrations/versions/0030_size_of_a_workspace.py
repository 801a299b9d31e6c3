"""Let plans that are kept take a workspace for a large one

A plan made without values takes a workspace for as large as the average. Where a hundred thousand small tenants share
a database with one of a million memories, to read a whole workspace looked cheaper than ten rows by their keys: each
store of the large one would have read all its memories, edges and links. So ANALYZE is told of ten workspaces, however
many there are: what plans for values know of the commonest workspaces stays as it is.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

WORKSPACES = 10

EACH = """
DO $$
DECLARE
    here text;
BEGIN
    FOR here IN
        SELECT c.oid::regclass::text FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id' AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN workspace_id {change}', here);
        {then}
    END LOOP;
END $$;
"""

# Partitions by time are made one by one, and take no option from their parent.
LATER = """
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('make_partition'::regproc), {before}, {after});
END $$;
"""
MADE = "$q$    RETURN true;$q$"
TOLD = f"""$q$    EXECUTE format('ALTER TABLE %I ALTER COLUMN workspace_id SET (n_distinct = {WORKSPACES})', child);
    RETURN true;$q$"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    told = EACH.replace("{change}", f"SET (n_distinct = {WORKSPACES})")
    script(told.replace("{then}", "EXECUTE format('ANALYZE %s (workspace_id)', here);"))
    script(LATER.replace("{before}", MADE).replace("{after}", TOLD))
    op.execute("INSERT INTO schema_version (version, description) VALUES (30, 'size of a workspace')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(LATER.replace("{before}", TOLD).replace("{after}", MADE))
    script(EACH.replace("{change}", "RESET (n_distinct)").replace("{then}", ""))
    op.execute("DELETE FROM schema_version WHERE version = 30")
