-- What must hold in every snapshot of the database, even while the service is running; used by `loxodon doctor`.
--
-- Each check is one SELECT after a line `-- check: name | what must hold`. It returns the rows that break the rule, as
-- `workspace_id` (NULL: the whole database) and `id`. All run in one read-only REPEATABLE READ transaction as
-- loxodon_owner, which sees all rows. History and logs are dropped month by month, and finished jobs after a day at the
-- earliest, so checks that need them cover only younger rows. What a constraint or a unique index enforces is checked by
-- whether that is valid. docs/doctor.md


-- ---------------------------------------------------------------------------------------------------------------
-- Memories
-- ---------------------------------------------------------------------------------------------------------------

-- check: memory-added | every memory has a history entry for its addition
SELECT m.workspace_id, m.id::text AS id
FROM memory m
WHERE m.created_at >= (
    SELECT coalesce(min(to_timestamp(right(c.relname, 6), 'YYYYMM')), 'infinity')
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'memory_history'::regclass AND c.relname ~ '_[0-9]{6}$')
  AND NOT EXISTS (SELECT FROM memory_history h
                  WHERE h.workspace_id = m.workspace_id AND h.memory_id = m.id AND h.event = 'ADD');

-- check: memory-added-once | a memory is added again only after it was deleted
SELECT h.workspace_id, h.memory_id::text AS id
FROM (SELECT workspace_id, memory_id, event, lag(event) OVER (
          PARTITION BY workspace_id, memory_id ORDER BY recorded_at, seq) AS before FROM memory_history) h
WHERE h.event = 'ADD' AND h.before IN ('ADD', 'UPDATE');

-- check: memory-history-chain | an entry of history ends where the next one begins, and the last one is open
SELECT h.workspace_id, h.memory_id::text AS id
FROM (SELECT workspace_id, memory_id, recorded_to, lead(recorded_at) OVER (
          PARTITION BY workspace_id, memory_id ORDER BY recorded_at, seq) AS next FROM memory_history) h
WHERE h.recorded_to IS DISTINCT FROM h.next;

-- check: feed-order | changes of a memory are in the change feed in the order of its history
SELECT h.workspace_id, h.memory_id::text AS id
FROM (SELECT workspace_id, memory_id, position, lead(position) OVER (
          PARTITION BY workspace_id, memory_id ORDER BY recorded_at, seq) AS next FROM memory_history) h
WHERE h.position > h.next;

-- A dump restored into another server has the numbers of the old one: `loxodon migrate` repairs this.
-- check: feed-ahead | no change has a position that the server's transactions have not reached
SELECT workspace_id, id::text AS id FROM memory_history
WHERE position >= greatest(pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
                           pg_current_xact_id_if_assigned()::text::bigint + 1);

-- A reset deletes the memories first and then their history, batch by batch.
-- check: memory-lost | a missing memory was deleted, according to its history
SELECT h.workspace_id, h.memory_id::text AS id
FROM memory_history h
WHERE h.recorded_to IS NULL AND h.event <> 'DELETE'
  AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = h.workspace_id AND m.id = h.memory_id)
  AND NOT EXISTS (SELECT FROM operation o
                  WHERE o.workspace_id = h.workspace_id AND o.kind = 'reset' AND o.finished_at IS NULL);

-- check: memory-deleted-visible | a memory whose last history entry is DELETE is archived
SELECT m.workspace_id, m.id::text AS id
FROM memory m JOIN memory_history h ON h.workspace_id = m.workspace_id AND h.memory_id = m.id
WHERE h.recorded_to IS NULL AND h.event = 'DELETE' AND NOT m.archived;

-- check: memory-stat | every memory has its row of statistics, with values between 0 and 1
SELECT m.workspace_id, m.id::text AS id
FROM memory m LEFT JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id
WHERE s.memory_id IS NULL
   OR NOT (s.relevance BETWEEN 0 AND 1 AND s.salience BETWEEN 0 AND 1
           AND s.base_relevance BETWEEN 0 AND 1 AND s.base_salience BETWEEN 0 AND 1
           AND coalesce(s.base_confidence, 0) BETWEEN 0 AND 1 AND coalesce(s.confidence, 0) BETWEEN 0 AND 1
           AND s.access_count >= 0);

-- check: memory-hash | the hash of a memory is that of its text
SELECT workspace_id, id::text AS id FROM memory WHERE hash <> md5(content);

-- check: memory-vector | a memory that is embedded has its vector of the active generation
SELECT m.workspace_id, m.id::text AS id
FROM memory m
WHERE m.embedding_status = 'stored' AND NOT EXISTS (
    SELECT FROM memory_vector v JOIN embedding_generation g ON g.generation = v.generation AND g.state = 'active'
    WHERE v.workspace_id = m.workspace_id AND v.memory_id = m.id AND v.kind = 'text');

-- check: memory-vector-outdated | a memory that waits for its vector has no vector of an older text
SELECT m.workspace_id, m.id::text AS id
FROM memory m
WHERE m.embedding_status <> 'stored' AND EXISTS (
    SELECT FROM memory_vector v JOIN embedding_generation g ON g.generation = v.generation AND g.state = 'active'
    WHERE v.workspace_id = m.workspace_id AND v.memory_id = m.id AND v.kind = 'text');

-- A past version waits for the job that looks for missing vectors every few minutes.
-- check: memory-vector-job | a memory that waits for its vector has a job for it, or a dead one
SELECT m.workspace_id, m.id::text AS id
FROM memory m
WHERE m.embedding_status <> 'stored' AND (m.version_of IS NULL OR m.updated_at < now() - interval '1 hour')
EXCEPT SELECT workspace_id, memory_id::text FROM job WHERE kind = 'embed' AND state <> 'done';

-- check: memory-enrich-job | a new memory that is not enriched has a job for it, or a dead one
SELECT m.workspace_id, m.id::text AS id
FROM memory m
WHERE m.enriched_at IS NULL AND m.version_of IS NULL AND m.created_at > now() - interval '1 day'
EXCEPT SELECT workspace_id, memory_id::text FROM job WHERE kind = 'enrich';

-- check: memory-vector-scope | a vector is in the scope of its memory
SELECT v.workspace_id, v.memory_id::text AS id
FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
WHERE (v.user_id, v.agent_id, v.run_id, v.channel) IS DISTINCT FROM (m.user_id, m.agent_id, m.run_id, m.channel);

-- check: version-current | a past version belongs to a memory that is not itself a past version
SELECT v.workspace_id, v.id::text AS id
FROM memory v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.version_of
WHERE m.version_of IS NOT NULL
   OR (v.user_id, v.agent_id, v.run_id, v.channel) IS DISTINCT FROM (m.user_id, m.agent_id, m.run_id, m.channel);

-- check: version-hidden | a past version is archived, has an end, and takes no part in deduplication
SELECT workspace_id, id::text AS id
FROM memory
WHERE version_of IS NOT NULL AND (NOT archived OR t_invalid IS NULL OR dedup_key IS NOT NULL);

-- Purged memories leave no trace, so workspaces with a purge are skipped.
-- check: superseded | the successor of a superseded memory exists, or was deleted
SELECT s.workspace_id, coalesce(s.memory_id, s.id)::text AS id
FROM withdrawn_span s
WHERE s.replaced_by IS NOT NULL
  AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = s.workspace_id AND m.id = s.replaced_by)
  AND NOT EXISTS (SELECT FROM memory_history h WHERE h.workspace_id = s.workspace_id AND h.memory_id = s.replaced_by)
  AND NOT EXISTS (SELECT FROM audit_log a WHERE a.workspace_id = s.workspace_id AND a.operation = 'purge');


-- ---------------------------------------------------------------------------------------------------------------
-- Conversations
-- ---------------------------------------------------------------------------------------------------------------

-- check: conversation-turn-count | a conversation has counted every turn it has
SELECT t.workspace_id, t.conversation_id::text AS id
FROM turn t JOIN conversation c ON c.workspace_id = t.workspace_id AND c.id = t.conversation_id
GROUP BY t.workspace_id, t.conversation_id, c.turn_count
HAVING max(t.turn_index) >= c.turn_count;

-- Turns may be erased, so the last turn is the one that the conversation has counted, not the last remaining one.
-- check: conversation-read | facts of a conversation were read up to one of its turns
SELECT c.workspace_id, c.id::text AS id
FROM conversation c
WHERE c.consolidated_turns NOT BETWEEN 0 AND c.turn_count;

-- check: turn-scope | a turn is in the scope of its conversation, and its vector in that of the turn
SELECT t.workspace_id, t.id::text AS id
FROM turn t JOIN conversation c ON c.workspace_id = t.workspace_id AND c.id = t.conversation_id
WHERE (t.user_id, t.agent_id, t.run_id, t.is_run) IS DISTINCT FROM (c.user_id, c.agent_id, c.external_id, c.is_run)
UNION ALL
SELECT v.workspace_id, v.turn_id::text
FROM turn_vector v JOIN turn t ON t.workspace_id = v.workspace_id AND t.id = v.turn_id
WHERE (v.user_id, v.agent_id, v.run_id, v.is_run, v.channel)
    IS DISTINCT FROM (t.user_id, t.agent_id, t.run_id, t.is_run, t.channel);

-- check: turn-log | a turn has one row in the conversation log, with the same text
SELECT t.workspace_id, t.id::text AS id
FROM turn t LEFT JOIN conversation_log l
    ON l.workspace_id = t.workspace_id AND l.turn_id = t.id AND l.content_hash = t.content_hash
WHERE t.created_at >= (
    SELECT coalesce(min(to_timestamp(right(c.relname, 6), 'YYYYMM')), 'infinity')
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'conversation_log'::regclass AND c.relname ~ '_[0-9]{6}$')
GROUP BY t.workspace_id, t.id
HAVING count(l.id) <> 1;

-- check: turn-vector | a turn with text has its vector of the active generation, or a job for it
WITH without AS MATERIALIZED (
    SELECT t.workspace_id, t.id, t.conversation_id FROM turn t
    WHERE t.shown IS DISTINCT FROM '' AND NOT EXISTS (
        SELECT FROM turn_vector v JOIN embedding_generation g ON g.generation = v.generation AND g.state = 'active'
        WHERE v.workspace_id = t.workspace_id AND v.turn_id = t.id)
)
SELECT t.workspace_id, t.id::text AS id
FROM without t
WHERE NOT EXISTS (SELECT FROM job j WHERE j.workspace_id = t.workspace_id AND j.kind = 'embed' AND j.state <> 'done'
                  AND j.payload ->> 'conversation_id' = t.conversation_id::text);


-- ---------------------------------------------------------------------------------------------------------------
-- Entities, goals, procedures
-- ---------------------------------------------------------------------------------------------------------------

-- check: entity-aliases | the aliases of an entity are in its scope
SELECT DISTINCT e.workspace_id, e.id::text AS id
FROM entity e JOIN entity_alias a ON a.workspace_id = e.workspace_id AND a.entity_id = e.id
WHERE (a.user_id, a.channel) IS DISTINCT FROM (e.user_id, e.channel);

-- check: entity-relation-source | a relation that was read from memories has a memory as evidence
SELECT e.workspace_id, e.id::text AS id
FROM entity_edge e
WHERE e.extracted_by <> 'caller' AND NOT EXISTS (
    SELECT FROM entity_edge_source s WHERE s.workspace_id = e.workspace_id AND s.edge_id = e.id);


-- ---------------------------------------------------------------------------------------------------------------
-- Jobs and answers
-- ---------------------------------------------------------------------------------------------------------------

-- check: job-lease | a job has a worker and a lease if and only if it is running
SELECT workspace_id, id::text AS id
FROM job
WHERE (state = 'running') <> (lease_until IS NOT NULL)
   OR state = 'running' AND (worker IS NULL OR started_at IS NULL)
   OR state = 'ready' AND worker IS NOT NULL;

-- check: job-finished | a job has an end if and only if it is finished, and no more attempts than allowed
SELECT workspace_id, id::text AS id
FROM job
WHERE (state IN ('done', 'dead', 'cancelled')) <> (finished_at IS NOT NULL) OR attempts > max_attempts OR attempts < 0;

-- check: operation-job | an unfinished operation has an unfinished job
SELECT o.workspace_id, o.id::text AS id
FROM operation o
WHERE o.finished_at IS NULL
EXCEPT SELECT workspace_id, payload ->> 'operation_id' FROM job WHERE state IN ('ready', 'running');

-- check: operation-answer | a finished operation has a result or an error, and its texts are deleted
SELECT workspace_id, id::text AS id
FROM operation
WHERE (state IN ('done', 'failed')) <> (finished_at IS NOT NULL)
   OR state = 'failed' AND error IS NULL
   OR finished_at IS NOT NULL AND request <> '{}';

-- check: idempotency-answer | a used Idempotency-Key has its answer
SELECT workspace_id, key AS id FROM idempotency WHERE status IS NULL OR body IS NULL;

-- check: idempotency-memory | a stored answer names memories that exist or were deleted
SELECT i.workspace_id, i.key AS id
FROM idempotency i
CROSS JOIN LATERAL jsonb_path_query(i.body, 'lax $.results[*] ? (@.event == "ADD").id') AS named (id)
WHERE NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = i.workspace_id AND m.id::text = named.id #>> '{}')
  AND NOT EXISTS (SELECT FROM memory_history h
                  WHERE h.workspace_id = i.workspace_id AND h.memory_id::text = named.id #>> '{}');


-- ---------------------------------------------------------------------------------------------------------------
-- Workspaces
-- ---------------------------------------------------------------------------------------------------------------

-- These may outlive the rows they name, so they are not foreign keys; but they never name a row of another workspace. A
-- workspace may be a copy of another one, with the same ids (docs/moving.md).
-- check: other-workspace | a log, a job or a decision names no row of another workspace
WITH named (workspace_id, what, of_id) AS (
    SELECT workspace_id, 'job ' || id, memory_id FROM job
    UNION ALL SELECT workspace_id, 'decision ' || id, memory_id FROM decision
    UNION ALL SELECT workspace_id, 'review ' || id, memory_id FROM review
    UNION ALL SELECT workspace_id, 'withdrawn_span ' || id, memory_id FROM withdrawn_span
    UNION ALL SELECT workspace_id, 'memory ' || id, conversation_id FROM memory
    UNION ALL SELECT workspace_id, 'tool_invocation ' || id, conversation_id FROM tool_invocation
    UNION ALL SELECT workspace_id, 'conversation_log ' || id, turn_id FROM conversation_log
), known AS (
    SELECT workspace_id, id FROM memory
    UNION ALL SELECT workspace_id, id FROM conversation
    UNION ALL SELECT workspace_id, id FROM turn
)
SELECT n.workspace_id, n.what AS id
FROM named n JOIN known p ON p.id = n.of_id AND p.workspace_id <> n.workspace_id
WHERE NOT EXISTS (SELECT FROM known o WHERE o.workspace_id = n.workspace_id AND o.id = n.of_id);

-- check: workspace | every row belongs to an existing workspace, except jobs of the service itself
SELECT workspace_id, min(what || ' ' || id) AS id FROM (
    SELECT workspace_id, 'memory' AS what, id::text AS id FROM memory
    UNION ALL SELECT workspace_id, 'conversation', id::text FROM conversation
    UNION ALL SELECT workspace_id, 'entity', id::text FROM entity
    UNION ALL SELECT workspace_id, 'goal', id::text FROM goal
    UNION ALL SELECT workspace_id, 'strategy', id::text FROM strategy
    UNION ALL SELECT workspace_id, 'operation', id::text FROM operation
    UNION ALL SELECT workspace_id, 'idempotency', key FROM idempotency
    UNION ALL SELECT workspace_id, 'job', id::text FROM job
              WHERE workspace_id <> '00000000-0000-0000-0000-000000000000'
) stored
WHERE NOT EXISTS (SELECT FROM workspace w WHERE w.workspace_id = stored.workspace_id)
GROUP BY workspace_id;


-- ---------------------------------------------------------------------------------------------------------------
-- Schema
-- ---------------------------------------------------------------------------------------------------------------

-- check: constraint-valid | every constraint was checked against all rows
SELECT NULL::uuid AS workspace_id, conrelid::regclass || ' ' || conname AS id
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND NOT convalidated;

-- check: trigger-enabled | every foreign key and trigger is enabled
SELECT NULL::uuid AS workspace_id, t.tgrelid::regclass || ' ' || t.tgname AS id
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'public'::regnamespace AND t.tgenabled <> 'O';

-- An index that is being built concurrently is not valid yet.
-- check: index-valid | every index is valid and ready
SELECT NULL::uuid AS workspace_id, i.indexrelid::regclass::text AS id
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = 'public'::regnamespace AND NOT (i.indisvalid AND i.indisready)
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid);

-- check: generation-active | exactly one generation of vectors is active
SELECT NULL::uuid AS workspace_id, count(*) || ' are active' AS id
FROM embedding_generation WHERE state = 'active' HAVING count(*) <> 1;

-- check: generation-index | the active generation has an HNSW index on the vectors of memories and of turns
SELECT NULL::uuid AS workspace_id, t.name || ', generation ' || g.generation AS id
FROM embedding_generation g CROSS JOIN (VALUES ('memory_vector'), ('turn_vector')) t (name)
WHERE g.state = 'active' AND NOT EXISTS (
    SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    WHERE i.indrelid = t.name::regclass AND a.amname = 'hnsw' AND i.indisvalid
      AND pg_get_expr(i.indpred, i.indrelid) ~ format('generation = %s\M', g.generation));

-- check: partition-today | every log has a partition for the current time
SELECT NULL::uuid AS workspace_id, p.name AS id
FROM partitioned_table p
WHERE to_regclass(p.name || '_' || to_char(now() AT TIME ZONE 'UTC',
                                           CASE p.step WHEN 'day' THEN 'YYYYMMDD' ELSE 'YYYYMM' END)) IS NULL;

-- check: partition-default | no row is in a DEFAULT partition, which retention never drops
SELECT workspace_id, 'memory_history ' || id AS id FROM memory_history_default
UNION ALL SELECT workspace_id, 'audit_log ' || id FROM audit_log_default
UNION ALL SELECT workspace_id, 'conversation_log ' || id FROM conversation_log_default
UNION ALL SELECT workspace_id, 'tool_invocation ' || id FROM tool_invocation_default;

-- check: row-level-security | row-level security is forced on every table and partition
SELECT NULL::uuid AS workspace_id, c.oid::regclass::text AS id
FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
  AND c.relname NOT IN ('alembic_version', 'migration', 'partitioned_table')
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity);
