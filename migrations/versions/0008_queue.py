"""The queue: claiming, runs, the timetable and upkeep

Jobs are read by lane, a kind of work in a workspace: claim_jobs steps from lane to lane by the index and takes a fair
share of each, so a tenant with 100,000 jobs delays another by one batch. It begins behind the lane the caller was
served last, else the last of many tenants would never have their turn.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Every job row is written three times within seconds: the default of 20 % dead rows would be whole days of them.
INDEXES = """
DROP INDEX ix_job_ready, ix_job_finished;
CREATE INDEX ix_job_ready ON job (workspace_id, kind, priority, run_after) WHERE state = 'ready';
CREATE INDEX ix_job_finished ON job (finished_at) WHERE finished_at IS NOT NULL;
ALTER TABLE job SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
                     autovacuum_vacuum_cost_delay = 0);
"""

TABLES = """
CREATE TABLE job_run (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(50) NOT NULL,
    reason varchar(16) NOT NULL CONSTRAINT ck_job_run_reason CHECK (reason IN ('schedule', 'request')),
    state varchar(8) NOT NULL DEFAULT 'queued'
        CONSTRAINT ck_job_run_state CHECK (state IN ('queued', 'running', 'done', 'failed')),
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
CREATE INDEX ix_memory_unembedded ON memory (workspace_id, id) WHERE embedding_status <> 'stored';
"""

WALL = """
SELECT protect('job_run');
CREATE POLICY worker ON job TO loxodon_worker USING (true);
CREATE POLICY worker ON job_run TO loxodon_worker USING (true);
ALTER TABLE schedule ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedule FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON schedule FOR SELECT TO loxodon_app USING (true);
CREATE POLICY worker ON schedule TO loxodon_worker USING (true);
CREATE POLICY owner ON schedule TO loxodon_owner USING (true);
GRANT SELECT, INSERT ON job_run TO loxodon_app;
GRANT UPDATE ON job_run TO loxodon_worker;
GRANT SELECT ON schedule TO loxodon_app;
GRANT INSERT, UPDATE ON schedule TO loxodon_worker;
"""

# The attempt was counted when the job was claimed, so a job that kills its worker each time ends as dead.
EXPIRE = """
CREATE FUNCTION expire_leases() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH lost AS (
        SELECT j.workspace_id, j.id FROM job j WHERE j.state = 'running' AND j.lease_until < now()
        ORDER BY j.lease_until LIMIT 500 FOR UPDATE SKIP LOCKED
    ), freed AS (
        UPDATE job j SET
            state = CASE WHEN j.attempts >= j.max_attempts THEN 'dead' ELSE 'ready' END,
            finished_at = CASE WHEN j.attempts >= j.max_attempts THEN now() END,
            run_after = now(), worker = NULL, lease_until = NULL,
            last_error = 'the lease of attempt ' || j.attempts || ' ran out: its worker stopped or lost the database'
        FROM lost WHERE j.workspace_id = lost.workspace_id AND j.id = lost.id
        RETURNING j.workspace_id, j.id, j.state, j.last_error
    )
    UPDATE job_run r SET
        state = CASE freed.state WHEN 'dead' THEN 'failed' ELSE 'queued' END,
        finished_at = CASE freed.state WHEN 'dead' THEN now() END,
        error = freed.last_error
    FROM freed WHERE r.workspace_id = freed.workspace_id AND r.id = freed.id
$$;
"""

# Both walks are lazy: the second begins only when the first did not fill the batch, and both end when it is full. The
# LATERAL with LIMIT 1 stands where EXISTS would be turned into a join over every job that is ready. The plan is made
# once per connection (under the role's force_custom_plan it would be made for every claim), perhaps while the table is
# still empty: so index walks and nested loops are asked for, whatever the statistics say then.
CLAIM = """
CREATE FUNCTION claim_jobs(claimer text, wanted_kinds text[], wanted integer, lease_s double precision,
                           after_workspace uuid, after_kind text)
RETURNS TABLE (workspace_id uuid, id uuid, kind varchar, memory_id uuid, payload jsonb, attempts integer,
               max_attempts integer, waited_s double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM expire_leases();
    RETURN QUERY
    WITH RECURSIVE ahead AS (
        (SELECT j.workspace_id, j.kind FROM job j
         WHERE j.state = 'ready' AND (j.workspace_id, j.kind) > (after_workspace, after_kind)
         ORDER BY j.workspace_id, j.kind LIMIT 1)
        UNION ALL
        SELECT next.* FROM ahead CROSS JOIN LATERAL (
            SELECT j.workspace_id, j.kind FROM job j
            WHERE j.state = 'ready' AND (j.workspace_id, j.kind) > (ahead.workspace_id, ahead.kind)
            ORDER BY j.workspace_id, j.kind LIMIT 1) next
    ), behind AS (
        (SELECT j.workspace_id, j.kind FROM job j
         WHERE j.state = 'ready' AND (j.workspace_id, j.kind) <= (after_workspace, after_kind)
         ORDER BY j.workspace_id, j.kind LIMIT 1)
        UNION ALL
        SELECT next.* FROM behind CROSS JOIN LATERAL (
            SELECT j.workspace_id, j.kind FROM job j
            WHERE j.state = 'ready' AND (j.workspace_id, j.kind) > (behind.workspace_id, behind.kind)
              AND (j.workspace_id, j.kind) <= (after_workspace, after_kind)
            ORDER BY j.workspace_id, j.kind LIMIT 1) next
    ), lanes AS MATERIALIZED (
        SELECT lane.workspace_id, lane.kind, row_number() OVER () AS number
        FROM (
            SELECT walked.workspace_id, walked.kind FROM (SELECT * FROM ahead UNION ALL SELECT * FROM behind) walked
            CROSS JOIN LATERAL (
                SELECT FROM job j
                WHERE j.workspace_id = walked.workspace_id AND j.kind = walked.kind
                  AND j.state = 'ready' AND j.run_after <= now() LIMIT 1) due
            WHERE walked.kind = ANY (wanted_kinds)
            LIMIT wanted
        ) lane
    ), chosen AS MATERIALIZED (
        SELECT found.workspace_id, found.id, lanes.number
        FROM lanes CROSS JOIN LATERAL (
            SELECT j.workspace_id, j.id FROM job j
            WHERE j.workspace_id = lanes.workspace_id AND j.kind = lanes.kind
              AND j.state = 'ready' AND j.run_after <= now()
            ORDER BY j.priority, j.run_after
            LIMIT (SELECT ceil(wanted::numeric / count(*)) FROM lanes) FOR UPDATE SKIP LOCKED
        ) found
        LIMIT wanted
    ), taken AS (
        UPDATE job j SET state = 'running', worker = claimer, attempts = j.attempts + 1,
            lease_until = now() + make_interval(secs => lease_s)
        FROM chosen WHERE j.workspace_id = chosen.workspace_id AND j.id = chosen.id
        RETURNING j.*, chosen.number
    ), begun AS (
        UPDATE job_run r SET state = 'running', worker = claimer, attempts = taken.attempts,
            started_at = coalesce(r.started_at, now()), error = NULL
        FROM taken WHERE r.workspace_id = taken.workspace_id AND r.id = taken.id
    )
    SELECT t.workspace_id, t.id, t.kind, t.memory_id, t.payload, t.attempts, t.max_attempts,
           extract(epoch FROM now() - t.run_after)::double precision
    FROM taken t ORDER BY t.number, t.priority, t.run_after;
END $$;
"""

# SKIP LOCKED and a limit: upkeep never waits for a request, nor a request for long. find_unembedded doubles its
# patience with each dead job, so a text that no embedder takes is not tried for ever.
UPKEEP = """
CREATE FUNCTION clean_up(at timestamptz, job_days integer, embedding_days integer, batch integer)
RETURNS TABLE (name text, removed bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    target record;
BEGIN
    FOR target IN SELECT * FROM (VALUES
        ('idempotency', 'expires_at', at),
        ('llm_cache', 'expires_at', at),
        ('embedding_cache', 'created_at', at - make_interval(days => embedding_days)),
        ('job', 'finished_at', at - make_interval(days => job_days)),
        ('job_run', 'finished_at', at - make_interval(days => job_days))
    ) AS old (relation, since, before) LOOP
        name := target.relation;
        EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY('
                       'SELECT ctid FROM %1$I WHERE %2$I < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))',
                       target.relation, target.since)
        USING target.before, batch;
        GET DIAGNOSTICS removed = ROW_COUNT;
        RETURN NEXT;
    END LOOP;
END $$;
CREATE FUNCTION find_unembedded(quiet interval, wanted integer) RETURNS TABLE (workspace_id uuid, memory_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT m.workspace_id, m.id
    FROM memory m CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE j.state IN ('ready', 'running')) AS pending,
               count(*) FILTER (WHERE j.state = 'dead') AS deaths,
               max(j.finished_at) FILTER (WHERE j.state = 'dead') AS last_death
        FROM job j WHERE j.workspace_id = m.workspace_id AND j.memory_id = m.id AND j.kind = 'embed'
    ) tried
    WHERE m.embedding_status <> 'stored' AND m.updated_at < now() - quiet AND tried.pending = 0
      AND (tried.deaths = 0 OR tried.last_death < now() - quiet * power(2, least(tried.deaths, 10)))
    LIMIT wanted
$$;
"""

RIGHTS = """
REVOKE EXECUTE ON FUNCTION expire_leases(), claim_jobs(text, text[], integer, double precision, uuid, text),
    clean_up(timestamptz, integer, integer, integer), find_unembedded(interval, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION claim_jobs(text, text[], integer, double precision, uuid, text),
    clean_up(timestamptz, integer, integer, integer), find_unembedded(interval, integer) TO loxodon_worker;
"""

FORMER_INDEXES = """
DROP INDEX ix_job_ready, ix_job_finished, ix_memory_unembedded;
CREATE INDEX ix_job_ready ON job (workspace_id, priority, run_after) WHERE state = 'ready';
CREATE INDEX ix_job_finished ON job (finished_at) WHERE state = 'done';
ALTER TABLE job RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay);
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (INDEXES, TABLES, WALL, EXPIRE, CLAIM, UPKEEP, RIGHTS):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (8, 'the queue')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION find_unembedded(interval, integer), clean_up(timestamptz, integer, integer, integer)")
    op.execute("DROP FUNCTION claim_jobs(text, text[], integer, double precision, uuid, text), expire_leases()")
    op.execute("DROP POLICY worker ON job")
    op.execute("DROP TABLE schedule, job_run")
    script(FORMER_INDEXES)
    op.execute("DELETE FROM schema_version WHERE version = 8")
