"""Goals: what is to be reached, what stands in the way, and which memories belong to it

Edges are read from source to target: the goal is SUBGOAL_OF its parent (one at most) and BLOCKED_BY others. A goal's
history is append-only and goes with the goal. Vectors are a plain table: there are few goals (A6).
"""

from __future__ import annotations

from alembic import context, op

from service.db.migrate import script

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TABLES = """
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
CREATE UNIQUE INDEX ix_goal_edge_parent ON goal_edge (workspace_id, source_id) WHERE rel_type = 'SUBGOAL_OF';
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
    CONSTRAINT fk_goal_vector_goal FOREIGN KEY (workspace_id, goal_id)
        REFERENCES goal (workspace_id, id) ON DELETE CASCADE
);
ALTER TABLE goal_vector ALTER COLUMN embedding SET STORAGE MAIN;
"""

FIRST_GENERATION = """
ALTER TABLE goal_vector ADD CONSTRAINT ck_goal_vector_dimension_1
    CHECK (generation <> 1 OR vector_dims(embedding) = {dimension});
CREATE INDEX ix_goal_vector_hnsw_1 ON goal_vector
    USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WHERE generation = 1;
"""

WALL = """
SELECT protect('goal'), protect('goal_edge'), protect('goal_memory'), protect('goal_history'), protect('goal_vector');
GRANT SELECT, INSERT, UPDATE, DELETE ON goal, goal_edge, goal_memory, goal_vector TO loxodon_app;
GRANT SELECT, INSERT ON goal_history TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(TABLES)
    script(FIRST_GENERATION.format(dimension=context.config.attributes["settings"].embedding_dim))
    script(WALL)
    op.execute("INSERT INTO schema_version (version, description) VALUES (16, 'goals')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE goal_vector, goal_history, goal_memory, goal_edge, goal")
    op.execute("DELETE FROM schema_version WHERE version = 16")
