"""Goals and strategies are found by their channel, and entities by a vector graph

The rest of R1.22, which asks for a channel index on six kinds, and of R1.20: goals and strategies came after the other
channel indexes, and the vectors of entities were the only searched ones without a graph.
"""

from __future__ import annotations

from alembic import context, op

from service.db.migrate import script

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

INDEXES = """
CREATE INDEX ix_goal_channel ON goal (workspace_id, channel);
CREATE INDEX ix_strategy_channel ON strategy (workspace_id, channel);
CREATE INDEX ix_entity_vector_hnsw_1 ON entity_vector
    USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WHERE generation = 1;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(INDEXES.format(dimension=context.config.attributes["settings"].embedding_dim))
    op.execute("INSERT INTO schema_version (version, description) VALUES (20, 'channels of goals and strategies')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP INDEX ix_goal_channel, ix_strategy_channel, ix_entity_vector_hnsw_1")
    op.execute("DELETE FROM schema_version WHERE version = 20")
