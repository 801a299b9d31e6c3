-- The job queue, its timetable, operations answered later.

-- Lower `priority` goes first; a running job belongs to `worker` until `lease_until`. `started_at`: when its first
-- attempt began. `progress`: done and total of a long job. `wall`: that of the request. `reason`: why a run of a
-- recurring job was started; runs of the whole service belong to the nil workspace. `counts`: what it did. Every row is
-- written three times within seconds, and at the default of 20 % dead rows VACUUM would come after days.
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
    counts jsonb,
    reason varchar(16) CONSTRAINT ck_job_reason CHECK (reason IN ('schedule', 'request')),
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
CREATE INDEX ix_job_consolidated ON job (finished_at) WHERE kind = 'consolidate' AND state = 'done';
CREATE INDEX ix_job_memory ON job (workspace_id, memory_id, kind) WHERE memory_id IS NOT NULL;
CREATE INDEX ix_job_run ON job (workspace_id, kind, created_at DESC) WHERE reason IS NOT NULL;

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
