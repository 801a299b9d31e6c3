-- Generations of vectors, one per embedding model; stored answers; caches.
--
-- Vectors have no fixed length, so a new generation of another dimension fits next to the old one. Each generation has
-- its own CHECK on the length and its own partial HNSW index. `:dimension` is the length of generation 1.
-- docs/decisions/065-re-embedding.md

-- building: vectors are being made; active: searches use it; retired: kept for a rollback; dropped: its vectors are
-- deleted, or soon will be, and its number is never used again, because history refers to it.
CREATE TABLE embedding_generation (
    generation smallint CONSTRAINT pk_embedding_generation PRIMARY KEY,
    model text NOT NULL,
    dimension integer NOT NULL,
    calibration jsonb NOT NULL DEFAULT '{}'::jsonb,
    state text NOT NULL
        CONSTRAINT ck_embedding_generation_state CHECK (state IN ('active', 'building', 'retired', 'dropped')),
    created_at timestamptz NOT NULL DEFAULT now(),
    activated_at timestamptz
);
CREATE UNIQUE INDEX ix_embedding_generation_active ON embedding_generation (state) WHERE state IN ('active', 'building');

CREATE TABLE idempotency (
    workspace_id uuid NOT NULL,
    key varchar(255) NOT NULL,
    fingerprint varchar(64) NOT NULL,
    status smallint,
    body jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel text,
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
