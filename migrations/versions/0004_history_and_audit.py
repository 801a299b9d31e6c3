"""History and audit, partitioned by the time of recording

`recorded_at` and not the event's own time is the partition key: imported conversations are years old and would all
land in DEFAULT. `ensure_partitions` builds a partition apart, moves what DEFAULT holds for its range and attaches
it, all in one transaction. Row-level security does not reach a partition that is read by its own name, so each
one is protected as it is made.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = """
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
    CONSTRAINT pk_memory_history PRIMARY KEY (workspace_id, recorded_at, id)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_memory_history_memory ON memory_history (workspace_id, memory_id, recorded_at);
CREATE INDEX ix_memory_history_recorded ON memory_history USING brin (recorded_at);
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
CREATE TABLE partitioned_table (
    name text CONSTRAINT pk_partitioned_table PRIMARY KEY,
    step text NOT NULL CONSTRAINT ck_partitioned_table_step CHECK (step IN ('day', 'month'))
);
INSERT INTO partitioned_table VALUES ('memory_history', 'month'), ('audit_log', 'day');
"""

# One partition: built apart under its final name, filled from DEFAULT, attached. The lock on the parent is short;
# rows that arrive meanwhile wait at most lock_timeout. Days that DEFAULT holds rows of get a partition too, however
# long no worker ran: what stays in DEFAULT would never be dropped by retention.
ENSURE = """
CREATE FUNCTION make_partition(parent text, first timestamptz, past timestamptz, suffix text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    child text := parent || '_' || suffix;
BEGIN
    IF to_regclass(child) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)',
                   child, parent);
    EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', parent);
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
    EXECUTE format('WITH moved AS (DELETE FROM %I WHERE recorded_at >= %L AND recorded_at < %L RETURNING *) '
                   'INSERT INTO %I SELECT * FROM moved', parent || '_default', first, past, child);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, first, past);
    EXECUTE format('SELECT protect(%L)', child);
    RETURN true;
END $$;
CREATE FUNCTION ensure_partitions(upto timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    parent partitioned_table%ROWTYPE;
    first timestamptz;
    past timestamptz;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('loxodon:partitions', 0));
    FOR parent IN SELECT * FROM partitioned_table ORDER BY name LOOP
        FOR first IN EXECUTE format(
            'SELECT date_trunc(%1$L, recorded_at) FROM %2$I UNION '
            'SELECT generate_series(date_trunc(%1$L, now()), $1, %3$L::interval) ORDER BY 1',
            parent.step, parent.name || '_default', '1 ' || parent.step) USING upto
        LOOP
            past := first + ('1 ' || parent.step)::interval;
            IF make_partition(parent.name, first, past,
                              to_char(first, CASE parent.step WHEN 'day' THEN 'YYYYMMDD' ELSE 'YYYYMM' END)) THEN
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;
CREATE FUNCTION drop_partitions(parent_name text, older_than timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' SET timezone = 'UTC' AS $$
DECLARE
    known partitioned_table%ROWTYPE;
    child name;
    last timestamptz;
    dropped integer := 0;
BEGIN
    SELECT * INTO STRICT known FROM partitioned_table WHERE name = parent_name;
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = known.name::regclass AND c.relname ~ ('^' || known.name || '_[0-9]+$')
    LOOP
        last := to_timestamp(right(child, CASE known.step WHEN 'day' THEN 8 ELSE 6 END),
                             CASE known.step WHEN 'day' THEN 'YYYYMMDD' ELSE 'YYYYMM' END)
                + ('1 ' || known.step)::interval;
        IF last <= older_than THEN
            EXECUTE format('DROP TABLE %I', child);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;
CREATE FUNCTION drop_old_audit_partitions(retention_days integer) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT drop_partitions('audit_log', now() - make_interval(days => retention_days))
$$;
"""

WALL = """
CREATE TABLE memory_history_default PARTITION OF memory_history DEFAULT;
CREATE TABLE audit_log_default PARTITION OF audit_log DEFAULT;
SELECT protect('memory_history'), protect('memory_history_default'), protect('audit_log'),
       protect('audit_log_default');
REVOKE EXECUTE ON FUNCTION make_partition(text, timestamptz, timestamptz, text), ensure_partitions(timestamptz),
    drop_partitions(text, timestamptz), drop_old_audit_partitions(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_partitions(timestamptz), drop_partitions(text, timestamptz),
    drop_old_audit_partitions(integer) TO loxodon_worker;
GRANT SELECT, INSERT, UPDATE (recorded_to) ON memory_history TO loxodon_app;
GRANT USAGE ON SEQUENCE memory_history_seq TO loxodon_app;
GRANT SELECT, INSERT ON audit_log TO loxodon_app;
SELECT ensure_partitions(now() + interval '7 days');
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (TABLES, ENSURE, WALL):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (4, 'history and audit')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION drop_old_audit_partitions(integer), drop_partitions(text, timestamptz)")
    op.execute("DROP FUNCTION ensure_partitions(timestamptz), make_partition(text, timestamptz, timestamptz, text)")
    op.execute("DROP TABLE partitioned_table, memory_history, audit_log")
    op.execute("DROP SEQUENCE memory_history_seq")
    op.execute("DELETE FROM schema_version WHERE version = 4")
