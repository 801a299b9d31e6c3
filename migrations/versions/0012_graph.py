"""The entity graph: other names, relations with their evidence, vectors, and merges that can be taken back

A relation stands between two entities once per normalised type, however often it is said; `entity_edge_source` tells
which memories say it. One that was read out of texts goes with the last of them, whichever way that goes: by request,
by cascade, by an erasure. Hence a trigger, the only place that all of these pass.

Walks read the strongest edges of a node, so each direction has an index in that order: without it a node with 100,000
edges was sorted for every hop.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

ENTITY = """
ALTER TABLE entity
    ADD COLUMN salience double precision NOT NULL DEFAULT 0.5
        CONSTRAINT ck_entity_salience CHECK (salience >= 0 AND salience <= 1),
    ADD COLUMN access_count integer NOT NULL DEFAULT 0,
    ADD COLUMN last_accessed timestamptz,
    ADD COLUMN version bigint NOT NULL DEFAULT 1,
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX ix_entity_name ON entity (workspace_id, name_key);
ALTER TABLE memory_entity ADD COLUMN extracted_by varchar(16) NOT NULL DEFAULT 'rules';
CREATE TABLE entity_alias (
    workspace_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    alias_key text NOT NULL,
    alias text NOT NULL,
    user_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_alias PRIMARY KEY (workspace_id, entity_id, alias_key),
    CONSTRAINT uq_entity_alias_workspace_id_user_id_channel_alias_key
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, channel, alias_key),
    CONSTRAINT fk_entity_alias_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_alias_key ON entity_alias (workspace_id, alias_key);
CREATE TABLE entity_vector (
    workspace_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    generation smallint NOT NULL,
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_vector PRIMARY KEY (workspace_id, entity_id, generation),
    CONSTRAINT fk_entity_vector_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
"""

EDGE = """
CREATE TABLE entity_edge (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    source_id uuid NOT NULL,
    rel_type varchar(64) NOT NULL,
    label varchar(200) NOT NULL,
    target_id uuid NOT NULL,
    strength double precision NOT NULL DEFAULT 1,
    confidence double precision NOT NULL DEFAULT 1,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    t_valid timestamptz,
    t_invalid timestamptz,
    extracted_by varchar(16) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_edge PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_entity_edge_workspace_id_source_id_target_id_rel_type
        UNIQUE (workspace_id, source_id, target_id, rel_type),
    CONSTRAINT ck_entity_edge_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT ck_entity_edge_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT ck_entity_edge_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_entity_edge_ends CHECK (source_id <> target_id),
    CONSTRAINT fk_entity_edge_source FOREIGN KEY (workspace_id, source_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_entity_edge_target FOREIGN KEY (workspace_id, target_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_edge_source ON entity_edge (workspace_id, source_id, strength DESC, target_id);
CREATE INDEX ix_entity_edge_target ON entity_edge (workspace_id, target_id, strength DESC, source_id);
CREATE INDEX ix_entity_edge_source_type ON entity_edge (workspace_id, source_id, rel_type, strength DESC, target_id);
CREATE INDEX ix_entity_edge_target_type ON entity_edge (workspace_id, target_id, rel_type, strength DESC, source_id);
CREATE TABLE entity_edge_source (
    workspace_id uuid NOT NULL,
    edge_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    extracted_by varchar(16) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_edge_source PRIMARY KEY (workspace_id, edge_id, memory_id),
    CONSTRAINT fk_entity_edge_source_entity_edge FOREIGN KEY (workspace_id, edge_id)
        REFERENCES entity_edge (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_entity_edge_source_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_edge_source_memory ON entity_edge_source (workspace_id, memory_id);
CREATE INDEX ix_memory_edge_source_strength ON memory_edge (workspace_id, source_id, strength DESC, target_id);
CREATE INDEX ix_memory_edge_target_strength ON memory_edge (workspace_id, target_id, strength DESC, source_id);
"""

MERGE = """
CREATE TABLE entity_merge (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    entity_id uuid NOT NULL,
    absorbed_id uuid NOT NULL,
    absorbed jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    undone_at timestamptz,
    CONSTRAINT pk_entity_merge PRIMARY KEY (workspace_id, id),
    CONSTRAINT fk_entity_merge_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_merge_entity ON entity_merge (workspace_id, entity_id);
"""

# The edge is locked before its evidence is counted: two deletes that take the last two memories do not both see the
# other's. Whoever deletes many memories locks their edges by ascending id before (service/db/erasure/erase.py).
EVIDENCE = """
CREATE FUNCTION drop_unsaid_edge() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM entity_edge e WHERE e.workspace_id = OLD.workspace_id AND e.id = OLD.edge_id FOR UPDATE;
    DELETE FROM entity_edge e
    WHERE e.workspace_id = OLD.workspace_id AND e.id = OLD.edge_id AND e.extracted_by <> 'caller'
      AND NOT EXISTS (SELECT FROM entity_edge_source s WHERE s.workspace_id = OLD.workspace_id
                      AND s.edge_id = OLD.edge_id);
    RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION drop_unsaid_edge() FROM PUBLIC;
CREATE TRIGGER unsaid AFTER DELETE ON entity_edge_source FOR EACH ROW EXECUTE FUNCTION drop_unsaid_edge();
"""

WALL = """
SELECT protect('entity_alias'), protect('entity_vector'), protect('entity_edge'), protect('entity_edge_source'),
       protect('entity_merge');
GRANT SELECT, INSERT, UPDATE, DELETE ON entity_alias, entity_vector, entity_edge, entity_edge_source, entity_merge
    TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (ENTITY, EDGE, MERGE, EVIDENCE, WALL):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (12, 'entity graph')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP INDEX ix_memory_edge_source_strength, ix_memory_edge_target_strength")
    op.execute("DROP TABLE entity_merge, entity_edge_source, entity_edge, entity_vector, entity_alias")
    op.execute("DROP FUNCTION drop_unsaid_edge()")
    op.execute("ALTER TABLE memory_entity DROP COLUMN extracted_by")
    op.execute("DROP INDEX ix_entity_name")
    script("""
        ALTER TABLE entity DROP COLUMN salience, DROP COLUMN access_count, DROP COLUMN last_accessed,
            DROP COLUMN version, DROP COLUMN updated_at
    """)
    op.execute("DELETE FROM schema_version WHERE version = 12")
