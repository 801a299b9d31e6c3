"""Vectors by generation

The column has no length, so a new generation of another dimension fits beside the old one; each generation has a
CHECK on its length and a partial HNSW index of its own (m 16, ef_construction 64: pgvector's defaults). The number
of hash partitions and the first dimension are settings read here, once.
"""

from __future__ import annotations

from alembic import context, op

from service.db.migrate import script

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE embedding_generation (
    generation smallint CONSTRAINT pk_embedding_generation PRIMARY KEY,
    model text NOT NULL,
    dimension integer NOT NULL,
    calibration jsonb NOT NULL DEFAULT '{}'::jsonb,
    state text NOT NULL CONSTRAINT ck_embedding_generation_state CHECK (state IN ('active', 'building', 'retired')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE memory_vector (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    generation smallint NOT NULL,
    kind varchar(16) NOT NULL CONSTRAINT ck_memory_vector_kind CHECK (kind IN ('text', 'context', 'placeholder')),
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_memory_vector PRIMARY KEY (workspace_id, memory_id, generation, kind),
    CONSTRAINT fk_memory_vector_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
) PARTITION BY HASH (workspace_id);
"""

PARTITION = """
CREATE TABLE memory_vector_p{number} PARTITION OF memory_vector
    FOR VALUES WITH (MODULUS {modulus}, REMAINDER {number});
ALTER TABLE memory_vector_p{number} ALTER COLUMN embedding SET STORAGE MAIN;
SELECT protect('memory_vector_p{number}');
"""

FIRST_GENERATION = """
ALTER TABLE memory_vector ADD CONSTRAINT ck_memory_vector_dimension_1
    CHECK (generation <> 1 OR vector_dims(embedding) = {dimension});
CREATE INDEX ix_memory_vector_hnsw_1 ON memory_vector
    USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WHERE generation = 1 AND kind = 'text';
CREATE INDEX ix_memory_vector_user ON memory_vector (workspace_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_memory_vector_agent ON memory_vector (workspace_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_memory_vector_run ON memory_vector (workspace_id, run_id) WHERE run_id IS NOT NULL;
"""

WALL = """
SELECT protect('memory_vector');
ALTER TABLE embedding_generation ENABLE ROW LEVEL SECURITY;
ALTER TABLE embedding_generation FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON embedding_generation FOR SELECT TO loxodon_app USING (true);
CREATE POLICY owner ON embedding_generation TO loxodon_owner USING (true);
GRANT SELECT ON embedding_generation TO loxodon_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_vector TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    settings = context.config.attributes["settings"]
    script(TABLES)
    for number in range(settings.vector_partitions):
        script(PARTITION.format(number=number, modulus=settings.vector_partitions))
    script(FIRST_GENERATION.format(dimension=settings.embedding_dim))
    script(WALL)
    op.execute("INSERT INTO schema_version (version, description) VALUES (3, 'vectors by generation')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE memory_vector, embedding_generation")
    op.execute("DELETE FROM schema_version WHERE version = 3")
