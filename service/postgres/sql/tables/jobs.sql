-- The job queue, its runs and timetable, operations answered later, stored responses, caches.

-- Lower `priority` goes first; a running job belongs to `worker` until `lease_until`. `started_at`: when its first
-- attempt began. `progress`: done and total of a long one. `wall`: that of the request. Every row is written three
-- times within seconds: at the default of 20 % dead rows VACUUM would come after days.
CREATE TABLE job (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    kind varchar(50) NOT NULL,
    memory_id uuid,
    payload jsonb NOT NULL DEFAULT '{}'::jsonb,
    state varchar(9) NOT NULL DEFAULT 'ready'
        CONSTRAINT ck_job_state CHECK (state IN ('ready', 'running', 'done', 'dead', 'cancelled')),
    priority smallint NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    worker text,
    lease_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    progress jsonb,
    wall jsonb DEFAULT nullif(current_setting('loxodon.wall_json', true), '')::jsonb,
    CONSTRAINT pk_job PRIMARY KEY (workspace_id, id)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX ix_job_ready ON job (workspace_id, kind, priority, run_after) WHERE state = 'ready';
CREATE INDEX ix_job_running ON job (lease_until) WHERE state = 'running';
CREATE INDEX ix_job_dead ON job (workspace_id, kind) WHERE state = 'dead';
CREATE INDEX ix_job_finished ON job (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX ix_job_memory ON job (workspace_id, memory_id, kind) WHERE memory_id IS NOT NULL;

-- A run of a recurring or requested job, under the job's id. Runs of the whole service belong to the nil workspace.
CREATE TABLE job_run (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(50) NOT NULL,
    reason varchar(16) NOT NULL CONSTRAINT ck_job_run_reason CHECK (reason IN ('schedule', 'request')),
    state varchar(9) NOT NULL DEFAULT 'queued'
        CONSTRAINT ck_job_run_state CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    attempts integer NOT NULL DEFAULT 0,
    worker text,
    counts jsonb,
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT pk_job_run PRIMARY KEY (workspace_id, id)
);
CREATE INDEX ix_job_run_name ON job_run (workspace_id, name, created_at DESC);

CREATE TABLE schedule (
    name varchar(50) CONSTRAINT pk_schedule PRIMARY KEY,
    interval_s double precision NOT NULL CONSTRAINT ck_schedule_interval_s CHECK (interval_s > 0),
    last_run timestamptz,
    next_run timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now()
);

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
    progress jsonb,
    wall text DEFAULT nullif(current_setting('loxodon.wall_digest', true), ''),
    CONSTRAINT pk_operation PRIMARY KEY (workspace_id, id)
);
CREATE INDEX ix_operation_finished ON operation (finished_at) WHERE finished_at IS NOT NULL;

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

-- Where changes are sent to. `position` and `seq`: up to where in the change feed deliveries have been made.
CREATE TABLE webhook (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    url text NOT NULL,
    description text,
    events text[] NOT NULL DEFAULT '{}',
    enabled boolean NOT NULL DEFAULT true,
    disabled_reason text,
    secret text NOT NULL,
    old_secret text,
    old_secret_until timestamptz,
    position bigint NOT NULL,
    seq bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    retry_at timestamptz,
    delivered_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_webhook PRIMARY KEY (workspace_id, id)
);

-- Which change, and how sending it went; what it says is read from history when it is sent.
CREATE TABLE webhook_delivery (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    position bigint NOT NULL,
    seq bigint NOT NULL,
    event varchar(20) NOT NULL,
    memory_id uuid NOT NULL,
    state varchar(9) NOT NULL DEFAULT 'waiting' CONSTRAINT ck_webhook_delivery_state
        CHECK (state IN ('waiting', 'delivered', 'dead', 'dropped')),
    attempts integer NOT NULL DEFAULT 0,
    status integer,
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    attempted_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT pk_webhook_delivery PRIMARY KEY (workspace_id, id),
    CONSTRAINT fk_webhook_delivery_webhook_id_webhook FOREIGN KEY (workspace_id, webhook_id)
        REFERENCES webhook (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_webhook_delivery_webhook ON webhook_delivery (workspace_id, webhook_id, id);
CREATE INDEX ix_webhook_delivery_waiting ON webhook_delivery (workspace_id, webhook_id, attempted_at NULLS FIRST, id)
    WHERE state = 'waiting';
CREATE INDEX ix_webhook_delivery_finished ON webhook_delivery (finished_at) WHERE finished_at IS NOT NULL;
