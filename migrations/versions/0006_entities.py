"""Entities, and which memories name them"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE entity (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    name text NOT NULL,
    name_key text NOT NULL,
    type text NOT NULL,
    aliases text[] NOT NULL DEFAULT '{}',
    description text,
    extracted_by varchar(16) NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    first_seen timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_entity_workspace_id_user_id_channel_name_key
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, channel, name_key)
);
CREATE TABLE memory_entity (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_memory_entity PRIMARY KEY (workspace_id, memory_id, entity_id),
    CONSTRAINT fk_memory_entity_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_entity_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_memory_entity_entity ON memory_entity (workspace_id, entity_id);
"""

WALL = """
SELECT protect('entity'), protect('memory_entity');
GRANT SELECT, INSERT, UPDATE, DELETE ON entity, memory_entity TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(TABLES)
    script(WALL)
    op.execute("INSERT INTO schema_version (version, description) VALUES (6, 'entities')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE memory_entity, entity")
    op.execute("DELETE FROM schema_version WHERE version = 6")
