-- Claims up to `batch_size` due jobs for a worker and returns them; each is leased for `lease_s` seconds.
--
-- A lane is a kind of job in a workspace. The claim steps from lane to lane by the index and takes a fair share of
-- each, so a tenant with 100,000 jobs delays another one by a batch. It begins after the lane that was served last
-- (after_workspace, after_kind); otherwise the last of many tenants would never be served.
--
-- Both walks are lazy and end when the batch is full. LATERAL with LIMIT 1 is used because EXISTS would become a join
-- over every ready job. The plan is made once per connection, perhaps while the table is still empty, so index walks
-- and nested loops are forced, whatever the statistics say. docs/decisions/008-durable-queue.md
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
    )
    SELECT t.workspace_id, t.id, t.kind, t.memory_id, t.payload, t.attempts, t.max_attempts,
           extract(epoch FROM now() - t.run_after)::double precision, t.wall
    FROM taken t ORDER BY t.number, t.priority, t.run_after;
END $$;

GRANT EXECUTE ON FUNCTION claim_jobs TO loxodon_worker;
