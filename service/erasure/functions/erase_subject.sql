-- Erases a subject: a scope (rows with every given id), or memories, and turns. With memories it erases their promoted
-- copies, the past versions of all of these, and the turns they came from, except `keep_turns`. Returns the rows
-- affected by table, with the ids of the subject. Only for purge_subject(), which erases its jobs too.
--
-- Rows deleted earlier are found through history, or by their texts. Rows that only mention the subject keep their time
-- and numbers and lose their texts (audit, other memories' decisions and snapshots). A job that is running finds its
-- operation answered and stores nothing. The caches do not record whose texts they have, so the workspace's are
-- emptied.
--
-- Apart from appending, this is the only way to change history and audit: the app has no right to delete from them. The
-- function bypasses the policies and repeats the workspace in every statement. docs/decisions/022-erasure.md
CREATE OR REPLACE FUNCTION erase_subject(
    of_user text,
    of_agent text,
    of_run text,
    of_channel text,
    of_memories uuid[],
    of_turns uuid[],
    keep_turns uuid[]
)
RETURNS TABLE (name text, affected bigint, ids uuid[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
    whole_user boolean := of_memories IS NULL AND of_agent IS NULL AND of_run IS NULL AND of_channel IS NULL;
    -- whether a run includes the sessions of its name: only with their user
    with_sessions boolean := of_run IS NULL
        OR of_user IS NOT NULL AND in_wall(of_user, of_agent, of_run, of_channel, is_run => false);
    memory_ids uuid[];
    memory_id_texts text[];
    id_texts text[];  -- all that a stored answer may name
    conversation_ids uuid[];
    turn_ids uuid[];
    touched_conversations uuid[];
    operation_ids uuid[];
    operation_names text[];  -- of their stored answers: service/intake/deferred.py
    entity_ids uuid[];
    changed_ids uuid[] := '{}';
    condition text;
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
              AND is_of_subject(m.user_id, m.agent_id, m.run_id, m.channel, of_user, of_agent, of_run, of_channel)
            UNION ALL
            SELECT h.memory_id FROM memory_history h  -- a memory that exists has its own scope, whoever had its id before
            WHERE h.workspace_id = this_workspace
              AND is_of_subject(h.user_id, h.agent_id, h.run_id, h.before ->> 'channel',
                                of_user, of_agent, of_run, of_channel)
              AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = this_workspace AND m.id = h.memory_id)
        ) known;
        memory_ids := memory_ids || ARRAY(  -- copies that promotion made of them
            SELECT DISTINCT e.source_id FROM memory_edge e
            WHERE e.workspace_id = this_workspace AND e.target_id = ANY (memory_ids) AND e.rel_type = 'PROMOTED_FROM'
              AND e.properties @> '{"copied": true}' AND NOT e.source_id = ANY (memory_ids)
              AND NOT is_outside('memory', e.source_id));
    END IF;
    memory_ids := memory_ids || copies_outside(memory_ids);
    memory_ids := memory_ids || ARRAY(  -- copies that were deleted before
        SELECT DISTINCT h.memory_id FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'edges', '[]')) edge
        WHERE h.workspace_id = this_workspace AND h.event = 'DELETE' AND edge ->> 'rel_type' = 'PROMOTED_FROM'
          AND edge -> 'properties' @> '{"copied": true}' AND edge ->> 'source_id' = h.memory_id::text
          AND (edge ->> 'target_id')::uuid = ANY (memory_ids) AND NOT is_outside('memory', h.memory_id));
    memory_ids := memory_ids || ARRAY(  -- what all of these said before
        SELECT v.id FROM memory v WHERE v.workspace_id = this_workspace AND v.version_of = ANY (memory_ids)
        UNION
        SELECT h.memory_id FROM memory_history h
        WHERE h.workspace_id = this_workspace AND h.event = 'DELETE'
          AND (h.before ->> 'version_of')::uuid = ANY (memory_ids));

    -- locks, by ascending keys
    PERFORM FROM memory WHERE workspace_id = this_workspace AND id = ANY (memory_ids) ORDER BY id FOR UPDATE;
    PERFORM FROM memory_edge
    WHERE workspace_id = this_workspace AND (source_id = ANY (memory_ids) OR target_id = ANY (memory_ids))
    ORDER BY source_id, rel_type, target_id FOR UPDATE;

    -- turns and conversations; a turn that memories of others also came from stays
    SELECT coalesce(array_agg(c.id), '{}') INTO conversation_ids FROM conversation c
    WHERE of_memories IS NULL AND c.workspace_id = this_workspace
      AND is_of_subject(c.user_id, c.agent_id, c.external_id, c.channel, of_user, of_agent, of_run, of_channel)
      AND (with_sessions OR c.is_run);
    SELECT coalesce(array_agg(id), '{}') INTO turn_ids FROM (
        SELECT s.turn_id AS id FROM memory_source s
        WHERE s.workspace_id = this_workspace AND s.memory_id = ANY (memory_ids)
        UNION  -- the turns of a deleted memory are only in its history
        SELECT (source ->> 'turn_id')::uuid FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) source
        WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids)
        UNION
        SELECT t.id FROM turn t
        WHERE of_memories IS NULL AND t.workspace_id = this_workspace
          AND is_of_subject(t.user_id, t.agent_id, t.run_id, t.channel, of_user, of_agent, of_run, of_channel)
          AND (with_sessions OR t.is_run)
          AND NOT EXISTS (SELECT FROM memory_source s WHERE s.workspace_id = this_workspace AND s.turn_id = t.id
                          AND NOT s.memory_id = ANY (memory_ids))
        UNION
        SELECT t.id FROM turn t
        WHERE t.workspace_id = this_workspace AND t.conversation_id = ANY (conversation_ids)
          AND is_of_subject(t.user_id, t.agent_id, t.run_id, t.channel, of_user, of_agent, of_run, of_channel)
        UNION
        SELECT unnest(of_turns)
    ) sources WHERE NOT id = ANY (keep_turns) AND NOT is_outside('turn', id);
    conversation_ids := ARRAY(  -- one with turns of another channel stays
        SELECT c.id FROM conversation c
        WHERE c.workspace_id = this_workspace AND c.id = ANY (conversation_ids) AND NOT EXISTS (
            SELECT FROM turn t
            WHERE t.workspace_id = this_workspace AND t.conversation_id = c.id AND NOT t.id = ANY (turn_ids)));
    SELECT coalesce(array_agg(DISTINCT t.conversation_id), '{}') INTO touched_conversations
    FROM turn t WHERE t.workspace_id = this_workspace AND t.id = ANY (turn_ids);

    SELECT coalesce(array_agg(id), '{}') INTO entity_ids FROM (
        SELECT me.entity_id AS id FROM memory_entity me
        WHERE me.workspace_id = this_workspace AND me.memory_id = ANY (memory_ids)
        UNION
        SELECT entity::uuid FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(h.before -> 'entity_ids', '[]')) entity
        WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids)
    ) named;
    SELECT coalesce(array_agg(o.id), '{}'), coalesce(array_agg(coalesce(o.wall || ':', '') || 'operation:' || o.id), '{}')
    INTO operation_ids, operation_names FROM operation o
    WHERE o.workspace_id = this_workspace AND of_memories IS NULL AND o.request ? 'scope'
      AND is_of_subject(o.request -> 'scope' ->> 0, o.request -> 'scope' ->> 1, o.request -> 'scope' ->> 2,
                        coalesce(o.request -> 'scope' ->> 3, o.request ->> 'channel'),
                        of_user, of_agent, of_run, of_channel);

    -- the change feed keeps the ids, after all their earlier changes
    INSERT INTO erased_memory (workspace_id, memory_id, position)
    SELECT this_workspace, h.memory_id, greatest(pg_current_xact_id()::text::bigint, max(h.position))
    FROM memory_history h
    WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids) GROUP BY h.memory_id;
    -- a turn's terms are also in the context of its neighbours
    UPDATE memory m SET context_terms = '{}', context_bm25 = NULL
    WHERE m.workspace_id = this_workspace AND NOT m.id = ANY (memory_ids) AND m.context_terms <> '{}'
      AND m.conversation_id = ANY (touched_conversations);
    DELETE FROM memory_vector v
    WHERE v.workspace_id = this_workspace AND v.kind = 'context' AND v.memory_id IN (
        SELECT m.id FROM memory m
        WHERE m.workspace_id = this_workspace AND m.conversation_id = ANY (touched_conversations));
    touched_conversations := ARRAY(
        SELECT id FROM unnest(touched_conversations) id WHERE NOT is_outside('conversation', id));

    -- past versions of memories that stay, if no turn is left that said so: undo and as_of find nothing there
    IF turn_ids <> '{}' THEN
        WITH stated AS (
            SELECT h.memory_id, array_agg(DISTINCT h.old_memory) AS texts
            FROM memory_history h JOIN memory m ON m.workspace_id = this_workspace AND m.id = h.memory_id
            WHERE h.workspace_id = this_workspace AND h.event = 'UPDATE'
              AND NOT h.memory_id = ANY (memory_ids) AND m.content <> h.old_memory
              AND EXISTS (SELECT FROM jsonb_array_elements(h.before -> 'sources') source
                          WHERE (source ->> 'turn_id')::uuid = ANY (turn_ids))
              AND NOT EXISTS (SELECT FROM jsonb_array_elements(h.before -> 'sources') source
                              JOIN turn t ON t.workspace_id = this_workspace AND t.id = (source ->> 'turn_id')::uuid
                                  AND NOT t.id = ANY (turn_ids))
            GROUP BY h.memory_id
        ), blanked AS (
            UPDATE memory_history h SET
                old_memory = CASE WHEN h.old_memory = ANY (stated.texts) THEN NULL ELSE h.old_memory END,
                new_memory = CASE WHEN h.new_memory = ANY (stated.texts) THEN NULL ELSE h.new_memory END,
                before = CASE WHEN h.before ->> 'content' = ANY (stated.texts) THEN NULL ELSE h.before END,
                before_embedding = CASE WHEN h.before ->> 'content' = ANY (stated.texts) THEN NULL ELSE h.before_embedding END
            FROM stated
            WHERE h.workspace_id = this_workspace AND h.memory_id = stated.memory_id
              AND (h.old_memory = ANY (stated.texts) OR h.new_memory = ANY (stated.texts)
                   OR h.before ->> 'content' = ANY (stated.texts))
            RETURNING h.memory_id
        )
        SELECT coalesce(array_agg(DISTINCT memory_id), '{}') INTO changed_ids FROM blanked;
    END IF;

    -- The tables and which of their rows `t` belong to the subject `s`, in the order of their foreign keys.
    memory_id_texts := memory_ids::text[];
    id_texts := memory_id_texts || turn_ids::text[] || keep_turns::text[] || changed_ids::text[];
    FOR name, condition IN VALUES
        -- a deleted turn can be found only by its words
        ('conversation_log', $$ t.turn_id = ANY (s.turn_ids)
            OR (s.is_scope AND (s.with_sessions OR t.is_run)
                AND is_of_subject(t.user_id, t.agent_id, t.run_id, t.channel,
                                  s.of_user, s.of_agent, s.of_run, s.of_channel))
            OR (NOT s.is_scope AND EXISTS (
                SELECT FROM memory_history h WHERE h.workspace_id = t.workspace_id AND h.memory_id = ANY (s.memory_ids)
                  AND h.user_id IS NOT DISTINCT FROM t.user_id AND h.agent_id IS NOT DISTINCT FROM t.agent_id
                  AND t.content_hash IN (encode(sha256(convert_to(h.old_memory, 'UTF8')), 'hex'),
                                         encode(sha256(convert_to(h.new_memory, 'UTF8')), 'hex')))) $$),
        ('turn_vector', 't.turn_id = ANY (s.turn_ids)'),
        ('user_profile', 's.is_user AND t.user_id = s.of_user'),
        ('turn', 't.id = ANY (s.turn_ids)'),
        ('conversation', $$ t.id = ANY (s.conversation_ids) OR (t.id = ANY (s.touched_conversations)
            AND NOT EXISTS (SELECT FROM turn r WHERE r.workspace_id = t.workspace_id AND r.conversation_id = t.id)) $$),
        ('memory_vector', 't.memory_id = ANY (s.memory_ids)'),
        ('memory_edge', 't.source_id = ANY (s.memory_ids) OR t.target_id = ANY (s.memory_ids)'),
        ('memory', 't.id = ANY (s.memory_ids)'),
        ('review', 't.memory_id = ANY (s.memory_ids)'),
        ('memory_history', $$ t.memory_id = ANY (s.memory_ids)
            OR (s.is_scope AND is_of_subject(t.user_id, t.agent_id, t.run_id, t.before ->> 'channel',
                                             s.of_user, s.of_agent, s.of_run, s.of_channel)) $$),
        ('entity', $$ (s.is_user AND t.user_id = s.of_user) OR (t.id = ANY (s.entity_ids)
            AND NOT EXISTS (SELECT FROM memory_entity m
                            WHERE m.workspace_id = t.workspace_id AND m.entity_id = t.id)) $$),
        ('decision', $$ t.memory_id = ANY (s.memory_ids)
            OR (s.is_scope AND is_of_subject(t.user_id, t.agent_id, t.run_id, NULL,
                                             s.of_user, s.of_agent, s.of_run, s.of_channel)) $$),
        ('operation', 't.id = ANY (s.operation_ids)'),
        -- answers about turns contain their words, so delete them even if only a part of a turn is erased
        ('idempotency', $$ t.status IS NOT NULL AND (
            (s.is_scope AND coalesce(t.user_id, t.agent_id, t.run_id) IS NOT NULL
             AND is_of_subject(t.user_id, t.agent_id, t.run_id, t.channel,
                               s.of_user, s.of_agent, s.of_run, s.of_channel))
            OR t.body ->> 'operation_id' = ANY (s.operation_ids::text[])
            OR EXISTS (SELECT FROM unnest('{strict $.**.id,strict $.**.source_id,strict $.**.target_id}'::jsonpath[])
                           AS place, jsonb_path_query(t.body, place) value
                       WHERE value #>> '{}' = ANY (s.id_texts))) $$),
        ('llm_cache', 'true'),
        ('embedding_cache', 'true')
    LOOP
        EXECUTE format($$
            DELETE FROM %I t USING (
                SELECT $2 AS memory_ids, $3 AS turn_ids, $4 AS conversation_ids, $5 AS touched_conversations,
                       $6 AS entity_ids, $7 AS operation_ids, $8 AS id_texts, $9 AS is_scope, $10 AS is_user,
                       $11 AS of_user, $12 AS of_agent, $13 AS of_run, $14 AS of_channel, $15 AS with_sessions
            ) s WHERE t.workspace_id = $1 AND (%s)
        $$, name, condition)
        USING this_workspace, memory_ids, turn_ids, conversation_ids, touched_conversations,
              entity_ids, operation_ids, id_texts, of_memories IS NULL, whole_user,
              of_user, of_agent, of_run, of_channel, with_sessions;
        GET DIAGNOSTICS affected = ROW_COUNT;
        ids := CASE name WHEN 'memory' THEN memory_ids WHEN 'conversation' THEN conversation_ids
                         WHEN 'operation' THEN operation_ids END;
        RETURN NEXT;
    END LOOP;

    -- what stays and mentions the subject
    UPDATE memory_history h SET before = jsonb_set(h.before, '{edges}', (
        SELECT coalesce(jsonb_agg(edge), '[]') FROM jsonb_array_elements(h.before -> 'edges') edge
        WHERE NOT edge ->> 'source_id' = ANY (memory_id_texts) AND NOT edge ->> 'target_id' = ANY (memory_id_texts)))
    WHERE h.workspace_id = this_workspace AND EXISTS (
        SELECT FROM jsonb_array_elements(coalesce(h.before -> 'edges', '[]')) edge
        WHERE edge ->> 'source_id' = ANY (memory_id_texts) OR edge ->> 'target_id' = ANY (memory_id_texts));
    UPDATE decision d SET reply = NULL, verdict = d.verdict - 'reason'
    WHERE d.workspace_id = this_workspace AND (d.memory_id = ANY (changed_ids) OR d.candidates ?| memory_id_texts);
    -- the only unanswered row visible here is this request's own
    UPDATE idempotency SET user_id = NULL, agent_id = NULL, run_id = NULL, channel = NULL
    WHERE workspace_id = this_workspace AND status IS NULL;
    INSERT INTO idempotency (workspace_id, key, fingerprint, status, body, expires_at)
    SELECT this_workspace, cancelled.name, cancelled.id::text, 410,
           '{"results": [], "warnings": ["purged"]}', now() + interval '1 day'
    FROM unnest(operation_ids, operation_names) cancelled (id, name)
    ON CONFLICT DO NOTHING;
    name := 'audit_log';
    UPDATE audit_log a SET query_text = NULL, metadata = '{}', config_snapshot = '{}', error_message = NULL,
        user_id = NULL, session_id = NULL, conversation_id = NULL, request_id = NULL, source_channel = NULL,
        target_channels = '{}', promoted_from_channel = NULL
    WHERE a.workspace_id = this_workspace AND (a.affected_ids && (memory_ids || turn_ids) OR (of_memories IS NULL
        AND (of_user IS NULL OR of_user IN (a.user_id, a.metadata #>> '{covers,user_id}'))
        AND (of_agent IS NULL OR of_agent IN (a.metadata #>> '{scope,agent_id}', a.metadata #>> '{covers,agent_id}'))
        AND (of_run IS NULL OR of_run IN (a.metadata #>> '{scope,run_id}', a.metadata #>> '{covers,run_id}'))
        AND (of_channel IS NULL OR of_channel IN (a.source_channel, a.metadata #>> '{covers,channel}'))));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
END $function$;

GRANT EXECUTE ON FUNCTION erase_subject TO loxodon_app, loxodon_walled;
