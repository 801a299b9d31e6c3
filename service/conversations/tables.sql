-- Conversations, their turns and the turns' vectors, the memories read from turns, and the append-only log.

-- `external_id`: the caller's name for it. `is_run`: it was opened for the run of that name, not for a session.
CREATE TABLE conversation (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    external_id text NOT NULL,
    is_run boolean NOT NULL DEFAULT true,
    title text,
    started_at timestamptz NOT NULL,
    turn_count integer NOT NULL DEFAULT 0,
    consolidated_at timestamptz,
    consolidated_turns integer NOT NULL DEFAULT 0,
    patterns_extracted boolean NOT NULL DEFAULT false,
    archived boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_conversation PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_conversation_identity
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, agent_id, external_id, channel, is_run)
);
CREATE INDEX ix_conversation_unconsolidated ON conversation (workspace_id, created_at) WHERE consolidated_at IS NULL;
CREATE INDEX ix_conversation_user_channel ON conversation (workspace_id, user_id, channel);
CREATE INDEX ix_conversation_channel ON conversation (workspace_id, channel);
CREATE INDEX ix_conversation_user ON conversation (workspace_id, user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX ix_conversation_agent ON conversation (workspace_id, agent_id, created_at) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_conversation_external ON conversation (workspace_id, external_id);

-- A turn has the scope and `is_run` of its conversation; run_id is the conversation's external_id. `timestamp` is when
-- it was said, `turn_index` its position from 0. `shown`: the visible text if sentences are withdrawn; NULL: all of it.
-- The lexical columns and the vector are those of the visible text.
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
    agent_id text,
    run_id text,
    is_run boolean NOT NULL DEFAULT true,
    token_count integer,
    model varchar(100),
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    terms integer[] NOT NULL DEFAULT '{}',
    bm25 sparsevec(1000000000),
    shown text,
    CONSTRAINT pk_turn PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_turn_workspace_id_conversation_id_turn_index UNIQUE (workspace_id, conversation_id, turn_index),
    CONSTRAINT ck_turn_turn_index CHECK (turn_index >= 0),
    CONSTRAINT ck_turn_token_count CHECK (token_count >= 0),
    CONSTRAINT fk_turn_conversation FOREIGN KEY (workspace_id, conversation_id)
        REFERENCES conversation (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_turn_user ON turn (workspace_id, user_id, "timestamp" DESC);
CREATE INDEX ix_turn_channel ON turn (workspace_id, channel);
CREATE INDEX ix_turn_agent ON turn (workspace_id, agent_id, "timestamp" DESC) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_turn_run ON turn (workspace_id, run_id, "timestamp" DESC) WHERE run_id IS NOT NULL;

CREATE TABLE turn_vector (
    workspace_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    generation smallint NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    is_run boolean NOT NULL DEFAULT true,
    channel varchar(100) NOT NULL DEFAULT '_global',
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_turn_vector PRIMARY KEY (workspace_id, turn_id, generation),
    CONSTRAINT ck_turn_vector_dimension_1 CHECK (generation <> 1 OR vector_dims(embedding) = :dimension),
    CONSTRAINT fk_turn_vector_turn FOREIGN KEY (workspace_id, turn_id)
        REFERENCES turn (workspace_id, id) ON DELETE CASCADE
) PARTITION BY HASH (workspace_id);
CREATE INDEX ix_turn_vector_hnsw_1 ON turn_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops)
    WHERE generation = 1;
CREATE INDEX ix_turn_vector_user ON turn_vector (workspace_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_turn_vector_agent ON turn_vector (workspace_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_turn_vector_run ON turn_vector (workspace_id, run_id) WHERE run_id IS NOT NULL;

-- The turns a memory came from. `start` and `end`: half-open span of characters in the turn, where known.
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

-- Sentences of turns that no longer count, and why: half-open spans of characters. The memory that came from one may
-- have been deleted, so there is no foreign key. `history_id`: the change of that memory that withdrew it;
-- `replaced_by`: the memory that says what is true now.
CREATE TABLE withdrawn_span (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    turn_id uuid NOT NULL,
    start integer NOT NULL,
    "end" integer NOT NULL,
    reason varchar(10) NOT NULL
        CONSTRAINT ck_withdrawn_span_reason CHECK (reason IN ('deleted', 'expired', 'updated', 'superseded')),
    memory_id uuid,
    replaced_by uuid,
    history_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_withdrawn_span PRIMARY KEY (workspace_id, id),
    CONSTRAINT ck_withdrawn_span_start CHECK (0 <= start AND start <= "end"),
    CONSTRAINT fk_withdrawn_span_turn FOREIGN KEY (workspace_id, turn_id)
        REFERENCES turn (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_withdrawn_span_turn ON withdrawn_span (workspace_id, turn_id);
CREATE INDEX ix_withdrawn_span_memory ON withdrawn_span (workspace_id, memory_id) WHERE memory_id IS NOT NULL;

-- Every turn as it was received; append-only.
CREATE TABLE conversation_log (
    workspace_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    turn_index integer NOT NULL,
    "timestamp" timestamptz NOT NULL,
    role varchar(20) NOT NULL,
    content text NOT NULL,
    content_hash varchar(64) NOT NULL,
    token_count integer,
    model varchar(100),
    channel varchar(100) NOT NULL DEFAULT '_global',
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    user_id text,
    agent_id text,
    run_id text,
    is_run boolean NOT NULL DEFAULT true,
    CONSTRAINT pk_conversation_log PRIMARY KEY (workspace_id, recorded_at, id)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_conversation_log_conversation ON conversation_log (workspace_id, conversation_id, turn_index);
CREATE INDEX ix_conversation_log_channel ON conversation_log (workspace_id, channel, "timestamp");
CREATE INDEX ix_conversation_log_recorded ON conversation_log USING brin (recorded_at);
CREATE INDEX ix_conversation_log_timestamp ON conversation_log USING brin ("timestamp");
