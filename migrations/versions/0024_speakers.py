"""Who speaks in a scope, without reading its rows

Each search asks for the names of those who speak in the scope. In one of a million memories without any that took
0.6 s, once in ten seconds. From an index in the order of the names it is one step per name. Only memories that came out
of messages with a name have an entry.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

OWNERS = ("user", "agent", "run")

SPEAKERS = """
CREATE INDEX ix_memory_{owner}_speaker ON memory (workspace_id, {owner}_id, speaker, channel)
    WHERE {owner}_id IS NOT NULL AND speaker IS NOT NULL
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for owner in OWNERS:
        script(SPEAKERS.format(owner=owner))
    op.execute("INSERT INTO schema_version (version, description) VALUES (24, 'speakers of a scope')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for owner in OWNERS:
        op.execute(f"DROP INDEX ix_memory_{owner}_speaker")
    op.execute("DELETE FROM schema_version WHERE version = 24")
