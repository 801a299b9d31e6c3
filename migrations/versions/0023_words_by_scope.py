"""The words of texts where the scope's index alone can read them

Which texts have a word of the question, and how much it weighs there, was read row by row, from as many pages as a
scope has rows: of 20,000 rows among a million, a third of a search. Beside the scope in an index, with all that says
whether a row may be seen, they are read from some hundred pages. Rows with many words would not fit into an index: they
have one of their own without words, and are read as before.

An entry of an index has at most 2,704 bytes (a third of a page): with the longest ids (512 bytes) and channel (100
characters of four bytes) there is room for 120 words, of 8 bytes each, in a text and its context together.

Scopes of a run are read as before, too: runs are short, and most rows have a user as well.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

WORDED = """
CREATE INDEX ix_memory_{owner}_words ON memory (workspace_id, {owner}_id, channel)
    INCLUDE (id, created_at, "timestamp", archived, expires_at, review_status, t_valid, t_invalid, {other}_id, bm25,
             context_bm25)
    WHERE {owner}_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) <= 120
"""
LONG = """
CREATE INDEX ix_memory_{owner}_long ON memory (workspace_id, {owner}_id)
    WHERE {owner}_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) > 120
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for owner, other in (("user", "agent"), ("agent", "user")):
        script(WORDED.format(owner=owner, other=other))
    for owner in ("user", "agent", "run"):
        script(LONG.format(owner=owner))
    op.execute("INSERT INTO schema_version (version, description) VALUES (23, 'words of texts by scope')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script("DROP INDEX ix_memory_user_words, ix_memory_agent_words")
    script("DROP INDEX ix_memory_user_long, ix_memory_agent_long, ix_memory_run_long")
    op.execute("DELETE FROM schema_version WHERE version = 23")
