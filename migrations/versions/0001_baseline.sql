-- Made by `make schema-freeze` from service/db/sql, where the current text stands: change it there.
-- To run it in psql: \set dimension 384, \set partitions 1.

SET LOCAL check_function_bodies = off;  -- functions are made before the tables they read

-- functions/activate_generation.sql
-- The cut-over: from its commit on searches use the vectors of this generation. False, and nothing changes, unless it is
-- being built: somebody may have gone back meanwhile. docs/decisions/065-re-embedding.md
CREATE OR REPLACE FUNCTION activate_generation(wanted integer)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM FROM embedding_generation g ORDER BY g.generation FOR UPDATE;
    IF NOT EXISTS (SELECT FROM embedding_generation g WHERE g.generation = wanted AND g.state = 'building') THEN
        RETURN false;
    END IF;
    UPDATE embedding_generation SET state = 'retired' WHERE state = 'active';
    UPDATE embedding_generation SET state = 'active', activated_at = now() WHERE generation = wanted;
    RETURN true;
END $$;

REVOKE EXECUTE ON FUNCTION activate_generation(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION activate_generation(integer) TO loxodon_worker;

-- functions/archive_turns.sql
-- Turns are archived and brought back with their conversation.
CREATE OR REPLACE FUNCTION archive_turns() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE turn SET archived = NEW.archived WHERE workspace_id = NEW.workspace_id AND conversation_id = NEW.id;
    RETURN NULL;
END
$$;

REVOKE EXECUTE ON FUNCTION archive_turns() FROM PUBLIC;

-- functions/claim_jobs.sql
-- Takes up to `batch_size` due jobs for a worker and returns them; each is leased for `lease_s` seconds.
--
-- A lane is a kind of job in a workspace. The claim steps from lane to lane by the index and takes a fair share of
-- each, so a tenant with 100,000 jobs delays another one by a batch. It begins behind the lane that was served last
-- (after_workspace, after_kind): otherwise the last of many tenants would never be served.
--
-- Both walks are lazy and end when the batch is full. LATERAL with LIMIT 1 stands where EXISTS would become a join
-- over every job that is ready. The plan is made once per connection, perhaps while the table is still empty, so
-- index walks and nested loops are forced, whatever the statistics say. docs/decisions/008-durable-queue.md
CREATE OR REPLACE FUNCTION claim_jobs(
    worker_name text,
    kinds text[],
    batch_size integer,
    lease_s double precision,
    after_workspace uuid,
    after_kind text
)
RETURNS TABLE (
    workspace_id uuid,
    id uuid,
    kind varchar,
    memory_id uuid,
    payload jsonb,
    attempts integer,
    max_attempts integer,
    waited_s double precision,
    wall jsonb
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
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
            WHERE walked.kind = ANY (kinds)
            LIMIT batch_size
        ) lane
    ), chosen AS MATERIALIZED (
        SELECT found.workspace_id, found.id, lanes.number
        FROM lanes CROSS JOIN LATERAL (
            SELECT j.workspace_id, j.id FROM job j
            WHERE j.workspace_id = lanes.workspace_id AND j.kind = lanes.kind
              AND j.state = 'ready' AND j.run_after <= now()
            ORDER BY j.priority, j.run_after
            LIMIT (SELECT ceil(batch_size::numeric / count(*)) FROM lanes) FOR UPDATE SKIP LOCKED
        ) found
        LIMIT batch_size
    ), taken AS (
        UPDATE job j SET state = 'running', worker = worker_name, attempts = j.attempts + 1,
            lease_until = now() + make_interval(secs => lease_s), started_at = coalesce(j.started_at, now())
        FROM chosen WHERE j.workspace_id = chosen.workspace_id AND j.id = chosen.id
        RETURNING j.*, chosen.number
    ), begun AS (
        UPDATE job_run r SET state = 'running', worker = worker_name, attempts = taken.attempts,
            started_at = coalesce(r.started_at, now()), error = NULL
        FROM taken WHERE r.workspace_id = taken.workspace_id AND r.id = taken.id
    )
    SELECT t.workspace_id, t.id, t.kind, t.memory_id, t.payload, t.attempts, t.max_attempts,
           extract(epoch FROM now() - t.run_after)::double precision, t.wall
    FROM taken t ORDER BY t.number, t.priority, t.run_after;
END $$;

REVOKE EXECUTE ON FUNCTION claim_jobs(text, text[], integer, double precision, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION claim_jobs(text, text[], integer, double precision, uuid, text) TO loxodon_worker;

-- functions/clean_up.sql
-- Deletes at most `batch_size` rows per table that have expired at time `at`; returns the rows removed by table.
-- SKIP LOCKED and the limit: upkeep never waits for a request, and requests wait for it only briefly.
CREATE OR REPLACE FUNCTION clean_up(
    at timestamptz,
    job_days integer,
    embedding_days integer,
    history_days integer,
    batch_size integer
)
RETURNS TABLE (name text, removed bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    target record;
BEGIN
    FOR target IN SELECT * FROM (VALUES
        ('idempotency', 'expires_at', at),
        ('llm_cache', 'expires_at', at),
        ('embedding_cache', 'created_at', at - make_interval(days => embedding_days)),
        ('erased_memory', 'erased_at', at - make_interval(days => history_days)),
        ('model_day', 'day', at - interval '400 days'),
        ('operation', 'finished_at', at - make_interval(days => job_days)),
        ('webhook_delivery', 'finished_at', at - make_interval(days => job_days)),
        ('job', 'finished_at', at - make_interval(days => job_days)),
        ('job_run', 'finished_at', at - make_interval(days => job_days))
    ) AS old (relation, since, before) LOOP
        name := target.relation;
        EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY('
                       'SELECT ctid FROM %1$I WHERE %2$I < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))',
                       target.relation, target.since)
        USING target.before, batch_size;
        GET DIAGNOSTICS removed = ROW_COUNT;
        RETURN NEXT;
    END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION clean_up(timestamptz, integer, integer, integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION clean_up(timestamptz, integer, integer, integer, integer) TO loxodon_worker;

-- functions/copies_outside.sql
-- Promoted copies of memories inside the wall of the transaction that lie outside it themselves: of a channel, those in
-- _global. Only copies that nobody changed since, and that nothing else was promoted to. Locked by ascending id. None
-- without a wall: then the statements of the service see copies themselves. Functions of the owner call it.
CREATE OR REPLACE FUNCTION copies_outside(of_memories uuid[])
RETURNS uuid[]
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(array_agg(locked.id), '{}') FROM (
        SELECT c.id FROM memory c
        WHERE c.workspace_id = current_setting('loxodon.workspace')::uuid AND c.version = 1
          AND c.id IN (
              SELECT e.source_id FROM memory_edge e
              WHERE e.workspace_id = current_setting('loxodon.workspace')::uuid AND e.target_id = ANY (of_memories)
                AND e.rel_type = 'PROMOTED_FROM' AND e.properties @> '{"copied": true}'
                AND is_outside('memory', e.source_id) AND NOT is_outside('memory', e.target_id))
          AND NOT EXISTS (
              SELECT FROM memory_edge o WHERE o.workspace_id = c.workspace_id AND o.source_id = c.id
                AND o.rel_type = 'PROMOTED_FROM' AND NOT o.target_id = ANY (of_memories))
        ORDER BY c.id FOR UPDATE OF c
    ) locked
$$;

REVOKE EXECUTE ON FUNCTION copies_outside(uuid[]) FROM PUBLIC;

-- functions/count_common_terms.sql
-- Sums term_stat over all workspaces into the rows of the nil workspace; returns how many were made.
CREATE OR REPLACE FUNCTION count_common_terms(min_workspaces integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    nil constant uuid := '00000000-0000-0000-0000-000000000000';
    made bigint;
BEGIN
    DELETE FROM term_stat t WHERE t.workspace_id = nil OR NOT EXISTS
        (SELECT FROM workspace w WHERE w.workspace_id = t.workspace_id);
    -- a word of one or two tenants must not be seen in another one's scores
    INSERT INTO term_stat (workspace_id, term, texts, contexts)
    SELECT nil, t.term, least(sum(t.texts), 2147483647), least(sum(t.contexts), 2147483647)
    FROM term_stat t GROUP BY t.term HAVING t.term = 0 OR count(*) >= min_workspaces;
    GET DIAGNOSTICS made = ROW_COUNT;
    RETURN made;
END $$;

REVOKE EXECUTE ON FUNCTION count_common_terms(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION count_common_terms(integer) TO loxodon_worker;

-- functions/count_scope_rows.sql
-- How many memories the scope has, counted up to `max_rows` + 1. Called by narrow_ids() alone.
CREATE OR REPLACE FUNCTION count_scope_rows(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    max_rows integer,
    match_any boolean,
    with_shared boolean
)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
BEGIN
    RETURN (SELECT count(*) FROM (
        SELECT FROM memory m
        WHERE m.workspace_id = this_workspace
          AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
          AND (of_channels IS NULL OR m.channel = ANY (of_channels))
        LIMIT max_rows + 1
    ) counted);
END $$;

REVOKE EXECUTE ON FUNCTION count_scope_rows(text, text, text, text[], integer, boolean, boolean) FROM PUBLIC;

-- functions/count_tool_use.sql
-- Counts a use in the running totals of its tool, which are the workspace's: a key made for one user adds to them and
-- cannot read them. The average is a running mean (Welford's update), so that no sum grows for ever.
CREATE OR REPLACE FUNCTION count_tool_use(used_tool text, succeeded boolean, took_ms double precision, at timestamptz)
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    INSERT INTO tool AS t (workspace_id, name, usage_count, success_count, timed_count, avg_latency_ms, last_used_at)
    VALUES (current_setting('loxodon.workspace')::uuid, used_tool, 1, succeeded::integer, (took_ms IS NOT NULL)::integer,
            took_ms, at)
    ON CONFLICT (workspace_id, name) DO UPDATE SET
        usage_count = t.usage_count + 1,
        success_count = t.success_count + excluded.success_count,
        timed_count = t.timed_count + excluded.timed_count,
        avg_latency_ms = CASE WHEN excluded.avg_latency_ms IS NULL THEN t.avg_latency_ms ELSE
            coalesce(t.avg_latency_ms, 0)
            + (excluded.avg_latency_ms - coalesce(t.avg_latency_ms, 0)) / (t.timed_count + 1) END,
        last_used_at = greatest(t.last_used_at, excluded.last_used_at)
$$;

REVOKE EXECUTE ON FUNCTION count_tool_use(text, boolean, double precision, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION count_tool_use(text, boolean, double precision, timestamptz) TO loxodon_app;

-- functions/create_workspace.sql
-- Makes a workspace with its first key. The one way to write before a workspace is known.
CREATE OR REPLACE FUNCTION create_workspace(
    new_workspace uuid,
    workspace_name text,
    new_key uuid,
    key_name text,
    hash text,
    hint text,
    key_rights text[]
)
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    INSERT INTO workspace (workspace_id, name) VALUES (new_workspace, workspace_name);
    INSERT INTO api_key (workspace_id, id, name, key_hash, hint, rights)
    VALUES (new_workspace, new_key, key_name, hash, hint, key_rights);
$$;

REVOKE EXECUTE ON FUNCTION create_workspace(uuid, text, uuid, text, text, text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_workspace(uuid, text, uuid, text, text, text, text[]) TO loxodon_app;

-- functions/drop_partitions.sql
-- Drops the partitions of a log that end at or before `older_than`; returns how many. Only logs listed in
-- partitioned_table.
CREATE OR REPLACE FUNCTION drop_partitions(parent_name text, older_than timestamptz)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '2s'
SET TimeZone = 'UTC'
AS $$
DECLARE
    log partitioned_table%ROWTYPE;
    child name;
    ends_at timestamptz;
    dropped integer := 0;
BEGIN
    SELECT * INTO STRICT log FROM partitioned_table WHERE name = parent_name;
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = log.name::regclass AND c.relname ~ ('^' || log.name || '_[0-9]+$')
    LOOP
        ends_at := to_timestamp(right(child, CASE log.step WHEN 'day' THEN 8 ELSE 6 END),
                                CASE log.step WHEN 'day' THEN 'YYYYMMDD' ELSE 'YYYYMM' END)
                + ('1 ' || log.step)::interval;
        IF ends_at <= older_than THEN
            EXECUTE format('DROP TABLE %I', child);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;

REVOKE EXECUTE ON FUNCTION drop_partitions(text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_partitions(text, timestamptz) TO loxodon_worker;

-- functions/drop_unsupported_edge.sql
-- Trigger: deletes a relation that was extracted from texts together with the last memory that is evidence of it,
-- however that memory is deleted (request, cascade, erasure). The edge is locked before its evidence is counted, so two deletes of the last two
-- memories cannot both see the other's. A transaction that deletes many memories locks their
-- edges by ascending id first.
CREATE OR REPLACE FUNCTION drop_unsupported_edge()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM FROM entity_edge e WHERE e.workspace_id = OLD.workspace_id AND e.id = OLD.edge_id FOR UPDATE;
    DELETE FROM entity_edge e
    WHERE e.workspace_id = OLD.workspace_id AND e.id = OLD.edge_id AND e.extracted_by <> 'caller'
      AND NOT EXISTS (SELECT FROM entity_edge_source s WHERE s.workspace_id = OLD.workspace_id
                      AND s.edge_id = OLD.edge_id);
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION drop_unsupported_edge() FROM PUBLIC;

-- functions/ensure_partitions.sql
-- Makes the partitions of all logs from now until `upto`, and of every day or month the DEFAULT partition holds rows
-- of: what stays in DEFAULT would never be dropped by retention. Returns how many were made. Safe to repeat.
CREATE OR REPLACE FUNCTION ensure_partitions(upto timestamptz)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET TimeZone = 'UTC'
AS $$
DECLARE
    parent partitioned_table%ROWTYPE;
    starts_at timestamptz;
    ends_at timestamptz;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('loxodon:partitions', 0));
    FOR parent IN SELECT * FROM partitioned_table ORDER BY name LOOP
        FOR starts_at IN EXECUTE format(
            'SELECT date_trunc(%1$L, recorded_at) FROM %2$I UNION '
            'SELECT generate_series(date_trunc(%1$L, now()), $1, %3$L::interval) ORDER BY 1',
            parent.step, parent.name || '_default', '1 ' || parent.step) USING upto
        LOOP
            ends_at := starts_at + ('1 ' || parent.step)::interval;
            IF make_partition(parent.name, starts_at, ends_at,
                              to_char(starts_at, CASE parent.step WHEN 'day' THEN 'YYYYMMDD' ELSE 'YYYYMM' END)) THEN
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

REVOKE EXECUTE ON FUNCTION ensure_partitions(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_partitions(timestamptz) TO loxodon_worker;

-- functions/erase_conversation_log.sql
-- Deletes at most `batch_size` rows of the workspace's conversation log, recorded until `until`; returns how many.
CREATE OR REPLACE FUNCTION erase_conversation_log(until timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    DELETE FROM conversation_log l USING (
        SELECT workspace_id, recorded_at, id FROM conversation_log
        WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND recorded_at <= until
        LIMIT batch_size
    ) old
    WHERE l.workspace_id = old.workspace_id AND l.recorded_at = old.recorded_at AND l.id = old.id;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

REVOKE EXECUTE ON FUNCTION erase_conversation_log(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_conversation_log(timestamptz, integer) TO loxodon_app;

-- functions/erase_history.sql
-- Deletes at most `batch_size` rows of the workspace's history, recorded until `until`; returns how many. The change
-- feed keeps the ids.
CREATE OR REPLACE FUNCTION erase_history(until timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    -- a SECURITY DEFINER function reads past the policy, so the workspace is a condition here
    WITH erased AS (
        DELETE FROM memory_history h USING (
            SELECT workspace_id, recorded_at, id FROM memory_history
            WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND recorded_at <= until
            LIMIT batch_size
        ) old
        WHERE h.workspace_id = old.workspace_id AND h.recorded_at = old.recorded_at AND h.id = old.id
        RETURNING h.workspace_id, h.memory_id, h.recorded_to
    ), told AS (  -- the last entry of a memory is the open one
        INSERT INTO erased_memory (workspace_id, memory_id)
        SELECT workspace_id, memory_id FROM erased e
        WHERE recorded_to IS NULL
          AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = e.workspace_id AND m.id = e.memory_id)
    )
    SELECT count(*) INTO removed FROM erased;
    RETURN removed;
END $$;

REVOKE EXECUTE ON FUNCTION erase_history(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_history(timestamptz, integer) TO loxodon_app;

-- functions/expire_copies.sql
-- Lets the promoted copies of memories that are about to be deleted expire, where they lie outside the wall: no read
-- shows them any more, and the clean-up deletes them as it deletes everything that has expired. The wall keeps the
-- transaction itself from writing there. An end in the past, whatever the caller's clock says.
CREATE OR REPLACE FUNCTION expire_copies(of_memories uuid[])
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    UPDATE memory SET expires_at = created_at
    WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND id = ANY ((SELECT copies_outside(of_memories))::uuid[])
$$;

REVOKE EXECUTE ON FUNCTION expire_copies(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION expire_copies(uuid[]) TO loxodon_app;

-- functions/expire_leases.sql
-- Gives back jobs whose lease ran out. The attempt was counted when the job was claimed, so a job that kills its
-- worker each time ends as dead.
CREATE OR REPLACE FUNCTION expire_leases()
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
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

REVOKE EXECUTE ON FUNCTION expire_leases() FROM PUBLIC;

-- functions/fail_operation.sql
-- Trigger: an operation whose job is dead has failed, however that happened: an attempt that failed, a lease that ran
-- out because the worker was killed. The worker writes endings in no workspace, so this runs as the owner.
CREATE OR REPLACE FUNCTION fail_operation()
RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE operation o SET state = 'failed', request = '{}', finished_at = now(), error = jsonb_build_object(
        'code', 'internal_error',
        'detail', 'Its job ended in its last attempt; what it had stored stays. ' || coalesce(NEW.last_error, ''))
    WHERE o.workspace_id = NEW.workspace_id AND o.id = (NEW.payload ->> 'operation_id')::uuid AND o.finished_at IS NULL;
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION fail_operation() FROM PUBLIC;

-- functions/find_api_key.sql
-- The key with this hash, unless revoked, with the settings of its workspace. After a rotation the old hash finds it too,
-- until `old_until`, which is NULL for the present one.
CREATE OR REPLACE FUNCTION find_api_key(secret_hash text)
RETURNS TABLE (
    workspace_id uuid,
    id uuid,
    rights text[],
    user_id text,
    agent_id text,
    run_id text,
    channels text[],
    default_user_id text,
    default_agent_id text,
    default_run_id text,
    default_channel varchar,
    expires_at timestamptz,
    old_until timestamptz,
    settings jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT k.workspace_id, k.id, k.rights, k.user_id, k.agent_id, k.run_id, k.channels, k.default_user_id,
           k.default_agent_id, k.default_run_id, k.default_channel, k.expires_at, k.old_until, w.settings
    FROM (
        SELECT a.*, NULL::timestamptz AS old_until FROM api_key a WHERE a.key_hash = secret_hash
        UNION ALL
        SELECT a.*, a.old_key_until FROM api_key a WHERE a.old_key_hash = secret_hash AND a.key_hash <> secret_hash
    ) k JOIN workspace w USING (workspace_id)
    WHERE k.revoked_at IS NULL
$$;

REVOKE EXECUTE ON FUNCTION find_api_key(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key(text) TO loxodon_app;

-- functions/find_large_workspaces.sql
-- Workspaces with at least `min_memories` memories. In smaller ones a search counts its terms itself.
CREATE OR REPLACE FUNCTION find_large_workspaces(min_memories integer)
RETURNS TABLE (workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id FROM workspace w
    WHERE (SELECT count(*) FROM (SELECT FROM memory m WHERE m.workspace_id = w.workspace_id LIMIT min_memories) counted)
          >= min_memories
    ORDER BY w.workspace_id
$$;

REVOKE EXECUTE ON FUNCTION find_large_workspaces(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_large_workspaces(integer) TO loxodon_worker;

-- functions/find_outlived.sql
-- Memories of all workspaces whose time is over at `at`: expired, or older than the retention of their workspace
-- (the lower of memory_retention_days in its settings and of `retention_days`, in whose place an operator may have granted
-- another; NULL keeps for ever).
CREATE OR REPLACE FUNCTION find_outlived(at timestamptz, retention_days integer, max_rows integer)
RETURNS TABLE (workspace_id uuid, memory_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    (SELECT m.workspace_id, m.id FROM memory m WHERE m.expires_at <= at LIMIT max_rows)
    UNION
    SELECT kept.workspace_id, old.id
    FROM (
        SELECT w.workspace_id, least((w.settings ->> 'memory_retention_days')::integer,
            CASE WHEN w.settings -> 'granted' ? 'memory_retention_days'
            THEN (w.settings #>> '{granted,memory_retention_days}')::integer ELSE retention_days END) AS days
        FROM workspace w
    ) kept CROSS JOIN LATERAL (
        SELECT m.id FROM memory m
        WHERE m.workspace_id = kept.workspace_id AND m.created_at < at - make_interval(days => kept.days)
        ORDER BY m.created_at LIMIT max_rows
    ) old
    WHERE kept.days IS NOT NULL
    LIMIT max_rows
$$;

REVOKE EXECUTE ON FUNCTION find_outlived(timestamptz, integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_outlived(timestamptz, integer, integer) TO loxodon_worker;

-- functions/find_unaged.sql
-- Workspaces with memories or conversations in which the job of this name did not begin within its interval, as the object `setting` of
-- their settings says it, else `interval_min`. With `wanted_by`, the name of a switch there, only those where it is on; `wanted`
-- is what it is where a workspace does not say. `consolidate` only where there are turns whose facts are not read yet.
CREATE OR REPLACE FUNCTION find_unaged(
    job_name text, setting text, interval_min double precision, wanted_by text, wanted boolean)
RETURNS TABLE (workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id
    FROM workspace w CROSS JOIN LATERAL (
        SELECT coalesce((w.settings #>> ARRAY[setting, job_name || '_interval_min'])::double precision, interval_min)
                   AS minutes,
               wanted_by IS NULL OR coalesce((w.settings #>> ARRAY[setting, wanted_by])::boolean, wanted) AS is_on
    ) own
    WHERE own.is_on
      AND (EXISTS (SELECT FROM memory m WHERE m.workspace_id = w.workspace_id)
           OR EXISTS (SELECT FROM conversation c WHERE c.workspace_id = w.workspace_id))
      AND (job_name <> 'consolidate'
           OR EXISTS (SELECT FROM conversation c WHERE c.workspace_id = w.workspace_id AND c.consolidated_at IS NULL
                      AND c.turn_count > c.consolidated_turns AND NOT c.archived))
      -- a minute less, for a run that comes a little early
      AND NOT EXISTS (SELECT FROM job_run r WHERE r.workspace_id = w.workspace_id AND r.name = job_name
                      AND r.created_at > now() - make_interval(secs => 60 * (own.minutes - 1)))
    ORDER BY w.workspace_id
$$;

REVOKE EXECUTE ON FUNCTION find_unaged(text, text, double precision, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_unaged(text, text, double precision, text, boolean) TO loxodon_worker;

-- functions/find_unembedded.sql
-- Memories without a vector that nothing works on, unchanged for `untouched_for`. Each dead job doubles that
-- wait, so a text that no embedder takes is not tried for ever.
CREATE OR REPLACE FUNCTION find_unembedded(untouched_for interval, max_rows integer)
RETURNS TABLE (workspace_id uuid, memory_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT m.workspace_id, m.id
    FROM memory m CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE j.state IN ('ready', 'running')) AS pending,
               count(*) FILTER (WHERE j.state = 'dead') AS deaths,
               max(j.finished_at) FILTER (WHERE j.state = 'dead') AS last_death
        FROM job j WHERE j.workspace_id = m.workspace_id AND j.memory_id = m.id AND j.kind = 'embed'
    ) tried
    WHERE m.embedding_status <> 'stored' AND m.updated_at < now() - untouched_for AND tried.pending = 0
      AND (tried.deaths = 0 OR tried.last_death < now() - untouched_for * power(2, least(tried.deaths, 10)))
    LIMIT max_rows
$$;

REVOKE EXECUTE ON FUNCTION find_unembedded(interval, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_unembedded(interval, integer) TO loxodon_worker;

-- functions/find_webhooks.sql
-- Webhooks of all workspaces, at most `most`, behind whose place in the change feed something is settled.
CREATE OR REPLACE FUNCTION find_webhooks(most integer)
RETURNS TABLE (workspace_id uuid, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, w.id FROM webhook w
    WHERE w.enabled AND (
        EXISTS (SELECT FROM memory_history h
                WHERE h.workspace_id = w.workspace_id AND (h.position, h.seq) > (w.position, w.seq)
                  AND h.position < (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint))
        OR EXISTS (SELECT FROM erased_memory e
                   WHERE e.workspace_id = w.workspace_id AND (e.position, e.seq) > (w.position, w.seq)
                     AND e.position < (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)))
    LIMIT most
$$;

REVOKE EXECUTE ON FUNCTION find_webhooks(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_webhooks(integer) TO loxodon_worker;

-- functions/find_workspaces.sql
-- All workspaces, for upkeep that goes over each of them.
CREATE OR REPLACE FUNCTION find_workspaces()
RETURNS TABLE (workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id FROM workspace w ORDER BY w.workspace_id
$$;

REVOKE EXECUTE ON FUNCTION find_workspaces() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_workspaces() TO loxodon_worker;

-- functions/in_wall.sql
-- Whether a row with these ids and channel lies inside the wall of the transaction; true where it has none. For functions
-- of the owner, whom no policy holds back; the policies of walls.sql say the same in a form that costs less per row.
-- `or_shared`: what belongs to the whole workspace counts as inside.
CREATE OR REPLACE FUNCTION in_wall(
    of_user text,
    of_agent text,
    of_run text,
    of_channel text,
    or_shared boolean DEFAULT false
)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT (or_shared AND num_nonnulls(of_user, of_agent, of_run) = 0
            OR (wall.user_id IS NULL OR wall.user_id IS NOT DISTINCT FROM of_user)
                AND (wall.agent_id IS NULL OR wall.agent_id IS NOT DISTINCT FROM of_agent)
                AND (wall.run_id IS NULL OR wall.run_id IS NOT DISTINCT FROM of_run))
        AND (wall.channels IS NULL OR of_channel IS NOT NULL AND of_channel = ANY (wall.channels))
    FROM (SELECT nullif(current_setting('loxodon.wall_user_id', true), '') AS user_id,
                 nullif(current_setting('loxodon.wall_agent_id', true), '') AS agent_id,
                 nullif(current_setting('loxodon.wall_run_id', true), '') AS run_id,
                 nullif(current_setting('loxodon.wall_channels', true), '')::text[] AS channels) wall
$$;

REVOKE EXECUTE ON FUNCTION in_wall(text, text, text, text, boolean) FROM PUBLIC;

-- functions/is_in_scope.sql
-- Whether a memory with these ids is of a scope: it has every given id, or with `match_any` one of them; with
-- `with_shared` also where it has none (service/db/scopes.py, matching). Without settings of its own, so that the planner
-- puts its body in its place and finds the indexes of a scope; called by the functions of the owner alone.
CREATE OR REPLACE FUNCTION is_in_scope(
    user_id text,
    agent_id text,
    run_id text,
    of_user text,
    of_agent text,
    of_run text,
    match_any boolean,
    with_shared boolean
)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (NOT match_any
        AND (of_user IS NULL OR user_id = of_user)
        AND (of_agent IS NULL OR agent_id = of_agent)
        AND (of_run IS NULL OR run_id = of_run)
        AND NOT (with_shared AND of_user IS NULL AND of_agent IS NULL AND of_run IS NULL))
    OR (match_any AND (user_id = of_user OR agent_id = of_agent OR run_id = of_run))
    OR (with_shared AND user_id IS NULL AND agent_id IS NULL AND run_id IS NULL);

REVOKE EXECUTE ON FUNCTION is_in_scope(text, text, text, text, text, text, boolean, boolean) FROM PUBLIC;

-- functions/is_outside.sql
-- Whether a row that another one belongs to lies outside the wall of the transaction. False for a row that is not there:
-- it is made by the same statement and checked by its own policy, or the foreign key fails. What a deleted memory was
-- stands in its history. Reads past the policies, because a row that they hide is just what it looks for.
CREATE OR REPLACE FUNCTION is_outside(of_table text, of_id uuid)
RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER COST 10
SET search_path = public, pg_temp
AS $$
DECLARE
    here constant uuid := current_setting('loxodon.workspace')::uuid;
    inside boolean;
BEGIN
    IF of_id IS NULL OR coalesce(current_setting('loxodon.wall_digest', true), '') = '' THEN
        RETURN false;
    ELSIF of_table = 'memory' THEN
        SELECT in_wall(m.user_id, m.agent_id, m.run_id, m.channel, true) INTO inside
        FROM memory m WHERE m.workspace_id = here AND m.id = of_id;
        IF NOT FOUND THEN
            SELECT in_wall(h.user_id, h.agent_id, h.run_id, h.before ->> 'channel', true) INTO inside
            FROM memory_history h
            WHERE h.workspace_id = here AND h.memory_id = of_id AND h.before IS NOT NULL
            ORDER BY h.recorded_at DESC LIMIT 1;
        END IF;
    ELSIF of_table = 'turn' THEN
        SELECT in_wall(t.user_id, t.agent_id, t.run_id, t.channel) INTO inside
        FROM turn t WHERE t.workspace_id = here AND t.id = of_id;
    ELSIF of_table = 'conversation' THEN
        SELECT in_wall(c.user_id, c.agent_id, c.external_id, c.channel) INTO inside
        FROM conversation c WHERE c.workspace_id = here AND c.id = of_id;
    ELSIF of_table = 'entity' THEN
        SELECT in_wall(e.user_id, NULL, NULL, e.channel) INTO inside
        FROM entity e WHERE e.workspace_id = here AND e.id = of_id;
    ELSIF of_table = 'entity_edge' THEN
        SELECT NOT is_outside('entity', e.source_id) AND NOT is_outside('entity', e.target_id) INTO inside
        FROM entity_edge e WHERE e.workspace_id = here AND e.id = of_id;
    ELSIF of_table = 'goal' THEN
        SELECT in_wall(g.user_id, g.agent_id, g.run_id, g.channel) INTO inside
        FROM goal g WHERE g.workspace_id = here AND g.id = of_id;
    ELSIF of_table = 'strategy' THEN
        SELECT in_wall(s.user_id, s.agent_id, s.run_id, s.channel) INTO inside
        FROM strategy s WHERE s.workspace_id = here AND s.id = of_id;
    ELSE
        RAISE EXCEPTION 'no wall is known for table %', of_table;
    END IF;
    RETURN NOT coalesce(inside, true);
END $$;

REVOKE EXECUTE ON FUNCTION is_outside(text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_outside(text, uuid) TO loxodon_app, loxodon_walled;

-- functions/iso_seconds.sql
-- Seconds since 1970 of an ISO 8601 text in the form that filters accept, else NULL. Time zone UTC where none is
-- given.
CREATE OR REPLACE FUNCTION iso_seconds(of_text text)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = public, pg_temp
SET TimeZone = 'UTC'
AS $$
BEGIN
    IF of_text ~ '^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?$'
            AND pg_input_is_valid(of_text, 'timestamptz') THEN
        RETURN extract(epoch FROM of_text::timestamptz);
    END IF;
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION iso_seconds(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION iso_seconds(text) TO loxodon_app;

-- functions/lexical_ids.sql
-- Ids of up to `candidate_limit` memories of a scope, best BM25 first, read from the GIN indexes over terms: of the
-- text, or of its context where `in_context`.
--
-- Candidates have one of the terms `any_of_1`; where `any_of_2` is given, one of those as well, unless fewer than
-- `min_candidates` have both: of frequent terms only, rows with several are best, and an index finds them. `scan_limit`
-- bounds the rows read where even the rarest term is frequent: those met first stand for the rest. `query_bm25` holds
-- the weights of all terms of the query; <#> is the negative inner product, so the best comes first.
--
-- GIN operators are not leakproof, so no GIN index is used under row-level security. The function repeats the
-- workspace in its body and returns ids alone; the caller joins them back under the policy. The plan is generic and
-- cannot scan sequentially: with the optional scope columns as parameters only the GIN index is left to begin with.
-- docs/decisions/003-definer-functions.md
CREATE OR REPLACE FUNCTION lexical_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    in_context boolean,
    any_of_1 integer[],
    any_of_2 integer[],
    query_bm25 sparsevec,
    scan_limit integer,
    candidate_limit integer,
    min_candidates integer,
    match_any boolean DEFAULT false,
    with_shared boolean DEFAULT false
)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    keys integer[] := workspace_terms(this_workspace, any_of_1);
    other_keys integer[] := workspace_terms(this_workspace, any_of_2);
    ids uuid[] := '{}';
BEGIN
    IF in_context THEN
        IF other_keys IS NOT NULL THEN
            ids := ARRAY(
                SELECT c.id FROM (
                    SELECT m.workspace_id, m.id, m.context_bm25 <#> query_bm25 AS distance FROM memory m
                    WHERE workspace_terms(m.workspace_id, m.context_terms) && keys
                      AND workspace_terms(m.workspace_id, m.context_terms) && other_keys
                      AND m.context_terms <> '{}'
                      AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                      AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    LIMIT scan_limit
                ) c
                WHERE c.workspace_id = this_workspace AND c.distance < 0
                ORDER BY c.distance, c.id LIMIT candidate_limit);
        END IF;
        IF other_keys IS NULL OR cardinality(ids) < min_candidates THEN
            ids := ARRAY(
                SELECT c.id FROM (
                    SELECT m.workspace_id, m.id, m.context_bm25 <#> query_bm25 AS distance FROM memory m
                    WHERE workspace_terms(m.workspace_id, m.context_terms) && keys
                      AND m.context_terms <> '{}'
                      AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                      AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    LIMIT scan_limit
                ) c
                WHERE c.workspace_id = this_workspace AND c.distance < 0
                ORDER BY c.distance, c.id LIMIT candidate_limit);
        END IF;
    ELSE
        IF other_keys IS NOT NULL THEN
            ids := ARRAY(
                SELECT c.id FROM (
                    SELECT m.workspace_id, m.id, m.bm25 <#> query_bm25 AS distance FROM memory m
                    WHERE workspace_terms(m.workspace_id, m.terms) && keys
                      AND workspace_terms(m.workspace_id, m.terms) && other_keys
                      AND m.terms <> '{}'
                      AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                      AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    LIMIT scan_limit
                ) c
                WHERE c.workspace_id = this_workspace AND c.distance < 0
                ORDER BY c.distance, c.id LIMIT candidate_limit);
        END IF;
        IF other_keys IS NULL OR cardinality(ids) < min_candidates THEN
            ids := ARRAY(
                SELECT c.id FROM (
                    SELECT m.workspace_id, m.id, m.bm25 <#> query_bm25 AS distance FROM memory m
                    WHERE workspace_terms(m.workspace_id, m.terms) && keys
                      AND m.terms <> '{}'
                      AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                      AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    LIMIT scan_limit
                ) c
                WHERE c.workspace_id = this_workspace AND c.distance < 0
                ORDER BY c.distance, c.id LIMIT candidate_limit);
        END IF;
    END IF;
    RETURN QUERY SELECT found.id FROM unnest(ids) WITH ORDINALITY AS found (id, place) ORDER BY found.place;
END $$;

REVOKE EXECUTE ON FUNCTION
    lexical_ids(text, text, text, text[], boolean, integer[], integer[], sparsevec, integer, integer, integer, boolean,
                boolean)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    lexical_ids(text, text, text, text[], boolean, integer[], integer[], sparsevec, integer, integer, integer, boolean,
                boolean)
    TO loxodon_app;

-- functions/make_partition.sql
-- Makes one partition of a log for [starts_at, ends_at): built apart, filled from DEFAULT, attached. False when it is
-- there already.
-- The lock on the parent is short; rows that arrive meanwhile wait for at most lock_timeout.
CREATE OR REPLACE FUNCTION make_partition(
    parent text,
    starts_at timestamptz,
    ends_at timestamptz,
    suffix text
)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '2s'
AS $$
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
                   'INSERT INTO %I SELECT * FROM moved', parent || '_default', starts_at, ends_at, child);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   parent, child, starts_at, ends_at);
    EXECUTE format('SELECT protect(%L)', child);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN workspace_id SET (n_distinct = 10)', child);
    RETURN true;
END $$;

REVOKE EXECUTE ON FUNCTION make_partition(text, timestamptz, timestamptz, text) FROM PUBLIC;

-- functions/measure_queue.sql
-- The queue of all workspaces by kind: jobs that are due, that run and that are dead, and for how many seconds the oldest
-- of them has been so.
CREATE OR REPLACE FUNCTION measure_queue()
RETURNS TABLE (kind varchar, state varchar, jobs bigint, oldest_s double precision)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    -- counting stops at 100,000 that are due: monitors ask every few seconds, also when the queue is long
    SELECT j.kind, 'due', count(*), extract(epoch FROM now() - min(j.run_after))::double precision
    FROM (SELECT kind, run_after FROM job WHERE state = 'ready' AND run_after <= now() LIMIT 100000) j
    GROUP BY j.kind
    UNION ALL
    SELECT j.kind, j.state, count(*), extract(epoch FROM now() - min(coalesce(j.finished_at, j.started_at)))
    FROM job j WHERE j.state = 'running' OR j.state = 'dead' GROUP BY j.kind, j.state
$$;

REVOKE EXECUTE ON FUNCTION measure_queue() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION measure_queue() TO loxodon_app;

-- functions/measure_replication.sql
-- How far standbys are behind: how many there are, the longest time and the most bytes of WAL that one of them has still
-- to replay, and the most that is kept for a replication slot. Null: nobody may know, see docs/metrics.md, or there is
-- none.
CREATE OR REPLACE FUNCTION measure_replication()
RETURNS TABLE (standbys bigint, lag_s double precision, lag_bytes bigint, slot_bytes bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    WITH here AS (
        SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END AS lsn
    )
    SELECT (SELECT count(*) FROM pg_stat_replication),
           (SELECT max(extract(epoch FROM coalesce(r.replay_lag, CASE WHEN r.state = 'streaming' THEN interval '0' END)))
            FROM pg_stat_replication r)::double precision,
           (SELECT max(pg_wal_lsn_diff(here.lsn, r.replay_lsn)) FROM pg_stat_replication r)::bigint,
           (SELECT max(pg_wal_lsn_diff(here.lsn, s.restart_lsn)) FROM pg_replication_slots s)::bigint
    FROM here
$$;

REVOKE EXECUTE ON FUNCTION measure_replication() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION measure_replication() TO loxodon_app;

-- functions/measure_upkeep.sql
-- What the last run of each job in every workspace counted, added up; and for `consolidate` as lag_s the longest time from a turn to
-- its facts among those that were kept in the last hour.
CREATE OR REPLACE FUNCTION measure_upkeep()
RETURNS TABLE (kind varchar, what text, items double precision)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT names.name, counted.key, sum(counted.value::double precision)
    FROM workspace w CROSS JOIN (SELECT name FROM schedule) names CROSS JOIN LATERAL (
        SELECT r.counts FROM job_run r
        WHERE r.workspace_id = w.workspace_id AND r.name = names.name AND r.state = 'done'
        ORDER BY r.created_at DESC LIMIT 1) last
    CROSS JOIN LATERAL jsonb_each_text(last.counts) counted
    GROUP BY names.name, counted.key
    UNION ALL
    SELECT 'consolidate', 'lag_s', max(extract(epoch FROM j.finished_at - t.created_at))::double precision
    FROM job j JOIN turn t ON t.workspace_id = j.workspace_id AND t.turn_index = (j.payload ->> 'last')::integer
        AND t.conversation_id = (j.payload ->> 'conversation_id')::uuid
    WHERE j.finished_at > now() - interval '1 hour' AND j.kind = 'consolidate' AND j.state = 'done'
      AND j.payload ? 'conversation_id'
$$;

REVOKE EXECUTE ON FUNCTION measure_upkeep() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION measure_upkeep() TO loxodon_app;

-- functions/memory_filter_keys.sql
-- The filter keys of a row: hashes of its tags, tag prefixes, categories, `words` made of columns, and metadata.
--
-- Each is hashed together with the workspace, so what is common in one tenant makes no posting list longer for another.
-- A metadata value is hashed with the last step of its path, at any depth: `a.b` is b inside a, or a key of that name.
-- jsonb_hash agrees with the equality of jsonb, for which 1 is 1.0.
--
-- With `with_ranges`, numbers and times also give the leading 6, 12, 16, 20, 24 and 28 bits of their float64 in the
-- order of the values: those of negative numbers are reversed (service/domain/range_keys.py picks those that a range
-- needs). Numbers that float64 cannot hold count as infinite or as zero.
--
-- Loops, because one statement over all three sets is planned for a hundred million rows. Keys are appended one by one:
-- that is done in place, while to append an array copies all keys there are.
CREATE OR REPLACE FUNCTION memory_filter_keys(
    of_workspace uuid,
    tags text[],
    tag_prefixes text[],
    categories text[],
    words text[],
    metadata jsonb,
    with_ranges boolean
)
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = public, pg_temp
AS $$
DECLARE
    salt constant integer := uuid_hash(of_workspace);
    keys integer[] := '{}';
    word text;
    object jsonb;
    name text;
    value jsonb;
    scalar jsonb;
    kind text;
    exact_number numeric;
    number double precision;
    bits bigint;
    range_values integer;
BEGIN
    FOREACH word IN ARRAY tags || tag_prefixes || words LOOP
        IF word IS NOT NULL THEN
            keys := keys || (hashtext(word) # salt);
        END IF;
    END LOOP;
    FOREACH word IN ARRAY categories LOOP
        keys := keys || (hashtext('category:' || word) # salt);
    END LOOP;
    IF metadata = '{}' THEN
        RETURN keys;
    END IF;
    FOR object IN SELECT jsonb_path_query(metadata, 'strict $.** ? (@.type() == "object")') LOOP
        FOR name, value IN SELECT split_part(pair.key, '.', -1), pair.value FROM jsonb_each(object) pair LOOP
            range_values := 0;
            FOR scalar IN
                SELECT jsonb_path_query(value, 'lax $[*] ? (@.type() != "object" && @.type() != "array")')
            LOOP
                keys := keys || (hashtext(name) # jsonb_hash(scalar) # salt);
                kind := jsonb_typeof(scalar);
                IF NOT with_ranges OR kind NOT IN ('number', 'string') THEN
                    CONTINUE;
                ELSIF kind = 'number' THEN
                    exact_number := scalar;
                    number := CASE WHEN exact_number > 1e300 THEN 'infinity' WHEN exact_number < -1e300 THEN '-infinity'
                                  WHEN abs(exact_number) < 1e-300 THEN 0 ELSE exact_number END;
                ELSIF scalar #>> '{}' LIKE '____-__-__%' THEN
                    kind := 'time';
                    number := iso_seconds(scalar #>> '{}');
                    CONTINUE WHEN number IS NULL;
                ELSE
                    CONTINUE;
                END IF;
                range_values := range_values + 1;
                bits := ('x' || encode(float8send(number), 'hex'))::bit(64)::bigint;
                bits := CASE WHEN bits < 0 THEN bits # 9223372036854775807 ELSE bits END;
                word := name || ' ' || kind;
                keys := keys || (hashtext(word || '6 ' || (bits >> 58)) # salt);
                keys := keys || (hashtext(word || '12 ' || (bits >> 52)) # salt);
                keys := keys || (hashtext(word || '16 ' || (bits >> 48)) # salt);
                keys := keys || (hashtext(word || '20 ' || (bits >> 44)) # salt);
                keys := keys || (hashtext(word || '24 ' || (bits >> 40)) # salt);
                keys := keys || (hashtext(word || '28 ' || (bits >> 36)) # salt);
            END LOOP;
            IF range_values > 1 THEN
                keys := keys || (hashtext(name || ' many') # salt);
            END IF;
        END LOOP;
    END LOOP;
    RETURN keys;
END $$;

REVOKE EXECUTE ON FUNCTION memory_filter_keys(uuid, text[], text[], text[], text[], jsonb, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memory_filter_keys(uuid, text[], text[], text[], text[], jsonb, boolean) TO loxodon_app;

-- functions/narrow_ids.sql
-- Ids of the scope's memories that meet three groups of filter keys and a span of time: all of `all_of`, one of
-- `any_of_1`, one of `any_of_2`; an empty group is no condition. NULL where an index does not make it cheap: more than
-- `max_ids` rows have the keys (or ten times as many before the span of time is applied).
--
-- What ANALYZE knows of frequent keys chooses between three ways:
--   1. only the most selective group, where it leaves few rows: comparing the hundreds of keys of a wide range with
--      each row costs more than reading the few rows of another group;
--   2. all groups together;
--   3. in a scope of at most 30,000 rows the bitmaps of scope and keys (narrow_scope_ids): a key in the index costs a
--      third of what a row of the table does. Ids are looked up twice, by the probe and by the search after it
--      (service/db/search/prefilter.py).
--
-- Row-level security does not apply inside, as in lexical_ids(). work_mem: where the bitmap did not fit, the keys of
-- whole pages would be computed again.
CREATE OR REPLACE FUNCTION narrow_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    since timestamptz,
    until timestamptz,
    all_of integer[],
    any_of_1 integer[],
    any_of_2 integer[],
    max_ids integer,
    match_any boolean DEFAULT false,
    with_shared boolean DEFAULT false
)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET work_mem = '64MB'
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    scan_limit integer := CASE WHEN since IS NULL AND until IS NULL THEN max_ids ELSE 10 * max_ids END;
    medium_scope constant integer := 30000;
    indexed_rows real := (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'ix_memory_filter_keys'::regclass);
    frequent_keys integer[];
    frequencies real[];
    share_all real;  -- of the rows, 0..1: how many have the keys of a group; NULL: the group is empty
    share_any_1 real;
    share_any_2 real;
    smallest_share real;
    scope_size bigint;
    rows_scanned bigint;
    ids uuid[];
BEGIN
    SELECT s.most_common_elems::text::integer[], s.most_common_elem_freqs INTO frequent_keys, frequencies
    FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = 'ix_memory_filter_keys';
    share_all := (SELECT min(coalesce(frequencies[array_position(frequent_keys, key)], 0)) FROM unnest(all_of) key);
    share_any_1 := (SELECT sum(coalesce(frequencies[array_position(frequent_keys, key)], 0)) FROM unnest(any_of_1) key);
    share_any_2 := (
        SELECT sum(coalesce(frequencies[array_position(frequent_keys, key)], 0)) FROM unnest(any_of_2) key);
    smallest_share := least(share_all, share_any_1, share_any_2);

    -- 1. The shares are known to a few hundredths, hence a quarter more than may be scanned.
    IF indexed_rows * smallest_share <= 1.25 * scan_limit THEN
        IF smallest_share = share_all THEN
            WITH candidates AS MATERIALIZED (
                SELECT m.id, m.workspace_id = this_workspace
                    AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (since IS NULL OR m."timestamp" >= since)
                    AND (until IS NULL OR m."timestamp" <= until) AS in_scope
                FROM memory m
                WHERE memory_filter_keys(
                    m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                    ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                          'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                    m.metadata, true) @> all_of
                LIMIT scan_limit + 1
            )
            SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
            FROM candidates c;
        ELSIF smallest_share = share_any_1 THEN
            WITH candidates AS MATERIALIZED (
                SELECT m.id, m.workspace_id = this_workspace
                    AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (since IS NULL OR m."timestamp" >= since)
                    AND (until IS NULL OR m."timestamp" <= until) AS in_scope
                FROM memory m
                WHERE memory_filter_keys(
                    m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                    ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                          'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                    m.metadata, true) && any_of_1
                LIMIT scan_limit + 1
            )
            SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
            FROM candidates c;
        ELSE
            WITH candidates AS MATERIALIZED (
                SELECT m.id, m.workspace_id = this_workspace
                    AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (since IS NULL OR m."timestamp" >= since)
                    AND (until IS NULL OR m."timestamp" <= until) AS in_scope
                FROM memory m
                WHERE memory_filter_keys(
                    m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                    ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                          'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                    m.metadata, true) && any_of_2
                LIMIT scan_limit + 1
            )
            SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
            FROM candidates c;
        END IF;
        IF rows_scanned <= scan_limit AND cardinality(ids) <= max_ids THEN
            RETURN ids;
        END IF;
    END IF;

    -- 2. An empty group is replaced by another group, so its condition is always true.
    IF num_nonnulls(share_all, share_any_1, share_any_2) > 1 AND indexed_rows * smallest_share <= 10 * scan_limit
            AND indexed_rows * coalesce(share_all, 1) * coalesce(share_any_1, 1) * coalesce(share_any_2, 1)
                <= 2 * scan_limit THEN
        WITH candidates AS MATERIALIZED (
            SELECT m.id, m.workspace_id = this_workspace
                AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
                AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                AND (since IS NULL OR m."timestamp" >= since)
                AND (until IS NULL OR m."timestamp" <= until) AS in_scope
            FROM memory m
            WHERE memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) @> all_of
              AND memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && coalesce(nullif(any_of_1, '{}'), all_of)
              AND memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true)
                  && coalesce(nullif(any_of_2, '{}'), nullif(any_of_1, '{}'), all_of)
            LIMIT scan_limit + 1
        )
        SELECT count(*), coalesce(array_agg(c.id) FILTER (WHERE c.in_scope), '{}') INTO rows_scanned, ids
        FROM candidates c;
        IF rows_scanned <= scan_limit AND cardinality(ids) <= max_ids THEN
            RETURN ids;
        END IF;
    END IF;

    -- 3. Counting a scope takes 0.1 ms per thousand rows.
    IF (with_shared OR num_nonnulls(of_user, of_agent, of_run) > 0)
            AND indexed_rows * smallest_share <= 1.5 * medium_scope THEN
        scope_size := count_scope_rows(of_user, of_agent, of_run, of_channels, medium_scope, match_any, with_shared);
        IF scope_size <= medium_scope AND indexed_rows * smallest_share <= 1.5 * scope_size THEN
            RETURN narrow_scope_ids(of_user, of_agent, of_run, of_channels, since, until, all_of, any_of_1, any_of_2,
                                    max_ids, match_any, with_shared);
        END IF;
    END IF;
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer,
               boolean, boolean)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer,
               boolean, boolean)
    TO loxodon_app;

-- functions/narrow_scope_ids.sql
-- Ids of the scope's memories that meet the filter keys, with the parameters of narrow_ids(), its only caller; NULL when
-- there are more than `max_ids`. Planned for its values, so that the planner drops conditions that are not given. Only
-- bitmaps of scope and keys are allowed: computing the filter keys of a scope's rows one by one is slower than any other
-- way.
CREATE OR REPLACE FUNCTION narrow_scope_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    since timestamptz,
    until timestamptz,
    all_of integer[],
    any_of_1 integer[],
    any_of_2 integer[],
    max_ids integer,
    match_any boolean,
    with_shared boolean
)
RETURNS uuid[]
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_indexscan = off
SET enable_indexonlyscan = off
SET work_mem = '64MB'
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    ids uuid[];
BEGIN
    ids := ARRAY(
        SELECT m.id FROM memory m
        WHERE m.workspace_id = this_workspace
          AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
          AND (of_channels IS NULL OR m.channel = ANY (of_channels))
          AND (since IS NULL OR m."timestamp" >= since)
          AND (until IS NULL OR m."timestamp" <= until)
          AND (all_of = '{}' OR memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) @> all_of)
          AND (any_of_1 = '{}' OR memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && any_of_1)
          AND (any_of_2 = '{}' OR memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && any_of_2)
        LIMIT max_ids + 1
    );
    RETURN CASE WHEN cardinality(ids) <= max_ids THEN ids END;
END $$;

REVOKE EXECUTE ON FUNCTION
    narrow_scope_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer,
                     boolean, boolean)
    FROM PUBLIC;

-- functions/protect.sql
-- Forces row-level security on a table: the app sees the workspace of its transaction, the owner everything. The
-- setting is read without missing_ok: a forgotten workspace is an error, not an empty answer. From Postgres 17 the
-- worker may run VACUUM on it; up to 16 only the owner may. docs/decisions/002-row-level-security.md
CREATE OR REPLACE FUNCTION protect(target regclass)
RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant ON %s TO loxodon_app, loxodon_walled '
                   'USING (workspace_id = current_setting(''loxodon.workspace'')::uuid)', target);
    EXECUTE format('CREATE POLICY owner ON %s TO loxodon_owner USING (true)', target);
    IF current_setting('server_version_num')::integer >= 170000 THEN
        EXECUTE format('GRANT MAINTAIN ON %s TO loxodon_worker', target);
    END IF;
END $$;

REVOKE EXECUTE ON FUNCTION protect(regclass) FROM PUBLIC;

-- functions/purge_subject.sql
-- Erases a subject: a scope (rows with every given id), or memories, and turns. With memories go their promoted copies,
-- what all of these said before, and the turns they came from, but for `keep_turns`. Returns the rows affected by table.
--
-- Of what was deleted before only history knows, or its texts. Rows that only mention the subject keep their time and
-- numbers and lose their texts (audit, other memories' decisions and snapshots). A job that runs this moment finds its
-- operation answered and stores nothing. The caches do not know whose texts they hold, so all of the workspace's go.
--
-- Besides appending this is the one way to change history and audit: the app has no right to delete there. The function
-- reads past the policies and repeats the workspace in every statement. docs/decisions/022-erasure.md
CREATE OR REPLACE FUNCTION purge_subject(
    of_user text,
    of_agent text,
    of_run text,
    of_channel text,
    of_memories uuid[],
    of_turns uuid[] DEFAULT '{}',
    keep_turns uuid[] DEFAULT '{}'
)
RETURNS TABLE (name text, affected bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    whole_user boolean := of_memories IS NULL AND of_agent IS NULL AND of_run IS NULL AND of_channel IS NULL;
    memory_ids uuid[];
    memory_id_texts text[];
    id_texts text[];
    conversation_ids uuid[];
    turn_ids uuid[];
    touched_conversations uuid[];
    operation_ids uuid[];
    operation_names text[];  -- of their stored answers: service/jobs/conversations.py
    entity_ids uuid[];
    changed_ids uuid[] := '{}';
BEGIN
    IF of_memories IS NULL AND of_user IS NULL AND of_agent IS NULL AND of_run IS NULL THEN
        RAISE EXCEPTION 'a subject is a user, an agent, a run, or memories and turns';
    END IF;
    IF of_memories IS NULL AND in_wall(of_user, of_agent, of_run, of_channel) IS NOT TRUE THEN
        RAISE insufficient_privilege USING MESSAGE = 'the subject lies outside the wall';
    END IF;
    of_memories := CASE WHEN of_memories IS NOT NULL
        THEN ARRAY(SELECT id FROM unnest(of_memories) id WHERE NOT is_outside('memory', id)) END;
    of_turns := ARRAY(SELECT id FROM unnest(of_turns) id WHERE NOT is_outside('turn', id));
    IF of_memories IS NOT NULL THEN
        WITH RECURSIVE copies AS (
            SELECT unnest(of_memories) AS id
            UNION
            SELECT CASE WHEN e.source_id = copies.id THEN e.target_id ELSE e.source_id END
            FROM copies
            JOIN memory_edge e ON e.workspace_id = this_workspace AND e.rel_type = 'PROMOTED_FROM'
                AND (e.source_id = copies.id OR e.target_id = copies.id)
        )
        SELECT coalesce(array_agg(id), '{}') INTO memory_ids FROM copies WHERE NOT is_outside('memory', id);
    ELSE
        SELECT coalesce(array_agg(DISTINCT id), '{}') INTO memory_ids FROM (
            SELECT m.id FROM memory m
            WHERE m.workspace_id = this_workspace
              AND (of_user IS NULL OR m.user_id = of_user)
              AND (of_agent IS NULL OR m.agent_id = of_agent)
              AND (of_run IS NULL OR m.run_id = of_run)
              AND (of_channel IS NULL OR m.channel = of_channel)
            UNION ALL
            SELECT h.memory_id FROM memory_history h
            WHERE h.workspace_id = this_workspace
              AND (of_user IS NULL OR h.user_id = of_user)
              AND (of_agent IS NULL OR h.agent_id = of_agent)
              AND (of_run IS NULL OR h.run_id = of_run)
              AND (of_channel IS NULL OR h.before ->> 'channel' = of_channel)
        ) known;
        memory_ids := memory_ids || ARRAY(  -- copies that promotion made of them
            SELECT DISTINCT e.source_id FROM memory_edge e
            WHERE e.workspace_id = this_workspace AND e.target_id = ANY (memory_ids) AND e.rel_type = 'PROMOTED_FROM'
              AND e.properties @> '{"copied": true}' AND NOT e.source_id = ANY (memory_ids)
              AND NOT is_outside('memory', e.source_id));
    END IF;
    memory_ids := memory_ids || copies_outside(memory_ids);
    memory_id_texts := memory_ids::text[];
    memory_ids := memory_ids || ARRAY(  -- copies that were deleted before
        SELECT DISTINCT h.memory_id FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'edges', '[]')) edge
        WHERE h.workspace_id = this_workspace AND h.event = 'DELETE' AND edge ->> 'rel_type' = 'PROMOTED_FROM'
          AND edge -> 'properties' @> '{"copied": true}' AND edge ->> 'source_id' = h.memory_id::text
          AND edge ->> 'target_id' = ANY (memory_id_texts) AND NOT is_outside('memory', h.memory_id));
    memory_id_texts := memory_ids::text[];
    memory_ids := memory_ids || ARRAY(  -- what all of these said before
        SELECT v.id FROM memory v WHERE v.workspace_id = this_workspace AND v.version_of = ANY (memory_ids)
        UNION
        SELECT h.memory_id FROM memory_history h
        WHERE h.workspace_id = this_workspace AND h.event = 'DELETE'
          AND h.before ->> 'version_of' = ANY (memory_id_texts));
    memory_id_texts := memory_ids::text[];

    -- locks, by ascending keys
    PERFORM FROM memory WHERE workspace_id = this_workspace AND id = ANY (memory_ids) ORDER BY id FOR UPDATE;
    PERFORM FROM memory_edge
    WHERE workspace_id = this_workspace AND (source_id = ANY (memory_ids) OR target_id = ANY (memory_ids))
    ORDER BY source_id, rel_type, target_id FOR UPDATE;

    -- turns and conversations; a turn that others' memories came from as well stays
    SELECT coalesce(array_agg(id), '{}') INTO turn_ids FROM (
        SELECT s.turn_id AS id FROM memory_source s
        WHERE s.workspace_id = this_workspace AND s.memory_id = ANY (memory_ids)
        UNION  -- the turns of a memory that is gone stand in its history only
        SELECT (source ->> 'turn_id')::uuid FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) source
        WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids)
        UNION
        SELECT t.id FROM turn t
        WHERE of_memories IS NULL AND t.workspace_id = this_workspace
          AND (of_user IS NULL OR t.user_id = of_user)
          AND (of_agent IS NULL OR t.agent_id = of_agent)
          AND (of_run IS NULL OR t.run_id = of_run)
          AND (of_channel IS NULL OR t.channel = of_channel)
          AND NOT EXISTS (SELECT FROM memory_source s WHERE s.workspace_id = this_workspace AND s.turn_id = t.id
                          AND NOT s.memory_id = ANY (memory_ids))
        UNION
        SELECT unnest(of_turns)
    ) sources WHERE NOT id = ANY (keep_turns) AND NOT is_outside('turn', id);
    SELECT coalesce(array_agg(DISTINCT t.conversation_id), '{}') INTO touched_conversations
    FROM turn t WHERE t.workspace_id = this_workspace AND t.id = ANY (turn_ids);
    SELECT coalesce(array_agg(c.id), '{}') INTO conversation_ids FROM conversation c
    WHERE of_memories IS NULL AND c.workspace_id = this_workspace
      AND (of_user IS NULL OR c.user_id = of_user)
      AND (of_agent IS NULL OR c.agent_id = of_agent)
      AND (of_run IS NULL OR c.external_id = of_run)
      AND (of_channel IS NULL OR c.channel = of_channel);
    name := 'conversation_log';  -- a turn that is gone is known by its words only
    DELETE FROM conversation_log l
    WHERE l.workspace_id = this_workspace
      AND (l.turn_id = ANY (turn_ids) OR l.conversation_id = ANY (conversation_ids)
           OR (of_memories IS NOT NULL
               AND EXISTS (SELECT FROM memory_history h
                           WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids)
                             AND h.user_id IS NOT DISTINCT FROM l.user_id AND h.agent_id IS NOT DISTINCT FROM l.agent_id
                             AND l.content_hash IN (encode(sha256(convert_to(h.old_memory, 'UTF8')), 'hex'),
                                                    encode(sha256(convert_to(h.new_memory, 'UTF8')), 'hex'))))
           OR (of_memories IS NULL
               AND (of_user IS NULL OR l.user_id = of_user)
               AND (of_agent IS NULL OR l.agent_id = of_agent)
               AND (of_run IS NULL OR l.run_id = of_run)
               AND (of_channel IS NULL OR l.channel = of_channel)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'turn_vector';
    DELETE FROM turn_vector v
    WHERE v.workspace_id = this_workspace AND v.turn_id IN (
        SELECT t.id FROM turn t WHERE t.workspace_id = this_workspace
          AND (t.conversation_id = ANY (conversation_ids) OR t.id = ANY (turn_ids)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'user_profile';
    DELETE FROM user_profile p WHERE whole_user AND p.workspace_id = this_workspace AND p.user_id = of_user;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'turn';
    WITH deleted AS (
        DELETE FROM turn t
        WHERE t.workspace_id = this_workspace
          AND (t.conversation_id = ANY (conversation_ids) OR t.id = ANY (turn_ids))
        RETURNING 1
    ) SELECT count(*) INTO affected FROM deleted;
    RETURN NEXT;
    name := 'conversation';
    DELETE FROM conversation c
    WHERE c.workspace_id = this_workspace
      AND (c.id = ANY (conversation_ids)
           OR (c.id = ANY (touched_conversations)
               AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = this_workspace AND t.conversation_id = c.id)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

    -- a turn's terms also stand in the context of its neighbours
    UPDATE memory m SET context_terms = '{}', context_bm25 = NULL
    WHERE m.workspace_id = this_workspace AND NOT m.id = ANY (memory_ids) AND m.context_terms <> '{}'
      AND m.conversation_id = ANY (touched_conversations);
    DELETE FROM memory_vector v
    WHERE v.workspace_id = this_workspace AND v.kind = 'context' AND v.memory_id IN (
        SELECT m.id FROM memory m
        WHERE m.workspace_id = this_workspace AND m.conversation_id = ANY (touched_conversations));

    -- memories, and what goes with them
    SELECT coalesce(array_agg(id), '{}') INTO entity_ids FROM (
        SELECT me.entity_id AS id FROM memory_entity me
        WHERE me.workspace_id = this_workspace AND me.memory_id = ANY (memory_ids)
        UNION
        SELECT entity::uuid FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(h.before -> 'entity_ids', '[]')) entity
        WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids)
    ) named;
    name := 'memory_vector';
    DELETE FROM memory_vector WHERE workspace_id = this_workspace AND memory_id = ANY (memory_ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'memory_edge';
    DELETE FROM memory_edge
    WHERE workspace_id = this_workspace AND (source_id = ANY (memory_ids) OR target_id = ANY (memory_ids));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'memory';
    DELETE FROM memory WHERE workspace_id = this_workspace AND id = ANY (memory_ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'entity';
    DELETE FROM entity e
    WHERE e.workspace_id = this_workspace
      AND ((whole_user AND e.user_id = of_user)
           OR (e.id = ANY (entity_ids)
               AND NOT EXISTS (SELECT FROM memory_entity me
                               WHERE me.workspace_id = this_workspace AND me.entity_id = e.id)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'review';
    DELETE FROM review WHERE workspace_id = this_workspace AND memory_id = ANY (memory_ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

    -- what a memory that stays said before, where no turn is left that told it: undo and as_of find nothing there
    IF turn_ids <> '{}' THEN
        WITH told AS (
            SELECT h.memory_id, array_agg(DISTINCT h.old_memory) AS texts
            FROM memory_history h JOIN memory m ON m.workspace_id = this_workspace AND m.id = h.memory_id
            WHERE h.workspace_id = this_workspace AND h.event = 'UPDATE'
              AND NOT h.memory_id = ANY (memory_ids) AND m.content <> h.old_memory
              AND EXISTS (SELECT FROM jsonb_array_elements(h.before -> 'sources') source
                          WHERE (source ->> 'turn_id')::uuid = ANY (turn_ids))
              AND NOT EXISTS (SELECT FROM jsonb_array_elements(h.before -> 'sources') source
                              JOIN turn t ON t.workspace_id = this_workspace AND t.id = (source ->> 'turn_id')::uuid)
            GROUP BY h.memory_id
        ), blanked AS (
            UPDATE memory_history h SET
                old_memory = CASE WHEN h.old_memory = ANY (told.texts) THEN NULL ELSE h.old_memory END,
                new_memory = CASE WHEN h.new_memory = ANY (told.texts) THEN NULL ELSE h.new_memory END,
                before = CASE WHEN h.before ->> 'content' = ANY (told.texts) THEN NULL ELSE h.before END,
                before_embedding = CASE WHEN h.before ->> 'content' = ANY (told.texts) THEN NULL ELSE h.before_embedding END
            FROM told
            WHERE h.workspace_id = this_workspace AND h.memory_id = told.memory_id
              AND (h.old_memory = ANY (told.texts) OR h.new_memory = ANY (told.texts)
                   OR h.before ->> 'content' = ANY (told.texts))
            RETURNING h.memory_id
        )
        SELECT coalesce(array_agg(DISTINCT memory_id), '{}') INTO changed_ids FROM blanked;
        UPDATE decision d SET reply = NULL, verdict = d.verdict - 'reason'
        WHERE d.workspace_id = this_workspace AND d.memory_id = ANY (changed_ids);
    END IF;

    -- history, audit and decisions; the change feed keeps the ids, behind all that it has told of them
    INSERT INTO erased_memory (workspace_id, memory_id, position)
    SELECT this_workspace, h.memory_id, greatest(pg_current_xact_id()::text::bigint, max(h.position))
    FROM memory_history h
    WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids) GROUP BY h.memory_id;
    name := 'memory_history';
    DELETE FROM memory_history WHERE workspace_id = this_workspace AND memory_id = ANY (memory_ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    UPDATE memory_history h SET before = jsonb_set(h.before, '{edges}', (
        SELECT coalesce(jsonb_agg(edge), '[]') FROM jsonb_array_elements(h.before -> 'edges') edge
        WHERE NOT edge ->> 'source_id' = ANY (memory_id_texts) AND NOT edge ->> 'target_id' = ANY (memory_id_texts)))
    WHERE h.workspace_id = this_workspace AND EXISTS (
        SELECT FROM jsonb_array_elements(coalesce(h.before -> 'edges', '[]')) edge
        WHERE edge ->> 'source_id' = ANY (memory_id_texts) OR edge ->> 'target_id' = ANY (memory_id_texts));
    name := 'decision';
    DELETE FROM decision d
    WHERE d.workspace_id = this_workspace
      AND (d.memory_id = ANY (memory_ids)
           OR (of_memories IS NULL AND of_channel IS NULL
               AND (of_user IS NULL OR d.user_id = of_user)
               AND (of_agent IS NULL OR d.agent_id = of_agent)
               AND (of_run IS NULL OR d.run_id = of_run)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    UPDATE decision d SET reply = NULL, verdict = d.verdict - 'reason'
    WHERE d.workspace_id = this_workspace AND d.candidates ?| memory_id_texts;
    name := 'audit_log';
    UPDATE audit_log a SET query_text = NULL, metadata = '{}', config_snapshot = '{}', error_message = NULL,
        user_id = NULL, session_id = NULL, conversation_id = NULL, request_id = NULL, source_channel = NULL,
        target_channels = '{}', promoted_from_channel = NULL
    WHERE a.workspace_id = this_workspace AND (a.affected_ids && (memory_ids || turn_ids) OR (of_memories IS NULL AND CASE
        WHEN of_user IS NOT NULL THEN a.user_id = of_user OR a.metadata #>> '{covers,user_id}' = of_user
        ELSE (of_agent IS NULL OR of_agent IN (a.metadata #>> '{scope,agent_id}', a.metadata #>> '{covers,agent_id}'))
         AND (of_run IS NULL OR of_run IN (a.metadata #>> '{scope,run_id}', a.metadata #>> '{covers,run_id}')) END));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

    -- jobs, answers and caches
    SELECT coalesce(array_agg(o.id), '{}'), coalesce(array_agg(coalesce(o.wall || ':', '') || 'operation:' || o.id), '{}')
    INTO operation_ids, operation_names FROM operation o
    WHERE o.workspace_id = this_workspace AND of_memories IS NULL AND o.request ? 'scope'
      AND (of_user IS NULL OR o.request -> 'scope' ->> 0 = of_user)
      AND (of_agent IS NULL OR o.request -> 'scope' ->> 1 = of_agent)
      AND (of_run IS NULL OR o.request -> 'scope' ->> 2 = of_run);
    name := 'job';
    DELETE FROM job j
    WHERE j.workspace_id = this_workspace
      AND (j.memory_id = ANY (memory_ids)
           OR j.payload ->> 'operation_id' = ANY (operation_ids::text[])
           OR j.payload ->> 'conversation_id' = ANY (conversation_ids::text[])
           OR (of_memories IS NULL AND (j.payload ? 'scope' OR of_channel IS NULL AND j.wall IS NOT NULL)
               AND (of_user IS NULL OR coalesce(j.payload -> 'scope', j.wall) ->> 'user_id' = of_user)
               AND (of_agent IS NULL OR coalesce(j.payload -> 'scope', j.wall) ->> 'agent_id' = of_agent)
               AND (of_run IS NULL OR coalesce(j.payload -> 'scope', j.wall) ->> 'run_id' = of_run)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'operation';
    DELETE FROM operation WHERE workspace_id = this_workspace AND id = ANY (operation_ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    -- the words of turns stand in the answers about them, also where only a part of a turn goes
    id_texts := memory_id_texts || turn_ids::text[] || keep_turns::text[] || changed_ids::text[];
    name := 'idempotency';
    DELETE FROM idempotency i
    WHERE i.workspace_id = this_workspace AND i.status IS NOT NULL
      AND ((of_memories IS NULL AND coalesce(i.user_id, i.agent_id, i.run_id) IS NOT NULL
            AND (of_user IS NULL OR i.user_id = of_user)
            AND (of_agent IS NULL OR i.agent_id = of_agent)
            AND (of_run IS NULL OR i.run_id = of_run))
           OR i.body ->> 'operation_id' = ANY (operation_ids::text[])
           OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.id') value
                      WHERE value #>> '{}' = ANY (id_texts))
           OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.source_id') value
                      WHERE value #>> '{}' = ANY (id_texts))
           OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.target_id') value
                      WHERE value #>> '{}' = ANY (id_texts)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    -- the only unanswered row in sight is this request's own
    UPDATE idempotency SET user_id = NULL, agent_id = NULL, run_id = NULL
    WHERE workspace_id = this_workspace AND status IS NULL;
    INSERT INTO idempotency (workspace_id, key, fingerprint, status, body, expires_at)
    SELECT this_workspace, cancelled.name, cancelled.id::text, 410,
           '{"results": [], "warnings": ["purged"]}', now() + interval '1 day'
    FROM unnest(operation_ids, operation_names) cancelled (id, name)
    ON CONFLICT DO NOTHING;
    name := 'llm_cache';
    DELETE FROM llm_cache WHERE workspace_id = this_workspace;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'embedding_cache';
    DELETE FROM embedding_cache WHERE workspace_id = this_workspace;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
END $$;

REVOKE EXECUTE ON FUNCTION purge_subject(text, text, text, text, uuid[], uuid[], uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION purge_subject(text, text, text, text, uuid[], uuid[], uuid[]) TO loxodon_app;

-- functions/queue_depth.sql
-- How many jobs of all workspaces are due, up to 10,000.
CREATE OR REPLACE FUNCTION queue_depth()
RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    -- counting stops at 10,000: a health check must stay cheap when the queue is long
    SELECT count(*)::integer FROM (SELECT 1 FROM job WHERE state = 'ready' AND run_after <= now() LIMIT 10000) due
$$;

REVOKE EXECUTE ON FUNCTION queue_depth() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION queue_depth() TO loxodon_app;

-- functions/refuse_unanswered.sql
-- Refuses to commit an Idempotency-Key without the answer that a repetition gets: it would fail for a day.
CREATE OR REPLACE FUNCTION refuse_unanswered()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM idempotency i
               WHERE i.workspace_id = NEW.workspace_id AND i.key = NEW.key AND i.status IS NULL) THEN
        RAISE EXCEPTION 'an Idempotency-Key has no answer';
    END IF;
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION refuse_unanswered() FROM PUBLIC;

-- functions/rewrite_turn.sql
-- Cuts words out of a turn for good: its text and that of its line in the log, which is append-only for the app. The
-- spans of what is left move with it. The caller writes anew what is shown of the turn.
CREATE OR REPLACE FUNCTION rewrite_turn(of_turn uuid, new_content text, new_hash text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
BEGIN
    IF is_outside('turn', of_turn) THEN
        RAISE insufficient_privilege USING MESSAGE = 'the turn lies outside the wall';
    END IF;
    UPDATE turn t SET content = new_content, content_hash = new_hash
    WHERE t.workspace_id = this_workspace AND t.id = of_turn;
    UPDATE conversation_log l SET content = new_content, content_hash = new_hash
    WHERE l.workspace_id = this_workspace AND l.turn_id = of_turn;
END $$;

REVOKE EXECUTE ON FUNCTION rewrite_turn(uuid, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rewrite_turn(uuid, text, text) TO loxodon_app;

-- functions/schema_revision.sql
-- The revision of the schema, and the oldest revisions of the code that can still read it and write to it.
--
-- A migration that expands (adds what older code need not know of) leaves both. One after which older code would write
-- what is wrong puts its own revision in place of oldest_writer; one that older code cannot read past (a dropped or renamed
-- column, a changed function) in place of both. service/db/readiness.py compares them with its own. docs/upgrades.md
CREATE OR REPLACE FUNCTION schema_revision()
RETURNS TABLE (revision integer, oldest_reader integer, oldest_writer integer)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT version_num::integer, 1, 1 FROM alembic_version
$$;

REVOKE EXECUTE ON FUNCTION schema_revision() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION schema_revision() TO loxodon_app;

-- functions/sum_model_day.sql
-- What all workspaces together spent on the language model on a day.
CREATE OR REPLACE FUNCTION sum_model_day(of_day date)
RETURNS TABLE (calls bigint, prompt_tokens bigint, completion_tokens bigint, cost double precision)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(sum(d.calls), 0)::bigint, coalesce(sum(d.prompt_tokens), 0)::bigint,
           coalesce(sum(d.completion_tokens), 0)::bigint, coalesce(sum(d.cost), 0)
    FROM model_day d WHERE d.day = of_day
$$;

REVOKE EXECUTE ON FUNCTION sum_model_day(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sum_model_day(date) TO loxodon_app;

-- functions/sweep_working.sql
-- Deletes at most `batch_size` working items of all workspaces that have expired at time `at`; returns how many.
-- SKIP LOCKED and the limit: the sweeper waits for no request, and no request for the sweeper.
CREATE OR REPLACE FUNCTION sweep_working(at timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    DELETE FROM working_item WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM working_item WHERE expires_at <= at ORDER BY expires_at
        LIMIT batch_size FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

REVOKE EXECUTE ON FUNCTION sweep_working(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sweep_working(timestamptz, integer) TO loxodon_worker;

-- functions/tag_ids.sql
-- Ids of up to `candidate_limit` memories of a scope, newest first, that have a tag with one of the prefixes, read from
-- the GIN index over filter keys; `scan_limit` bounds the rows read. Row-level security does not apply inside, as in
-- lexical_ids().
CREATE OR REPLACE FUNCTION tag_ids(
    of_user text,
    of_agent text,
    of_run text,
    of_channels text[],
    prefixes text[],
    scan_limit integer,
    candidate_limit integer,
    match_any boolean DEFAULT false,
    with_shared boolean DEFAULT false
)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    prefix_keys integer[] := memory_filter_keys(this_workspace, prefixes, '{}', '{}', '{}', '{}', false);
BEGIN
    RETURN QUERY
    WITH candidates AS MATERIALIZED (
        SELECT m.workspace_id, m.id, m.created_at FROM memory m
        WHERE memory_filter_keys(
                m.workspace_id, m.tags, m.tag_prefixes, m.categories,
                ARRAY['type ' || m.type, 'role ' || m.role, 'speaker ' || m.speaker,
                      'session ' || m.session_id, 'conversation ' || m.conversation_id::text],
                m.metadata, true) && prefix_keys
          AND m.tag_prefixes && prefixes
          AND is_in_scope(m.user_id, m.agent_id, m.run_id, of_user, of_agent, of_run, match_any, with_shared)
          AND (of_channels IS NULL OR m.channel = ANY (of_channels))
        LIMIT scan_limit
    )
    SELECT c.id FROM candidates c WHERE c.workspace_id = this_workspace
    ORDER BY c.created_at DESC, c.id LIMIT candidate_limit;
END $$;

REVOKE EXECUTE ON FUNCTION tag_ids(text, text, text, text[], text[], integer, integer, boolean, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tag_ids(text, text, text, text[], text[], integer, integer, boolean, boolean) TO loxodon_app;

-- functions/token_secret.sql
-- The secret that tokens are signed with: the one that is kept, which is the first that was proposed.
CREATE OR REPLACE FUNCTION token_secret(proposed text)
RETURNS text
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    INSERT INTO token_secret (secret) VALUES (proposed) ON CONFLICT DO NOTHING;
    SELECT secret FROM token_secret
$$;

REVOKE EXECUTE ON FUNCTION token_secret(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION token_secret(text) TO loxodon_app;

-- functions/workspace_terms.sql
-- Terms hashed together with the workspace: a term that is common in one tenant's texts makes no posting list longer
-- for another. Collisions are filtered out by comparing the terms themselves.
CREATE OR REPLACE FUNCTION workspace_terms(of_workspace uuid, of_terms integer[])
RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = public, pg_temp
AS $$
    SELECT array_agg(term # uuid_hash(of_workspace)) FROM unnest(of_terms) term
$$;

REVOKE EXECUTE ON FUNCTION workspace_terms(uuid, integer[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION workspace_terms(uuid, integer[]) TO loxodon_app;

-- tables/tenants.sql
-- Workspaces and their API keys.

CREATE TABLE workspace (
    workspace_id uuid CONSTRAINT pk_workspace PRIMARY KEY,
    name varchar(200) NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}'::jsonb,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- `user_id`, `agent_id`, `run_id` and `channels` are a wall: a request with the key reaches nothing outside it
-- (walls.sql). The defaults only fill in what a request leaves out. After a rotation the old secret stays valid until
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

-- What tokens are signed with where the settings name no secret. Read by token_secret() alone.
CREATE TABLE token_secret (
    only_one boolean NOT NULL DEFAULT true CONSTRAINT pk_token_secret PRIMARY KEY
        CONSTRAINT ck_token_secret_only_one CHECK (only_one),
    secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- UNLOGGED: a token taken costs no write-ahead log. `subject` is a key, or the workspace for all of its keys.
CREATE UNLOGGED TABLE budget (
    workspace_id uuid NOT NULL,
    subject uuid NOT NULL,
    unit text NOT NULL,
    tokens double precision NOT NULL,
    granted double precision NOT NULL,
    refilled_at timestamptz NOT NULL,
    CONSTRAINT pk_budget PRIMARY KEY (workspace_id, subject, unit)
);

-- What a workspace spent on the language model on a day in UTC. `held`: calls under way, by id, as [tokens, cost, end];
-- what has passed its end, in seconds since 1970, was left by a process that died, and no longer counts.
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

-- tables/memories.sql
-- Memories, what reads and jobs change about them, how often terms occur, and the edges between memories.
--
-- Under row-level security only btree equality and ranges can use an index (their operators are leakproof), so scopes
-- have btree indexes. The GIN indexes below are read by SECURITY DEFINER functions alone.

CREATE TABLE memory (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    session_id text,
    content text NOT NULL,
    hash varchar(32) NOT NULL,
    dedup_key varchar(32),
    terms integer[] NOT NULL DEFAULT '{}',
    bm25 sparsevec(1000000000),
    context_terms integer[] NOT NULL DEFAULT '{}',
    context_bm25 sparsevec(1000000000),
    type text NOT NULL,
    type_confidence double precision NOT NULL,
    classification_source text NOT NULL,
    fact_confidence double precision,
    importance double precision NOT NULL,
    importance_level smallint NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    tag_prefixes text[] NOT NULL DEFAULT '{}',
    categories text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    "timestamp" timestamptz NOT NULL,
    t_valid timestamptz,
    t_invalid timestamptz,
    temporal_type text,
    valid_until timestamptz,
    temporal_tag text,
    mentions jsonb NOT NULL DEFAULT '[]'::jsonb,
    role varchar(20),
    speaker varchar(200),
    conversation_id uuid,
    turn_index integer,
    summary varchar(240),
    enriched_at timestamptz,
    enrichment_attempts smallint NOT NULL DEFAULT 0,
    embedding_status text NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz,
    review_status varchar(16)
        CONSTRAINT ck_memory_review_status CHECK (review_status IN ('flagged')),
    version_of uuid,
    said_at timestamptz[],
    CONSTRAINT pk_memory PRIMARY KEY (workspace_id, id),
    CONSTRAINT fk_memory_version_of FOREIGN KEY (workspace_id, version_of)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_memory_content CHECK (char_length(content) >= 1),
    CONSTRAINT ck_memory_type CHECK (type IN
        ('Decision', 'Pattern', 'Preference', 'Style', 'Habit', 'Insight', 'Context')),
    CONSTRAINT ck_memory_type_confidence CHECK (type_confidence >= 0 AND type_confidence <= 1),
    CONSTRAINT ck_memory_fact_confidence CHECK (fact_confidence >= 0 AND fact_confidence <= 1),
    CONSTRAINT ck_memory_importance CHECK (importance >= 0 AND importance <= 1),
    CONSTRAINT ck_memory_importance_level CHECK (importance_level >= 1 AND importance_level <= 10),
    CONSTRAINT ck_memory_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_memory_temporal_type CHECK (temporal_type IN ('persistent', 'temporal')),
    CONSTRAINT ck_memory_temporal_tag CHECK (temporal_tag IN ('current', 'past', 'future')),
    CONSTRAINT ck_memory_embedding_status CHECK (embedding_status IN ('stored', 'queued', 'placeholder')),
    CONSTRAINT ck_memory_enrichment_attempts CHECK (enrichment_attempts >= 0 AND enrichment_attempts <= 3)
);

-- Lists of a scope, newest first, with the id as tie-breaker.
CREATE INDEX ix_memory_user ON memory (workspace_id, user_id, created_at DESC, id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_memory_agent ON memory (workspace_id, agent_id, created_at DESC, id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_memory_run ON memory (workspace_id, run_id, created_at DESC, id) WHERE run_id IS NOT NULL;
CREATE INDEX ix_memory_shared ON memory (workspace_id, created_at DESC, id)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL;
CREATE INDEX ix_memory_created ON memory (workspace_id, created_at DESC, id);
CREATE INDEX ix_memory_timestamp ON memory (workspace_id, "timestamp" DESC);
CREATE INDEX ix_memory_importance ON memory (workspace_id, importance DESC, "timestamp" DESC);
CREATE INDEX ix_memory_hash ON memory (workspace_id, hash);

-- The past versions of a memory: docs/time.md
CREATE INDEX ix_memory_version_of ON memory (workspace_id, version_of) WHERE version_of IS NOT NULL;

-- Ends a race of two equal adds. Only rows that take part in deduplication have a dedup_key.
-- docs/decisions/016-dedup-key.md
CREATE UNIQUE INDEX uq_memory_dedup
    ON memory (workspace_id, user_id, agent_id, run_id, channel, dedup_key) NULLS NOT DISTINCT
    WHERE dedup_key IS NOT NULL AND NOT archived;

-- Work for upkeep, and channels.
CREATE INDEX ix_memory_unembedded ON memory (workspace_id, id) WHERE embedding_status <> 'stored';
CREATE INDEX ix_memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ix_memory_channel ON memory (workspace_id, channel, created_at DESC);
CREATE INDEX ix_memory_user_channel ON memory (workspace_id, user_id, channel) WHERE user_id IS NOT NULL;

-- Terms of a workspace's texts, read by lexical_ids().
CREATE INDEX ix_memory_terms ON memory USING gin (workspace_terms(workspace_id, terms))
    WITH (fastupdate = off) WHERE terms <> '{}';
CREATE INDEX ix_memory_context_terms ON memory USING gin (workspace_terms(workspace_id, context_terms))
    WITH (fastupdate = off) WHERE context_terms <> '{}';

-- BM25 of a scope without touching the table. An index entry holds at most 2,704 bytes: beside the longest ids
-- (512 bytes) and channel (100 characters of 4 bytes) that is room for 120 terms of 8 bytes. Rows with more terms
-- are found by the _many_terms indexes and read from the table, and so are scopes of a run, which are short. Both are
-- read in the order of their ids, which no other index of a scope has: so the planner takes them, whatever it knows.
CREATE INDEX ix_memory_user_bm25 ON memory (workspace_id, user_id, channel, id)
    INCLUDE (created_at, "timestamp", archived, expires_at, review_status, t_valid, t_invalid, valid_until, agent_id,
             bm25, context_bm25)
    WHERE user_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) <= 120;
CREATE INDEX ix_memory_agent_bm25 ON memory (workspace_id, agent_id, channel, id)
    INCLUDE (created_at, "timestamp", archived, expires_at, review_status, t_valid, t_invalid, valid_until, user_id,
             bm25, context_bm25)
    WHERE agent_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) <= 120;
CREATE INDEX ix_memory_shared_bm25 ON memory (workspace_id, channel, id)
    INCLUDE (created_at, "timestamp", archived, expires_at, review_status, t_valid, t_invalid, valid_until, bm25,
             context_bm25)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL
      AND cardinality(terms) + cardinality(context_terms) <= 120;
CREATE INDEX ix_memory_user_many_terms ON memory (workspace_id, user_id, id)
    WHERE user_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) > 120;
CREATE INDEX ix_memory_agent_many_terms ON memory (workspace_id, agent_id, id)
    WHERE agent_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) > 120;
CREATE INDEX ix_memory_run_many_terms ON memory (workspace_id, run_id, id)
    WHERE run_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) > 120;
CREATE INDEX ix_memory_shared_many_terms ON memory (workspace_id, id)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL
      AND cardinality(terms) + cardinality(context_terms) > 120;

-- Names of the speakers in a scope, one step of the index per name.
CREATE INDEX ix_memory_user_speaker ON memory (workspace_id, user_id, speaker, channel)
    WHERE user_id IS NOT NULL AND speaker IS NOT NULL;
CREATE INDEX ix_memory_agent_speaker ON memory (workspace_id, agent_id, speaker, channel)
    WHERE agent_id IS NOT NULL AND speaker IS NOT NULL;
CREATE INDEX ix_memory_run_speaker ON memory (workspace_id, run_id, speaker, channel)
    WHERE run_id IS NOT NULL AND speaker IS NOT NULL;
CREATE INDEX ix_memory_shared_speaker ON memory (workspace_id, speaker, channel)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL AND speaker IS NOT NULL;

-- Filter keys (tags, categories, some columns, metadata values and ranges), read by narrow_ids() and tag_ids().
CREATE INDEX ix_memory_filter_keys ON memory
    USING gin (memory_filter_keys(workspace_id, tags, tag_prefixes, categories,
                                  ARRAY['type ' || type, 'role ' || role, 'speaker ' || speaker,
                                        'session ' || session_id, 'conversation ' || conversation_id::text],
                                  metadata, true))
    WITH (fastupdate = off);

-- What reads and jobs change. No index but the key, and room in each page for a new version of all its rows, which ageing
-- writes at once: so updates stay HOT.
-- docs/decisions/004-changing-numbers-apart.md
CREATE TABLE memory_stat (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    relevance double precision NOT NULL DEFAULT 1,
    salience double precision NOT NULL DEFAULT 0.5,
    access_count integer NOT NULL DEFAULT 0,
    last_accessed timestamptz NOT NULL,
    base_relevance double precision NOT NULL DEFAULT 1,
    base_salience double precision NOT NULL DEFAULT 0.5,
    base_confidence double precision,
    stale_at timestamptz,
    promoted_at timestamptz,
    seen_in text[],
    confidence double precision,
    confirmed_at timestamptz,
    CONSTRAINT pk_memory_stat PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT fk_memory_stat_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);

-- In how many texts and contexts of a workspace a term occurs, counted by a job. Term 0 is the number of texts; rows of
-- the nil workspace sum up terms that several workspaces use.
CREATE TABLE term_stat (
    workspace_id uuid NOT NULL,
    term integer NOT NULL,
    texts integer NOT NULL,
    contexts integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_term_stat PRIMARY KEY (workspace_id, term),
    CONSTRAINT ck_term_stat_counts CHECK (term >= 0 AND texts >= 0 AND contexts >= 0)
);

CREATE TABLE memory_edge (
    workspace_id uuid NOT NULL,
    source_id uuid NOT NULL,
    rel_type varchar(32) NOT NULL,
    target_id uuid NOT NULL,
    strength double precision NOT NULL DEFAULT 1,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    t_valid timestamptz,
    t_invalid timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_memory_edge PRIMARY KEY (workspace_id, source_id, rel_type, target_id),
    CONSTRAINT ck_memory_edge_rel_type CHECK (rel_type IN
        ('OCCURRED_BEFORE', 'SIMILAR_TO', 'EXEMPLIFIES', 'INVALIDATED_BY', 'DERIVED_FROM', 'PREFERS_OVER',
         'EVOLVED_INTO', 'SUPERSEDES', 'PROMOTED_FROM', 'RELATES_TO', 'LEADS_TO', 'CONTRADICTS', 'REINFORCES',
         'PART_OF', 'MAY_OUTDATE')),
    CONSTRAINT ck_memory_edge_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT ck_memory_edge_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_memory_edge_ends CHECK (source_id <> target_id),
    CONSTRAINT fk_memory_edge_source FOREIGN KEY (workspace_id, source_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_edge_target FOREIGN KEY (workspace_id, target_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_memory_edge_target ON memory_edge (workspace_id, target_id, rel_type, source_id);
CREATE INDEX ix_memory_edge_source_strength ON memory_edge (workspace_id, source_id, strength DESC, target_id);
CREATE INDEX ix_memory_edge_target_strength ON memory_edge (workspace_id, target_id, strength DESC, source_id);

-- Pairs that a person may look at (service/db/memories/findings.py), in the order in which they are walked.
CREATE INDEX ix_memory_edge_finding ON memory_edge (workspace_id, rel_type, source_id, target_id)
    WHERE rel_type IN ('MAY_OUTDATE', 'CONTRADICTS') OR (rel_type = 'SIMILAR_TO' AND strength >= 0.9);

-- tables/vectors.sql
-- Vectors of memories, by generation: one generation per embedding model.
--
-- `embedding` has no fixed length, so a new generation of another dimension fits beside the old one. Each generation
-- has a CHECK on its length and a partial HNSW index of its own. `:dimension` is the length of generation 1.
-- docs/decisions/005-vector-generations.md

-- building: vectors are being made; active: searches use it; retired: kept, so that one can go back; dropped: its vectors
-- are gone or going, and its number is never given again, because history names it.
CREATE TABLE embedding_generation (
    generation smallint CONSTRAINT pk_embedding_generation PRIMARY KEY,
    model text NOT NULL,
    dimension integer NOT NULL,
    calibration jsonb NOT NULL DEFAULT '{}'::jsonb,
    state text NOT NULL
        CONSTRAINT ck_embedding_generation_state CHECK (state IN ('active', 'building', 'retired', 'dropped')),
    created_at timestamptz NOT NULL DEFAULT now(),
    activated_at timestamptz
);
CREATE UNIQUE INDEX ix_embedding_generation_active ON embedding_generation (state) WHERE state IN ('active', 'building');

CREATE TABLE memory_vector (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    generation smallint NOT NULL,
    kind varchar(16) NOT NULL CONSTRAINT ck_memory_vector_kind CHECK (kind IN ('text', 'context', 'placeholder')),
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    binary_embedding bit varying GENERATED ALWAYS AS (binary_quantize(embedding)) STORED,
    CONSTRAINT pk_memory_vector PRIMARY KEY (workspace_id, memory_id, generation, kind),
    CONSTRAINT ck_memory_vector_dimension_1 CHECK (generation <> 1 OR vector_dims(embedding) = :dimension),
    CONSTRAINT fk_memory_vector_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
) PARTITION BY HASH (workspace_id);

-- Binary quantised vectors of a scope without touching the table: 20,000 of them lie in some hundred pages.
CREATE INDEX ix_memory_vector_user ON memory_vector (workspace_id, user_id, kind)
    INCLUDE (memory_id, generation, channel, agent_id, run_id, binary_embedding)
    WHERE user_id IS NOT NULL;
CREATE INDEX ix_memory_vector_agent ON memory_vector (workspace_id, agent_id, kind)
    INCLUDE (memory_id, generation, channel, user_id, run_id, binary_embedding)
    WHERE agent_id IS NOT NULL;
CREATE INDEX ix_memory_vector_run ON memory_vector (workspace_id, run_id, kind)
    INCLUDE (memory_id, generation, channel, user_id, agent_id, binary_embedding)
    WHERE run_id IS NOT NULL;
CREATE INDEX ix_memory_vector_shared ON memory_vector (workspace_id, kind)
    INCLUDE (memory_id, generation, channel, binary_embedding)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL;

-- m = 24: with pgvector's 16, 3 of 60 queries among 200,000 vectors of near-equal texts found none of their ten
-- nearest; 32 gave no more. ef_construction = 200: with 64 whole clusters had no way in (recall@10 .96, now .997).
CREATE INDEX ix_memory_vector_hnsw_1 ON memory_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops) WITH (m = 24, ef_construction = 200)
    WHERE generation = 1 AND kind = 'text';

-- tables/conversations.sql
-- Conversations, their turns and the turns' vectors, the append-only log, user profiles, working memory.

CREATE TABLE conversation (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    external_id text NOT NULL,
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
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, agent_id, external_id, channel)
);
CREATE INDEX ix_conversation_unconsolidated ON conversation (workspace_id, created_at) WHERE consolidated_at IS NULL;
CREATE INDEX ix_conversation_user_channel ON conversation (workspace_id, user_id, channel);
CREATE INDEX ix_conversation_channel ON conversation (workspace_id, channel);
CREATE INDEX ix_conversation_user ON conversation (workspace_id, user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX ix_conversation_agent ON conversation (workspace_id, agent_id, created_at) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_conversation_external ON conversation (workspace_id, external_id);

-- A turn carries the scope of its conversation; run_id is the conversation's external_id.
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

-- Sentences of turns that no longer count, and why. The memory may be gone by now, so it is no foreign key.
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
    CONSTRAINT pk_conversation_log PRIMARY KEY (workspace_id, recorded_at, id)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_conversation_log_conversation ON conversation_log (workspace_id, conversation_id, turn_index);
CREATE INDEX ix_conversation_log_channel ON conversation_log (workspace_id, channel, "timestamp");
CREATE INDEX ix_conversation_log_user ON conversation_log (workspace_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_conversation_log_recorded ON conversation_log USING brin (recorded_at);
CREATE INDEX ix_conversation_log_timestamp ON conversation_log USING brin ("timestamp");

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

-- UNLOGGED: a write costs no write-ahead log; the table is empty after a crash, a failover or a restore.
CREATE SEQUENCE working_item_seq;
CREATE UNLOGGED TABLE working_item (
    workspace_id uuid NOT NULL,
    session_id uuid NOT NULL,
    kind varchar(8) NOT NULL
        CONSTRAINT ck_working_item_kind CHECK (kind IN ('turn', 'item', 'thought', 'goal', 'session')),
    key text NOT NULL,
    user_id text,
    agent_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    conversation_id text NOT NULL,
    turn_id uuid,
    value jsonb NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('working_item_seq'),
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT pk_working_item PRIMARY KEY (workspace_id, session_id, kind, key),
    CONSTRAINT fk_working_item_turn FOREIGN KEY (workspace_id, turn_id)
        REFERENCES turn (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_working_item_turn ON working_item (workspace_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ix_working_item_user ON working_item (workspace_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_working_item_agent ON working_item (workspace_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_working_item_expires ON working_item (expires_at);

-- tables/entities.sql
-- Entities, their other names and vectors, which memories name them, relations with evidence, and merges.

CREATE TABLE entity (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    name text NOT NULL,
    name_key text NOT NULL,
    type text NOT NULL,
    aliases text[] NOT NULL DEFAULT '{}',
    description text,
    extracted_by varchar(16) NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    first_seen timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    salience double precision NOT NULL DEFAULT 0.5
        CONSTRAINT ck_entity_salience CHECK (salience >= 0 AND salience <= 1),
    base_salience double precision NOT NULL DEFAULT 0.5,
    access_count integer NOT NULL DEFAULT 0,
    last_accessed timestamptz,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_entity_workspace_id_user_id_channel_name_key
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, channel, name_key)
);
CREATE INDEX ix_entity_name ON entity (workspace_id, name_key);
CREATE INDEX ix_entity_channel ON entity (workspace_id, channel);

CREATE TABLE entity_alias (
    workspace_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    alias_key text NOT NULL,
    alias text NOT NULL,
    user_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_alias PRIMARY KEY (workspace_id, entity_id, alias_key),
    CONSTRAINT uq_entity_alias_workspace_id_user_id_channel_alias_key
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, channel, alias_key),
    CONSTRAINT fk_entity_alias_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_alias_key ON entity_alias (workspace_id, alias_key);

CREATE TABLE entity_vector (
    workspace_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    generation smallint NOT NULL,
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_vector PRIMARY KEY (workspace_id, entity_id, generation),
    CONSTRAINT fk_entity_vector_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_vector_hnsw_1 ON entity_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops)
    WHERE generation = 1;

CREATE TABLE memory_entity (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    extracted_by varchar(16) NOT NULL DEFAULT 'rules',
    CONSTRAINT pk_memory_entity PRIMARY KEY (workspace_id, memory_id, entity_id),
    CONSTRAINT fk_memory_entity_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_entity_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_memory_entity_entity ON memory_entity (workspace_id, entity_id);

CREATE TABLE entity_edge (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    source_id uuid NOT NULL,
    rel_type varchar(64) NOT NULL,
    label varchar(200) NOT NULL,
    target_id uuid NOT NULL,
    strength double precision NOT NULL DEFAULT 1,
    confidence double precision NOT NULL DEFAULT 1,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    t_valid timestamptz,
    t_invalid timestamptz,
    extracted_by varchar(16) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_edge PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_entity_edge_workspace_id_source_id_target_id_rel_type
        UNIQUE (workspace_id, source_id, target_id, rel_type),
    CONSTRAINT ck_entity_edge_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT ck_entity_edge_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT ck_entity_edge_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_entity_edge_ends CHECK (source_id <> target_id),
    CONSTRAINT fk_entity_edge_source FOREIGN KEY (workspace_id, source_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_entity_edge_target FOREIGN KEY (workspace_id, target_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_edge_source ON entity_edge (workspace_id, source_id, strength DESC, target_id);
CREATE INDEX ix_entity_edge_target ON entity_edge (workspace_id, target_id, strength DESC, source_id);
CREATE INDEX ix_entity_edge_source_type ON entity_edge (workspace_id, source_id, rel_type, strength DESC, target_id);
CREATE INDEX ix_entity_edge_target_type ON entity_edge (workspace_id, target_id, rel_type, strength DESC, source_id);

CREATE TABLE entity_edge_source (
    workspace_id uuid NOT NULL,
    edge_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    extracted_by varchar(16) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_edge_source PRIMARY KEY (workspace_id, edge_id, memory_id),
    CONSTRAINT fk_entity_edge_source_entity_edge FOREIGN KEY (workspace_id, edge_id)
        REFERENCES entity_edge (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_entity_edge_source_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_edge_source_memory ON entity_edge_source (workspace_id, memory_id);

CREATE TABLE entity_merge (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    entity_id uuid NOT NULL,
    absorbed_id uuid NOT NULL,
    absorbed jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    undone_at timestamptz,
    CONSTRAINT pk_entity_merge PRIMARY KEY (workspace_id, id),
    CONSTRAINT fk_entity_merge_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_merge_entity ON entity_merge (workspace_id, entity_id);

-- tables/goals.sql
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

-- tables/procedures.sql
-- Tools, every use of a tool, and strategies learned from them.

CREATE TABLE tool (
    workspace_id uuid NOT NULL,
    name varchar(100) NOT NULL,
    usage_count bigint NOT NULL DEFAULT 0,
    success_count bigint NOT NULL DEFAULT 0,
    timed_count bigint NOT NULL DEFAULT 0,
    avg_latency_ms double precision,
    last_used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_tool PRIMARY KEY (workspace_id, name),
    CONSTRAINT ck_tool_counts CHECK (success_count <= usage_count AND timed_count <= usage_count)
);

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

CREATE TABLE strategy_tool (
    workspace_id uuid NOT NULL,
    strategy_id uuid NOT NULL,
    place smallint NOT NULL,
    tool_name varchar(100) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_strategy_tool PRIMARY KEY (workspace_id, strategy_id, place),
    CONSTRAINT fk_strategy_tool_strategy FOREIGN KEY (workspace_id, strategy_id)
        REFERENCES strategy (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_strategy_tool_name ON strategy_tool (workspace_id, tool_name, strategy_id);

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

-- tables/history.sql
-- What happened: history of memories, audit, decisions, reviews.
--
-- History and audit are partitioned by the time of recording, not by the event's own time: imported conversations are
-- years old and would all land in the DEFAULT partition.

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

-- tables/jobs.sql
-- The job queue, its runs and timetable, operations answered later, stored responses, caches.

-- Every row is written three times within seconds: at the default of 20 % dead rows VACUUM would come after days.
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

-- tables/migrations.sql
-- Which migrations were applied, and when. migrations/env.py writes them; alembic_version keeps only the last.

CREATE TABLE migration (
    revision text CONSTRAINT pk_migration PRIMARY KEY,
    description text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
CREATE VIEW schema_version WITH (security_invoker = true) AS
    SELECT revision::integer AS version, description, applied_at FROM migration;

-- triggers.sql
CREATE OR REPLACE TRIGGER drop_unsupported_edge AFTER DELETE ON entity_edge_source
    FOR EACH ROW EXECUTE FUNCTION drop_unsupported_edge();

CREATE OR REPLACE TRIGGER archive_turns AFTER UPDATE OF archived ON conversation
    FOR EACH ROW WHEN (NEW.archived <> OLD.archived) EXECUTE FUNCTION archive_turns();

CREATE OR REPLACE TRIGGER fail_operation AFTER UPDATE OF state ON job
    FOR EACH ROW WHEN (NEW.state = 'dead' AND NEW.payload ? 'operation_id') EXECUTE FUNCTION fail_operation();

CREATE CONSTRAINT TRIGGER refuse_unanswered AFTER INSERT OR UPDATE ON idempotency DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.status IS NULL) EXECUTE FUNCTION refuse_unanswered();

-- policies.sql
-- Row-level security, which keeps workspaces apart. It is forced on every table, so that it holds for its owner too.

-- Tables with a workspace: protect() adds the policies `tenant` and `owner`.
SELECT protect(c.oid) FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname;

-- Memories without an owner belong to the whole workspace. They are written only by a transaction that says so
-- (Database.begin), which a request may with the right memory:share, and by the worker. Reads need no such wall: every
-- key of the workspace may see them. docs/decisions/041-shared-memories.md
DO $$
DECLARE
    target text;
    allowed constant text := '(user_id IS NOT NULL OR agent_id IS NOT NULL OR run_id IS NOT NULL '
        'OR current_setting(''loxodon.shared'', true) = ''on'' OR pg_has_role(''loxodon_worker'', ''USAGE''))';
BEGIN
    FOREACH target IN ARRAY ARRAY['memory', 'memory_vector'] LOOP
        EXECUTE format('CREATE POLICY shared_insert ON %I AS RESTRICTIVE FOR INSERT TO loxodon_app, loxodon_walled '
                       'WITH CHECK %s', target, allowed);
        EXECUTE format('CREATE POLICY shared_update ON %I AS RESTRICTIVE FOR UPDATE TO loxodon_app, loxodon_walled '
                       'USING %s', target, allowed);
        EXECUTE format('CREATE POLICY shared_delete ON %I AS RESTRICTIVE FOR DELETE TO loxodon_app, loxodon_walled '
                       'USING %s', target, allowed);
    END LOOP;
END $$;

-- The worker sees the queue of all workspaces.
CREATE POLICY worker ON job TO loxodon_worker USING (true);
CREATE POLICY worker ON job_run TO loxodon_worker USING (true);

-- The counts of terms over all workspaces, stored under the nil workspace, may be read by all of them.
CREATE POLICY common ON term_stat FOR SELECT TO loxodon_app, loxodon_walled
    USING (workspace_id = '00000000-0000-0000-0000-000000000000');

-- Tables that belong to no workspace: everyone reads them.
ALTER TABLE embedding_generation ENABLE ROW LEVEL SECURITY;
ALTER TABLE embedding_generation FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON embedding_generation FOR SELECT TO loxodon_app, loxodon_walled USING (true);
CREATE POLICY owner ON embedding_generation TO loxodon_owner USING (true);
ALTER TABLE schedule ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedule FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON schedule FOR SELECT TO loxodon_app USING (true);
CREATE POLICY worker ON schedule TO loxodon_worker USING (true);
CREATE POLICY owner ON schedule TO loxodon_owner USING (true);
ALTER TABLE token_secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE token_secret FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON token_secret TO loxodon_owner USING (true);
DO $$
BEGIN
    IF current_setting('server_version_num')::integer >= 170000 THEN
        GRANT MAINTAIN ON embedding_generation, schedule TO loxodon_worker;  -- as protect() does
    END IF;
END $$;

-- grants.sql
-- What the roles that serve may do with tables. The worker inherits the rights of the app. Functions name their callers
-- in their own files; protect() lets the worker run VACUUM.

GRANT SELECT, INSERT, UPDATE, DELETE ON
    memory, memory_stat, memory_edge, memory_vector, memory_source, memory_entity, term_stat,
    conversation, turn, turn_vector, withdrawn_span, user_profile, working_item,
    entity, entity_alias, entity_vector, entity_edge, entity_edge_source, entity_merge,
    goal, goal_edge, goal_memory, goal_vector,
    tool, strategy, strategy_tool, strategy_conversation, strategy_vector,
    decision, review, job, operation, idempotency, llm_cache, embedding_cache, budget, model_day,
    webhook, webhook_delivery
    TO loxodon_app;

-- Append-only, but for the end of an interval of history; erasures delete uses of tools.
GRANT SELECT ON erased_memory TO loxodon_app;
GRANT SELECT, INSERT ON audit_log, conversation_log, goal_history TO loxodon_app;
GRANT SELECT, INSERT, UPDATE (recorded_to) ON memory_history TO loxodon_app;
GRANT SELECT, INSERT, DELETE ON tool_invocation TO loxodon_app;
GRANT USAGE ON SEQUENCE memory_history_seq, tool_invocation_seq, working_item_seq TO loxodon_app;

GRANT SELECT, UPDATE (name, settings) ON workspace TO loxodon_app;
GRANT SELECT, INSERT, UPDATE (
    name, rights, user_id, agent_id, run_id, channels, default_user_id, default_agent_id, default_run_id,
    default_channel, expires_at, revoked_at, key_hash, hint, old_key_hash, old_key_until, former_key_hashes, last_used_at)
    ON api_key TO loxodon_app;
GRANT SELECT ON embedding_generation TO loxodon_app;

GRANT SELECT, INSERT, UPDATE (state, error, finished_at) ON job_run TO loxodon_app;
GRANT UPDATE ON job_run TO loxodon_worker;
GRANT SELECT ON schedule TO loxodon_app;
GRANT INSERT, UPDATE ON schedule TO loxodon_worker;

-- walls.sql
-- Walls: what a key made for one user, agent, run or some channels may touch. Its transactions run as loxodon_walled
-- (service/db/walls.py), which has no right on a table but those given here, and sees no row but those its wall lets
-- through. loxodon_app may become it and does not inherit from it, so other keys pay nothing.
-- docs/decisions/045-walls.md
--
-- What cannot be shown to lie inside is outside: a table without a column for an id is closed behind a wall of that id.
-- A new table stays closed until it is named here, and in tests/schema/test_walls.py.

GRANT SELECT, INSERT, UPDATE, DELETE ON
    memory, memory_stat, memory_edge, memory_vector, memory_source, memory_entity,
    conversation, turn, turn_vector, withdrawn_span, user_profile, working_item,
    entity, entity_alias, entity_vector, entity_edge, entity_edge_source, entity_merge,
    goal, goal_edge, goal_memory, goal_vector,
    strategy, strategy_tool, strategy_conversation, strategy_vector,
    decision, review, operation, idempotency
    TO loxodon_walled;
GRANT SELECT, INSERT ON conversation_log, goal_history TO loxodon_walled;
GRANT SELECT, INSERT, UPDATE (recorded_to) ON memory_history TO loxodon_walled;
GRANT SELECT, INSERT, DELETE ON tool_invocation, job TO loxodon_walled;
GRANT INSERT ON audit_log TO loxodon_walled;
-- Answers and vectors by the hash of the text that was asked for: whoever has the text learns nothing new.
GRANT SELECT, INSERT, UPDATE, DELETE ON llm_cache, embedding_cache TO loxodon_walled;
GRANT SELECT ON term_stat, embedding_generation TO loxodon_walled;
GRANT USAGE ON SEQUENCE memory_history_seq, tool_invocation_seq, working_item_seq TO loxodon_walled;

GRANT EXECUTE ON FUNCTION
    count_tool_use(text, boolean, double precision, timestamptz), expire_copies(uuid[]), iso_seconds(text),
    lexical_ids(text, text, text, text[], boolean, integer[], integer[], sparsevec, integer, integer, integer, boolean,
                boolean),
    memory_filter_keys(uuid, text[], text[], text[], text[], jsonb, boolean),
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer,
               boolean, boolean),
    purge_subject(text, text, text, text, uuid[], uuid[], uuid[]),
    rewrite_turn(uuid, text, text),
    tag_ids(text, text, text, text[], text[], integer, integer, boolean, boolean),
    workspace_terms(uuid, integer[])
    TO loxodon_walled;

-- Each setting stands in a subquery, which is read once for a statement and not once for a row.
DO $$
DECLARE
    user_wall constant text := '(SELECT nullif(current_setting(''loxodon.wall_user_id'', true), ''''))';
    agent_wall constant text := '(SELECT nullif(current_setting(''loxodon.wall_agent_id'', true), ''''))';
    run_wall constant text := '(SELECT nullif(current_setting(''loxodon.wall_run_id'', true), ''''))';
    channel_wall constant text := '(SELECT nullif(current_setting(''loxodon.wall_channels'', true), '''')::text[])';
    same constant text := '(%1$s IS NULL OR %2$s = %1$s)';
    target record;
    inside text;
BEGIN
    FOR target IN SELECT * FROM (VALUES
        ('memory', 'user_id', 'agent_id', 'run_id', 'channel', true),
        ('memory_vector', 'user_id', 'agent_id', 'run_id', 'channel', true),
        ('turn', 'user_id', 'agent_id', 'run_id', 'channel', false),
        ('turn_vector', 'user_id', 'agent_id', 'run_id', 'channel', false),
        ('conversation_log', 'user_id', 'agent_id', 'run_id', 'channel', false),
        ('conversation', 'user_id', 'agent_id', 'external_id', 'channel', false),
        ('working_item', 'user_id', 'agent_id', 'conversation_id', 'channel', false),
        ('user_profile', 'user_id', NULL, NULL, NULL, false),
        ('entity', 'user_id', NULL, NULL, 'channel', false),
        ('entity_alias', 'user_id', NULL, NULL, 'channel', false),
        ('goal', 'user_id', 'agent_id', 'run_id', 'channel', false),
        ('strategy', 'user_id', 'agent_id', 'run_id', 'channel', false),
        ('tool_invocation', 'user_id', 'agent_id', 'run_id', 'channel', false)
    ) AS own (name, user_column, agent_column, run_column, channel_column, may_be_shared) LOOP
        inside := concat_ws(' AND ',
            format(same, user_wall, coalesce(target.user_column, 'NULL')),
            format(same, agent_wall, coalesce(target.agent_column, 'NULL')),
            format(same, run_wall, coalesce(target.run_column, 'NULL')));
        IF target.may_be_shared THEN
            inside := format('(%s OR (user_id IS NULL AND agent_id IS NULL AND run_id IS NULL))', inside);
        END IF;
        EXECUTE format('CREATE POLICY wall ON %I AS RESTRICTIVE TO loxodon_walled USING (%s AND (%s IS NULL OR %s))',
                       target.name, inside, channel_wall,
                       CASE WHEN target.channel_column IS NULL THEN 'false'
                            ELSE format('%s = ANY (%s::text[])', target.channel_column, channel_wall) END);
    END LOOP;

    -- Rows that belong to another row, whose wall is theirs.
    FOR target IN SELECT * FROM (VALUES
        ('memory_stat', ARRAY['memory', 'memory_id']),
        ('memory_edge', ARRAY['memory', 'source_id', 'memory', 'target_id']),
        ('memory_source', ARRAY['memory', 'memory_id', 'turn', 'turn_id']),
        ('memory_entity', ARRAY['memory', 'memory_id', 'entity', 'entity_id']),
        ('withdrawn_span', ARRAY['turn', 'turn_id']),
        ('entity_vector', ARRAY['entity', 'entity_id']),
        ('entity_edge', ARRAY['entity', 'source_id', 'entity', 'target_id']),
        ('entity_edge_source', ARRAY['memory', 'memory_id', 'entity_edge', 'edge_id']),
        ('entity_merge', ARRAY['entity', 'entity_id']),
        ('goal_edge', ARRAY['goal', 'source_id', 'goal', 'target_id']),
        ('goal_memory', ARRAY['goal', 'goal_id', 'memory', 'memory_id']),
        ('goal_history', ARRAY['goal', 'goal_id']),
        ('goal_vector', ARRAY['goal', 'goal_id']),
        ('strategy_tool', ARRAY['strategy', 'strategy_id']),
        ('strategy_conversation', ARRAY['strategy', 'strategy_id', 'conversation', 'conversation_id']),
        ('strategy_vector', ARRAY['strategy', 'strategy_id']),
        ('review', ARRAY['memory', 'memory_id'])
    ) AS child (name, parents) LOOP
        inside := format('NOT is_outside(%L, %I)', target.parents[1], target.parents[2]);
        IF cardinality(target.parents) > 2 THEN
            inside := inside || format(' AND NOT is_outside(%L, %I)', target.parents[3], target.parents[4]);
        END IF;
        EXECUTE format('CREATE POLICY wall ON %I AS RESTRICTIVE TO loxodon_walled USING (%s)', target.name, inside);
    END LOOP;

    -- With the ids of their memory, but not its channel.
    inside := format('(%s OR (user_id IS NULL AND agent_id IS NULL AND run_id IS NULL))', concat_ws(' AND ',
        format(same, user_wall, 'user_id'), format(same, agent_wall, 'agent_id'), format(same, run_wall, 'run_id')));
    EXECUTE format('CREATE POLICY wall ON memory_history AS RESTRICTIVE TO loxodon_walled '
                   'USING (%s AND (%s IS NULL OR NOT is_outside(''memory'', memory_id)))', inside, channel_wall);
    EXECUTE format('CREATE POLICY wall ON decision AS RESTRICTIVE TO loxodon_walled '
                   'USING (%1$s AND (%2$s IS NULL OR memory_id IS NOT NULL AND NOT is_outside(''memory'', memory_id))) '
                   'WITH CHECK (%1$s AND (%2$s IS NULL OR NOT is_outside(''memory'', memory_id)))',
                   inside, channel_wall);
    -- Answers given behind the same wall, or about what lies inside.
    EXECUTE format('CREATE POLICY wall ON idempotency AS RESTRICTIVE TO loxodon_walled USING ('
                   'starts_with(key, (SELECT current_setting(''loxodon.wall_digest'') || '':'')) '
                   'OR %s AND %s IS NULL)', concat_ws(' AND ',
        format(same, user_wall, 'user_id'), format(same, agent_wall, 'agent_id'), format(same, run_wall, 'run_id')),
        channel_wall);
END $$;

-- Operations begun behind the same wall; their request is emptied once it is done, so they name the wall themselves.
CREATE POLICY wall ON operation AS RESTRICTIVE TO loxodon_walled
    USING (wall = (SELECT current_setting('loxodon.wall_digest')));

-- Jobs of what lies inside. Others can be made, as of an operation, and not seen.
CREATE POLICY wall ON job AS RESTRICTIVE TO loxodon_walled
    USING ((memory_id IS NOT NULL OR payload ? 'conversation_id') AND NOT is_outside('memory', memory_id)
           AND NOT is_outside('conversation', (payload ->> 'conversation_id')::uuid))
    WITH CHECK (NOT is_outside('memory', memory_id)
                AND NOT is_outside('conversation', (payload ->> 'conversation_id')::uuid));

-- Of how often terms occur, the numbers over all workspaces only: those of the own one speak of others' texts.
CREATE POLICY wall ON term_stat AS RESTRICTIVE FOR SELECT TO loxodon_walled
    USING (workspace_id = '00000000-0000-0000-0000-000000000000');

-- partitions.sql
-- Partitions: vectors by a hash of the workspace, logs by the day or month of recording.
-- docs/decisions/009-partitions.md
--
-- A policy on the parent does not protect a partition that is read by its own name, so each is protected as it is made.
-- `:partitions` is the number of hash partitions, chosen once for a database.

CREATE TABLE partitioned_table (
    name text CONSTRAINT pk_partitioned_table PRIMARY KEY,
    step text NOT NULL CONSTRAINT ck_partitioned_table_step CHECK (step IN ('day', 'month'))
);
INSERT INTO partitioned_table (name, step) VALUES
    ('memory_history', 'month'), ('audit_log', 'day'), ('conversation_log', 'month'), ('tool_invocation', 'month');

SELECT set_config('loxodon.vector_partitions', (:partitions)::text, true);
DO $$
DECLARE
    parent text;
    child text;
    modulus constant integer := current_setting('loxodon.vector_partitions');
BEGIN
    FOREACH parent IN ARRAY ARRAY['memory_vector', 'turn_vector'] LOOP
        FOR remainder IN 0 .. modulus - 1 LOOP
            child := parent || '_p' || remainder;
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                           child, parent, modulus, remainder);
            EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STORAGE MAIN', child);
            PERFORM protect(child::regclass);
        END LOOP;
    END LOOP;
    FOR parent IN SELECT name FROM partitioned_table ORDER BY name LOOP
        child := parent || '_default';
        EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', child, parent);
        PERFORM protect(child::regclass);
    END LOOP;
END $$;
SELECT ensure_partitions(now() + interval '7 days');

-- statistics.sql
-- Plans that are kept are made without values and take every workspace for an average one. Where a hundred thousand
-- small tenants share a database with one of a million memories, reading a whole workspace then looked cheaper than ten
-- rows by their keys. So ANALYZE takes ten for the number of workspaces, however many there are. make_partition() does
-- the same for the partitions to come.
DO $$
DECLARE
    target text;
BEGIN
    FOR target IN
        SELECT c.oid::regclass::text FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN workspace_id SET (n_distinct = 10)', target);
        EXECUTE format('ANALYZE %s (workspace_id)', target);
    END LOOP;
END $$;
