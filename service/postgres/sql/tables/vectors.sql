-- Vectors of memories, by generation: one generation per embedding model.
--
-- `embedding` has no fixed length, so a new generation of another dimension fits beside the old one. Each generation
-- has a CHECK on its length and a partial HNSW index of its own. `:dimension` is the length of generation 1.
-- docs/decisions/065-re-embedding.md

-- building: vectors are being made; active: searches use it; retired: kept, so that one can go back; dropped: its vectors
-- are gone or going, and its number is never given again, because history names it.
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

-- Apart from the row so that scans stay narrow, with the columns a search filters by. `binary_embedding` has one bit
-- per component, and is read from the btrees of a scope.
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
    binary_embedding bit varying GENERATED ALWAYS AS (binary_quantize(embedding)) STORED,
    CONSTRAINT pk_memory_vector PRIMARY KEY (workspace_id, memory_id, generation, kind),
    CONSTRAINT ck_memory_vector_dimension_1 CHECK (generation <> 1 OR vector_dims(embedding) = :dimension),
    CONSTRAINT fk_memory_vector_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
) PARTITION BY HASH (workspace_id);

-- Binary quantised vectors of a scope without touching the table: 20,000 of them lie in some hundred pages.
CREATE INDEX ix_memory_vector_user ON memory_vector (workspace_id, user_id, kind)
    INCLUDE (memory_id, generation, channel, agent_id, run_id, binary_embedding)
    WHERE user_id IS NOT NULL;
CREATE INDEX ix_memory_vector_agent ON memory_vector (workspace_id, agent_id, kind)
    INCLUDE (memory_id, generation, channel, user_id, run_id, binary_embedding)
    WHERE agent_id IS NOT NULL;
CREATE INDEX ix_memory_vector_run ON memory_vector (workspace_id, run_id, kind)
    INCLUDE (memory_id, generation, channel, user_id, agent_id, binary_embedding)
    WHERE run_id IS NOT NULL;
CREATE INDEX ix_memory_vector_shared ON memory_vector (workspace_id, kind)
    INCLUDE (memory_id, generation, channel, binary_embedding)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL;

-- m = 24: with pgvector's 16, 3 of 60 queries among 200,000 vectors of near-equal texts found none of their ten
-- nearest; 32 gave no more. ef_construction = 200: with 64 whole clusters had no way in (recall@10 .96, now .997).
CREATE INDEX ix_memory_vector_hnsw_1 ON memory_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops) WITH (m = 24, ef_construction = 200)
    WHERE generation = 1 AND kind = 'text';
