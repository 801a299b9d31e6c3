"""The whole schema, as it was at the first release

0001_baseline.sql is a frozen copy of service/db/sql, where the current text of every table, function, trigger, policy
and right stands. Until something is released the copy may be made anew (`make schema-freeze`). From then on a change
of the schema is a migration of its own, with a frozen copy of what it changes.
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

from service.db.migrate import script

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Other schemas, extensions and Alembic's own table stay.
EMPTY = """
DO $$
DECLARE
    target record;
BEGIN
    FOR target IN
        SELECT c.oid::regclass::text AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind
        FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relowner = 'loxodon_owner'::regrole
            AND c.relkind IN ('r', 'p', 'S') AND NOT c.relispartition AND c.relname <> 'alembic_version'
        ORDER BY c.relkind
    LOOP
        EXECUTE format('DROP %s %s CASCADE', target.kind, target.name);
    END LOOP;
    FOR target IN
        SELECT p.oid::regprocedure::text AS name FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.proowner = 'loxodon_owner'::regrole
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', target.name);
    END LOOP;
END $$;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(Path(__file__).with_suffix(".sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(EMPTY)
