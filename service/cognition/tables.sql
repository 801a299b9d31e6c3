-- Profiles of users; goals, the edges between them, the memories tied to them and their vectors; every use of a tool, and
-- strategies learned from these.

CREATE TABLE user_profile (
    workspace_id uuid NOT NULL,
    user_id text NOT NULL,
    preferences jsonb NOT NULL DEFAULT '{}'::jsonb,
    expertise_areas jsonb NOT NULL DEFAULT '[]'::jsonb,
    communication_style jsonb NOT NULL DEFAULT '{}'::jsonb,
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_user_profile PRIMARY KEY (workspace_id, user_id),
    CONSTRAINT ck_user_profile_preferences CHECK (jsonb_typeof(preferences) = 'object'),
    CONSTRAINT ck_user_profile_expertise_areas CHECK (jsonb_typeof(expertise_areas) = 'array'),
    CONSTRAINT ck_user_profile_communication_style CHECK (jsonb_typeof(communication_style) = 'object'),
    CONSTRAINT ck_user_profile_metadata CHECK (jsonb_typeof(metadata) = 'object')
);

CREATE TABLE goal (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    description text NOT NULL,
    status varchar(16) NOT NULL DEFAULT 'active'
        CONSTRAINT ck_goal_status CHECK (status IN ('active', 'completed', 'abandoned', 'blocked')),
    priority integer NOT NULL DEFAULT 0,
    deadline timestamptz,
    result text,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL,
    completed_at timestamptz,
    CONSTRAINT pk_goal PRIMARY KEY (workspace_id, id),
    CONSTRAINT ck_goal_completed_at CHECK ((completed_at IS NOT NULL) = (status IN ('completed', 'abandoned')))
);
CREATE INDEX ix_goal_user ON goal (workspace_id, user_id, status, created_at DESC) WHERE user_id IS NOT NULL;
CREATE INDEX ix_goal_agent ON goal (workspace_id, agent_id, status, created_at DESC) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_goal_run ON goal (workspace_id, run_id, status, created_at DESC) WHERE run_id IS NOT NULL;
CREATE INDEX ix_goal_channel ON goal (workspace_id, channel);

-- Read from source to target: SUBGOAL_OF the parent, BLOCKED_BY another goal.
CREATE TABLE goal_edge (
    workspace_id uuid NOT NULL,
    source_id uuid NOT NULL,
    rel_type varchar(16) NOT NULL
        CONSTRAINT ck_goal_edge_rel_type CHECK (rel_type IN ('SUBGOAL_OF', 'BLOCKED_BY')),
    target_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_goal_edge PRIMARY KEY (workspace_id, source_id, rel_type, target_id),
    CONSTRAINT ck_goal_edge_ends CHECK (source_id <> target_id),
    CONSTRAINT fk_goal_edge_source FOREIGN KEY (workspace_id, source_id)
        REFERENCES goal (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_goal_edge_target FOREIGN KEY (workspace_id, target_id)
        REFERENCES goal (workspace_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX ix_goal_edge_parent ON goal_edge (workspace_id, source_id) WHERE (rel_type)::text = 'SUBGOAL_OF';
CREATE INDEX ix_goal_edge_target ON goal_edge (workspace_id, target_id, rel_type, source_id);

CREATE TABLE goal_memory (
    workspace_id uuid NOT NULL,
    goal_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_goal_memory PRIMARY KEY (workspace_id, goal_id, memory_id),
    CONSTRAINT fk_goal_memory_goal FOREIGN KEY (workspace_id, goal_id)
        REFERENCES goal (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_goal_memory_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_goal_memory_memory ON goal_memory (workspace_id, memory_id);

CREATE TABLE goal_vector (
    workspace_id uuid NOT NULL,
    goal_id uuid NOT NULL,
    generation smallint NOT NULL,
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_goal_vector PRIMARY KEY (workspace_id, goal_id, generation),
    CONSTRAINT ck_goal_vector_dimension_1 CHECK (generation <> 1 OR vector_dims(embedding) = :dimension),
    CONSTRAINT fk_goal_vector_goal FOREIGN KEY (workspace_id, goal_id)
        REFERENCES goal (workspace_id, id) ON DELETE CASCADE
);
ALTER TABLE goal_vector ALTER COLUMN embedding SET STORAGE MAIN;

CREATE SEQUENCE tool_invocation_seq;
CREATE TABLE tool_invocation (
    workspace_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id bigint NOT NULL DEFAULT nextval('tool_invocation_seq'),
    conversation_id uuid,
    turn_id uuid,
    turn_index integer,
    user_id text,
    agent_id text,
    run_id text,
    is_run boolean NOT NULL DEFAULT true,
    channel varchar(100) NOT NULL DEFAULT '_global',
    "timestamp" timestamptz NOT NULL DEFAULT now(),
    tool_name varchar(100) NOT NULL,
    task_type varchar(100),
    tool_input jsonb NOT NULL,
    tool_output jsonb,
    success boolean NOT NULL,
    latency_ms double precision,
    error_message text,
    CONSTRAINT pk_tool_invocation PRIMARY KEY (workspace_id, recorded_at, id),
    CONSTRAINT ck_tool_invocation_latency_ms CHECK (latency_ms >= 0)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_tool_invocation_conversation ON tool_invocation (workspace_id, conversation_id, turn_index)
    WHERE conversation_id IS NOT NULL;
CREATE INDEX ix_tool_invocation_turn ON tool_invocation (workspace_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ix_tool_invocation_tool ON tool_invocation (workspace_id, tool_name, "timestamp");
CREATE INDEX ix_tool_invocation_channel ON tool_invocation (workspace_id, channel, "timestamp");
CREATE INDEX ix_tool_invocation_user ON tool_invocation (workspace_id, user_id, recorded_at) WHERE user_id IS NOT NULL;
CREATE INDEX ix_tool_invocation_agent ON tool_invocation (workspace_id, agent_id, recorded_at)
    WHERE agent_id IS NOT NULL;
CREATE INDEX ix_tool_invocation_run ON tool_invocation (workspace_id, run_id, recorded_at) WHERE run_id IS NOT NULL;
CREATE INDEX ix_tool_invocation_recorded ON tool_invocation USING brin (recorded_at);
CREATE INDEX ix_tool_invocation_timestamp ON tool_invocation USING brin ("timestamp");

CREATE TABLE strategy (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    description text NOT NULL,
    context_pattern text,
    task_type varchar(100),
    tool_sequence text[] NOT NULL DEFAULT '{}'::text[],
    success_count bigint NOT NULL DEFAULT 0,
    failure_count bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    CONSTRAINT pk_strategy PRIMARY KEY (workspace_id, id),
    CONSTRAINT ck_strategy_counts CHECK (success_count >= 0 AND failure_count >= 0)
);
CREATE INDEX ix_strategy_user ON strategy (workspace_id, user_id, created_at DESC) WHERE user_id IS NOT NULL;
CREATE INDEX ix_strategy_agent ON strategy (workspace_id, agent_id, created_at DESC) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_strategy_run ON strategy (workspace_id, run_id, created_at DESC) WHERE run_id IS NOT NULL;
CREATE INDEX ix_strategy_channel ON strategy (workspace_id, channel);

CREATE TABLE strategy_conversation (
    workspace_id uuid NOT NULL,
    strategy_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    success boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_strategy_conversation PRIMARY KEY (workspace_id, strategy_id, conversation_id),
    CONSTRAINT fk_strategy_conversation_strategy FOREIGN KEY (workspace_id, strategy_id)
        REFERENCES strategy (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_strategy_conversation_conversation FOREIGN KEY (workspace_id, conversation_id)
        REFERENCES conversation (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_strategy_conversation_conversation ON strategy_conversation (workspace_id, conversation_id);

CREATE TABLE strategy_vector (
    workspace_id uuid NOT NULL,
    strategy_id uuid NOT NULL,
    generation smallint NOT NULL,
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_strategy_vector PRIMARY KEY (workspace_id, strategy_id, generation),
    CONSTRAINT ck_strategy_vector_dimension_1 CHECK (generation <> 1 OR vector_dims(embedding) = :dimension),
    CONSTRAINT fk_strategy_vector_strategy FOREIGN KEY (workspace_id, strategy_id)
        REFERENCES strategy (workspace_id, id) ON DELETE CASCADE
);
ALTER TABLE strategy_vector ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX ix_strategy_vector_hnsw_1 ON strategy_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops)
    WHERE generation = 1;
