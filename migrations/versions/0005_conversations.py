"""Conversations and turns: what was said, before anything is made of it"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE conversation (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    external_id text NOT NULL,
    title text,
    started_at timestamptz NOT NULL,
    turn_count integer NOT NULL DEFAULT 0,
    consolidated_at timestamptz,
    patterns_extracted boolean NOT NULL DEFAULT false,
    archived boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_conversation PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_conversation_workspace_id_user_id_agent_id_external_id
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, agent_id, external_id)
);
CREATE INDEX ix_conversation_unconsolidated ON conversation (workspace_id, created_at) WHERE consolidated_at IS NULL;
CREATE INDEX ix_conversation_channel ON conversation (workspace_id, user_id, channel);
CREATE TABLE turn (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    turn_index integer NOT NULL,
    user_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    role varchar(20) NOT NULL,
    speaker varchar(200),
    content text NOT NULL,
    content_hash varchar(64) NOT NULL,
    "timestamp" timestamptz NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_turn PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_turn_workspace_id_conversation_id_turn_index UNIQUE (workspace_id, conversation_id, turn_index),
    CONSTRAINT fk_turn_conversation FOREIGN KEY (workspace_id, conversation_id)
        REFERENCES conversation (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_turn_user ON turn (workspace_id, user_id, "timestamp" DESC);
CREATE TABLE memory_source (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    start integer,
    "end" integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_memory_source PRIMARY KEY (workspace_id, memory_id, turn_id),
    CONSTRAINT fk_memory_source_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_source_turn FOREIGN KEY (workspace_id, turn_id)
        REFERENCES turn (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_memory_source_turn ON memory_source (workspace_id, turn_id);
"""

WALL = """
SELECT protect('conversation'), protect('turn'), protect('memory_source');
GRANT SELECT, INSERT, UPDATE, DELETE ON conversation, turn, memory_source TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(TABLES)
    script(WALL)
    op.execute("INSERT INTO schema_version (version, description) VALUES (5, 'conversations and turns')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE memory_source, turn, conversation")
    op.execute("DELETE FROM schema_version WHERE version = 5")
