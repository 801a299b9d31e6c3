-- What happened: history of memories, audit, decisions, reviews.
--
-- History and audit are partitioned by the time of recording, not by the event's own time: imported conversations are
-- years old and would all land in the DEFAULT partition.

-- `before` is the memory as it was; the result of the change was the current state in [recorded_at, recorded_to).
CREATE SEQUENCE memory_history_seq;
CREATE TABLE memory_history (
    workspace_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('memory_history_seq'),
    memory_id uuid NOT NULL,
    event varchar(8) NOT NULL CONSTRAINT ck_memory_history_event CHECK (event IN ('ADD', 'UPDATE', 'DELETE')),
    old_memory text,
    new_memory text,
    before jsonb,
    before_embedding halfvec,
    before_generation smallint,
    is_deleted boolean NOT NULL DEFAULT false,
    user_id text,
    agent_id text,
    run_id text,
    recorded_to timestamptz,
    position bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    CONSTRAINT pk_memory_history PRIMARY KEY (workspace_id, recorded_at, id)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_memory_history_memory ON memory_history (workspace_id, memory_id, recorded_at);
-- The order of the change feed: by the transaction that wrote the entry, or a later one where that had changed the same
-- memory before. Below the oldest transaction that still runs nothing can be added. docs/decisions/074-change-feed.md
CREATE INDEX ix_memory_history_position ON memory_history (workspace_id, position, seq);
-- What of a scope has changed since a moment, for reads with as_of. An ADD has no `before` and is not in them.
CREATE INDEX ix_memory_history_user ON memory_history (workspace_id, user_id, recorded_at)
    WHERE before IS NOT NULL AND user_id IS NOT NULL;
CREATE INDEX ix_memory_history_agent ON memory_history (workspace_id, agent_id, recorded_at)
    WHERE before IS NOT NULL AND agent_id IS NOT NULL;
CREATE INDEX ix_memory_history_run ON memory_history (workspace_id, run_id, recorded_at)
    WHERE before IS NOT NULL AND run_id IS NOT NULL;
CREATE INDEX ix_memory_history_shared ON memory_history (workspace_id, recorded_at)
    WHERE before IS NOT NULL AND user_id IS NULL AND agent_id IS NULL AND run_id IS NULL;
CREATE INDEX ix_memory_history_recorded ON memory_history USING brin (recorded_at);

-- What the feed still has of memories whose history was erased: that they are gone, and nothing else.
CREATE TABLE erased_memory (
    workspace_id uuid NOT NULL,
    position bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    seq bigint NOT NULL DEFAULT nextval('memory_history_seq'),
    memory_id uuid NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_erased_memory PRIMARY KEY (workspace_id, position, seq)
);
CREATE INDEX ix_erased_memory_erased ON erased_memory USING brin (erased_at);

CREATE TABLE audit_log (
    workspace_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL,
    operation varchar(50) NOT NULL,
    memory_type varchar(50),
    affected_ids uuid[] NOT NULL DEFAULT '{}',
    request_id varchar(100),
    api_key_id uuid,
    user_id text,
    session_id text,
    conversation_id uuid,
    source_channel varchar(100),
    target_channels text[] NOT NULL DEFAULT '{}',
    query_text text,
    result_count integer,
    latency_ms double precision,
    success boolean NOT NULL DEFAULT true,
    error_message text,
    promoted_from_channel varchar(100),
    promotion_confidence double precision,
    promotion_access_count integer,
    promotion_conversation_count integer,
    config_snapshot jsonb NOT NULL DEFAULT '{}'::jsonb,
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    CONSTRAINT pk_audit_log PRIMARY KEY (workspace_id, recorded_at, id)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_audit_log_user ON audit_log (workspace_id, user_id, recorded_at);
CREATE INDEX ix_audit_log_session ON audit_log (workspace_id, session_id, recorded_at);
CREATE INDEX ix_audit_log_operation ON audit_log (workspace_id, operation, recorded_at);
CREATE INDEX ix_audit_log_memory_type ON audit_log (workspace_id, memory_type, recorded_at);
CREATE INDEX ix_audit_log_source_channel ON audit_log (workspace_id, source_channel, recorded_at);
CREATE INDEX ix_audit_log_recorded ON audit_log USING brin (recorded_at);

-- One action on a memory with its evidence. `ruling_id` is shared by the actions of one decision, undone together.
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
    user_id text,
    agent_id text,
    run_id text,
    event varchar(8) CONSTRAINT ck_decision_event CHECK (event IN ('ADD', 'UPDATE', 'DELETE', 'NONE')),
    ruling_id uuid,
    history_id uuid,
    undone_at timestamptz,
    undo_history_id uuid,
    CONSTRAINT pk_decision PRIMARY KEY (workspace_id, id)
);
CREATE INDEX ix_decision_memory ON decision (workspace_id, memory_id);
CREATE INDEX ix_decision_ruling ON decision (workspace_id, ruling_id) WHERE ruling_id IS NOT NULL;

CREATE TABLE review (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    memory_id uuid NOT NULL,
    changes jsonb NOT NULL,
    state varchar(8) NOT NULL DEFAULT 'pending'
        CONSTRAINT ck_review_state CHECK (state IN ('pending', 'accepted', 'rejected')),
    created_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,
    CONSTRAINT pk_review PRIMARY KEY (workspace_id, id)
);
CREATE INDEX ix_review_memory ON review (workspace_id, memory_id);
CREATE INDEX ix_review_pending ON review (workspace_id, created_at) WHERE state = 'pending';
