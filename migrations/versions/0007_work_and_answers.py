"""Jobs, operations, replayed answers, caches and decisions"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE job (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    kind varchar(50) NOT NULL,
    memory_id uuid,
    payload jsonb NOT NULL DEFAULT '{}'::jsonb,
    state varchar(8) NOT NULL DEFAULT 'ready'
        CONSTRAINT ck_job_state CHECK (state IN ('ready', 'running', 'done', 'dead')),
    priority smallint NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    worker text,
    lease_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT pk_job PRIMARY KEY (workspace_id, id)
) WITH (fillfactor = 80);
CREATE INDEX ix_job_ready ON job (workspace_id, priority, run_after) WHERE state = 'ready';
CREATE INDEX ix_job_running ON job (lease_until) WHERE state = 'running';
CREATE INDEX ix_job_finished ON job (finished_at) WHERE state = 'done';
CREATE INDEX ix_job_memory ON job (workspace_id, memory_id, kind) WHERE memory_id IS NOT NULL;
CREATE TABLE operation (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    kind varchar(50) NOT NULL,
    state varchar(8) NOT NULL
        CONSTRAINT ck_operation_state CHECK (state IN ('queued', 'running', 'done', 'failed')),
    request jsonb NOT NULL DEFAULT '{}'::jsonb,
    result jsonb,
    error jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT pk_operation PRIMARY KEY (workspace_id, id)
);
CREATE TABLE idempotency (
    workspace_id uuid NOT NULL,
    key varchar(255) NOT NULL,
    fingerprint varchar(64) NOT NULL,
    status smallint,
    body jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT pk_idempotency PRIMARY KEY (workspace_id, key)
);
CREATE INDEX ix_idempotency_expires ON idempotency (expires_at);
CREATE TABLE llm_cache (
    workspace_id uuid NOT NULL,
    prompt_sha256 varchar(64) NOT NULL,
    task varchar(50) NOT NULL,
    model text NOT NULL,
    answer jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT pk_llm_cache PRIMARY KEY (workspace_id, prompt_sha256)
);
CREATE INDEX ix_llm_cache_expires ON llm_cache (expires_at);
CREATE TABLE embedding_cache (
    workspace_id uuid NOT NULL,
    model text NOT NULL,
    text_sha256 varchar(64) NOT NULL,
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_embedding_cache PRIMARY KEY (workspace_id, model, text_sha256)
);
CREATE INDEX ix_embedding_cache_created ON embedding_cache (created_at);
CREATE TABLE decision (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    memory_id uuid,
    source varchar(16) NOT NULL,
    model text NOT NULL,
    prompt_sha256 varchar(64),
    candidates jsonb NOT NULL DEFAULT '[]'::jsonb,
    reply text,
    verdict jsonb NOT NULL,
    state varchar(16) NOT NULL CONSTRAINT ck_decision_state CHECK (state IN ('applied', 'rejected', 'undone')),
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_decision PRIMARY KEY (workspace_id, id)
);
CREATE INDEX ix_decision_memory ON decision (workspace_id, memory_id);
"""

WALL = """
SELECT protect('job'), protect('operation'), protect('idempotency'), protect('llm_cache'),
       protect('embedding_cache'), protect('decision');
GRANT SELECT, INSERT, UPDATE, DELETE ON job, operation, idempotency, llm_cache, embedding_cache, decision
    TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(TABLES)
    script(WALL)
    op.execute("INSERT INTO schema_version (version, description) VALUES (7, 'work and answers')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE decision, embedding_cache, llm_cache, idempotency, operation, job")
    op.execute("DELETE FROM schema_version WHERE version = 7")
