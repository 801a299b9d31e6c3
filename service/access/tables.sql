-- Workspaces, their API keys and what they may spend, and the audit log.

-- `settings` override those of the service.
CREATE TABLE workspace (
    workspace_id uuid CONSTRAINT pk_workspace PRIMARY KEY,
    name varchar(200) NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}'::jsonb,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- `user_id`, `agent_id`, `run_id` and `channels` are a wall: a request with the key reaches nothing outside it
-- (walls.sql). The defaults fill in what a request leaves out. After a rotation the old secret stays valid until
-- `old_key_until`.
CREATE TABLE api_key (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(200) NOT NULL,
    key_hash varchar(64) NOT NULL,
    hint varchar(16) NOT NULL,
    rights text[] NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channels text[] NOT NULL DEFAULT '{}',
    default_user_id text,
    default_agent_id text,
    default_run_id text,
    default_channel varchar(100),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    old_key_hash varchar(64),
    old_key_until timestamptz,
    former_key_hashes text[] NOT NULL DEFAULT '{}',
    last_used_at timestamptz,
    CONSTRAINT pk_api_key PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_api_key_key_hash UNIQUE (key_hash),
    CONSTRAINT uq_api_key_old_key_hash UNIQUE (old_key_hash),
    CONSTRAINT ck_api_key_old_key CHECK ((old_key_hash IS NULL) = (old_key_until IS NULL)),
    CONSTRAINT ck_api_key_wall CHECK (
        coalesce(user_id, agent_id, run_id) IS NULL AND channels = '{}'
        OR NOT rights && '{admin,operator,audit:read,metrics}'),
    CONSTRAINT fk_api_key_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (workspace_id) ON DELETE CASCADE
);

-- The secret that signs tokens if the settings name none. Only token_secret() reads it.
CREATE TABLE token_secret (
    only_one boolean NOT NULL DEFAULT true CONSTRAINT pk_token_secret PRIMARY KEY
        CONSTRAINT ck_token_secret_only_one CHECK (only_one),
    secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- What a workspace spent on the language model on a day in UTC. `held`: calls in progress, by id, as [tokens, end].
-- An entry past its end, in seconds since 1970, was left by a process that died, and no longer counts.
CREATE TABLE model_day (
    workspace_id uuid NOT NULL,
    day date NOT NULL,
    calls bigint NOT NULL DEFAULT 0,
    prompt_tokens bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    cost double precision NOT NULL DEFAULT 0,
    held jsonb NOT NULL DEFAULT '{}'::jsonb,
    CONSTRAINT pk_model_day PRIMARY KEY (workspace_id, day)
);
CREATE INDEX ix_model_day_day ON model_day (day);

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
