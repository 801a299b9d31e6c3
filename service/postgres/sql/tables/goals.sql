-- Goals, the edges between them, the memories that belong to them, their history and vectors.

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

-- Read from source to target: SUBGOAL_OF its parent, BLOCKED_BY another.
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

-- One version of a goal. `changes`: by field, the values before and after.
CREATE TABLE goal_history (
    workspace_id uuid NOT NULL,
    goal_id uuid NOT NULL,
    version bigint NOT NULL,
    event varchar(16) NOT NULL CONSTRAINT ck_goal_history_event
        CHECK (event IN ('ADD', 'UPDATE', 'COMPLETE', 'ABANDON', 'BLOCK', 'REOPEN')),
    changes jsonb NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_goal_history PRIMARY KEY (workspace_id, goal_id, version),
    CONSTRAINT fk_goal_history_goal FOREIGN KEY (workspace_id, goal_id)
        REFERENCES goal (workspace_id, id) ON DELETE CASCADE
);

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
CREATE INDEX ix_goal_vector_hnsw_1 ON goal_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops)
    WHERE generation = 1;
