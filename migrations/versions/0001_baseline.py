"""The whole schema, as it was at the first release

Until something is released it runs the files that service/postgres/tables.py lists, and a change of the schema is a
change of those files alone. At the first release `schema.script()` is frozen next to it as 0001_baseline.sql, which it
then runs; from then on a change is a migration of its own, with a frozen copy of what it changes.
"""

from __future__ import annotations

from alembic import op

from service.postgres import tables
from service.postgres.migrate import script

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
    script(tables.schema_script())
    op.execute(f"COMMENT ON TABLE migration IS '{tables.schema_fingerprint()}'")  # for migrate.MADE_FROM


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(EMPTY)
