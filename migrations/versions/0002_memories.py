"""Memories, and beside them what reads and jobs change

Only leakproof conditions (btree equality and ranges) can use an index under row-level security, so the scope has
btree indexes and everything else is a filter behind them. The unique index is what ends a race of equal adds: it
counts only rows that take part in deduplication and are alive.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MEMORY = """
CREATE TABLE memory (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    session_id text,
    content text NOT NULL,
    hash varchar(32) NOT NULL,
    dedup_key varchar(32),
    terms integer[] NOT NULL DEFAULT '{}',
    bm25 sparsevec(1000000000),
    context_terms integer[] NOT NULL DEFAULT '{}',
    context_bm25 sparsevec(1000000000),
    type text NOT NULL,
    type_confidence double precision NOT NULL,
    classification_source text NOT NULL,
    fact_confidence double precision,
    importance double precision NOT NULL,
    importance_level smallint NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    tag_prefixes text[] NOT NULL DEFAULT '{}',
    categories text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    "timestamp" timestamptz NOT NULL,
    t_valid timestamptz,
    t_invalid timestamptz,
    temporal_type text,
    valid_until timestamptz,
    temporal_tag text,
    mentions jsonb NOT NULL DEFAULT '[]'::jsonb,
    role varchar(20),
    speaker varchar(200),
    conversation_id uuid,
    turn_index integer,
    summary varchar(240),
    enriched_at timestamptz,
    enrichment_attempts smallint NOT NULL DEFAULT 0,
    embedding_status text NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT pk_memory PRIMARY KEY (workspace_id, id),
    CONSTRAINT ck_memory_content CHECK (char_length(content) >= 1),
    CONSTRAINT ck_memory_type CHECK (type IN
        ('Decision', 'Pattern', 'Preference', 'Style', 'Habit', 'Insight', 'Context')),
    CONSTRAINT ck_memory_type_confidence CHECK (type_confidence >= 0 AND type_confidence <= 1),
    CONSTRAINT ck_memory_fact_confidence CHECK (fact_confidence >= 0 AND fact_confidence <= 1),
    CONSTRAINT ck_memory_importance CHECK (importance >= 0 AND importance <= 1),
    CONSTRAINT ck_memory_importance_level CHECK (importance_level >= 1 AND importance_level <= 10),
    CONSTRAINT ck_memory_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_memory_temporal_type CHECK (temporal_type IN ('persistent', 'temporal')),
    CONSTRAINT ck_memory_temporal_tag CHECK (temporal_tag IN ('current', 'past', 'future')),
    CONSTRAINT ck_memory_embedding_status CHECK (embedding_status IN ('stored', 'queued', 'placeholder')),
    CONSTRAINT ck_memory_enrichment_attempts CHECK (enrichment_attempts >= 0 AND enrichment_attempts <= 3)
);
"""

INDEXES = """
CREATE INDEX ix_memory_user ON memory (workspace_id, user_id, created_at DESC, id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_memory_agent ON memory (workspace_id, agent_id, created_at DESC, id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_memory_run ON memory (workspace_id, run_id, created_at DESC, id) WHERE run_id IS NOT NULL;
CREATE INDEX ix_memory_created ON memory (workspace_id, created_at DESC, id);
CREATE INDEX ix_memory_timestamp ON memory (workspace_id, "timestamp" DESC);
CREATE INDEX ix_memory_importance ON memory (workspace_id, importance DESC, "timestamp" DESC);
CREATE INDEX ix_memory_hash ON memory (workspace_id, hash);
CREATE UNIQUE INDEX uq_memory_dedup
    ON memory (workspace_id, user_id, agent_id, run_id, channel, dedup_key) NULLS NOT DISTINCT
    WHERE dedup_key IS NOT NULL AND NOT archived;
"""

STAT = """
CREATE TABLE memory_stat (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    relevance double precision NOT NULL DEFAULT 1,
    salience double precision NOT NULL DEFAULT 0.5,
    access_count integer NOT NULL DEFAULT 0,
    last_accessed timestamptz NOT NULL,
    base_relevance double precision NOT NULL DEFAULT 1,
    base_salience double precision NOT NULL DEFAULT 0.5,
    base_confidence double precision,
    stale_at timestamptz,
    CONSTRAINT pk_memory_stat PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT fk_memory_stat_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
) WITH (fillfactor = 70);
"""

WALL = """
SELECT protect('memory'), protect('memory_stat');
GRANT SELECT, INSERT, UPDATE, DELETE ON memory, memory_stat TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (MEMORY, INDEXES, STAT, WALL):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (2, 'memories')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE memory_stat, memory")
    op.execute("DELETE FROM schema_version WHERE version = 2")
