-- Erases a subject: a scope (rows with every given id), or memories, and turns. With memories it erases their promoted
-- copies, the past versions of all of these, and the turns they came from, except `keep_turns`. Returns the rows
-- affected by table.
--
-- Rows deleted earlier are found through history, or by their texts. Rows that only mention the subject keep their time
-- and numbers and lose their texts (audit, other memories' decisions and snapshots). A job that is running finds its
-- operation answered and stores nothing. The caches do not record whose texts they have, so the workspace's are
-- emptied.
--
-- Apart from appending, this is the only way to change history and audit: the app has no right to delete from them. The
-- function bypasses the policies and repeats the workspace in every statement. docs/decisions/022-erasure.md
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
    operation_names text[];  -- of their stored answers: service/intake/jobs/conversations.py
    entity_ids uuid[];
    changed_ids uuid[] := '{}';
    which_rows text;
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
            SELECT h.memory_id FROM memory_history h
            WHERE h.workspace_id = this_workspace
              AND is_of_subject(h.user_id, h.agent_id, h.run_id, h.before ->> 'channel',
                                of_user, of_agent, of_run, of_channel)
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

    -- turns and conversations; a turn that memories of others also came from stays
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
          AND NOT EXISTS (SELECT FROM memory_source s WHERE s.workspace_id = this_workspace AND s.turn_id = t.id
                          AND NOT s.memory_id = ANY (memory_ids))
        UNION
        SELECT unnest(of_turns)
    ) sources WHERE NOT id = ANY (keep_turns) AND NOT is_outside('turn', id);
    SELECT coalesce(array_agg(DISTINCT t.conversation_id), '{}') INTO touched_conversations
    FROM turn t WHERE t.workspace_id = this_workspace AND t.id = ANY (turn_ids);
    SELECT coalesce(array_agg(c.id), '{}') INTO conversation_ids FROM conversation c
    WHERE of_memories IS NULL AND c.workspace_id = this_workspace
      AND is_of_subject(c.user_id, c.agent_id, c.external_id, c.channel, of_user, of_agent, of_run, of_channel);
    name := 'conversation_log';  -- a deleted turn can be found only by its words
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
               AND is_of_subject(l.user_id, l.agent_id, l.run_id, l.channel, of_user, of_agent, of_run, of_channel)));
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
    DELETE FROM turn t
    WHERE t.workspace_id = this_workspace AND (t.conversation_id = ANY (conversation_ids) OR t.id = ANY (turn_ids));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'conversation';
    DELETE FROM conversation c
    WHERE c.workspace_id = this_workspace
      AND (c.id = ANY (conversation_ids)
           OR (c.id = ANY (touched_conversations)
               AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = this_workspace AND t.conversation_id = c.id)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

    -- a turn's terms are also in the context of its neighbours
    UPDATE memory m SET context_terms = '{}', context_bm25 = NULL
    WHERE m.workspace_id = this_workspace AND NOT m.id = ANY (memory_ids) AND m.context_terms <> '{}'
      AND m.conversation_id = ANY (touched_conversations);
    DELETE FROM memory_vector v
    WHERE v.workspace_id = this_workspace AND v.kind = 'context' AND v.memory_id IN (
        SELECT m.id FROM memory m
        WHERE m.workspace_id = this_workspace AND m.conversation_id = ANY (touched_conversations));

    -- memories, and what belongs to them
    SELECT coalesce(array_agg(id), '{}') INTO entity_ids FROM (
        SELECT me.entity_id AS id FROM memory_entity me
        WHERE me.workspace_id = this_workspace AND me.memory_id = ANY (memory_ids)
        UNION
        SELECT entity::uuid FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(h.before -> 'entity_ids', '[]')) entity
        WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids)
    ) named;
    -- the change feed keeps the ids, after all their earlier changes
    INSERT INTO erased_memory (workspace_id, memory_id, position)
    SELECT this_workspace, h.memory_id, greatest(pg_current_xact_id()::text::bigint, max(h.position))
    FROM memory_history h
    WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (memory_ids) GROUP BY h.memory_id;
    FOR name, which_rows IN VALUES
        ('memory_vector', 'memory_id = ANY ($2)'),
        ('memory_edge', 'source_id = ANY ($2) OR target_id = ANY ($2)'),
        ('memory', 'id = ANY ($2)'),
        ('review', 'memory_id = ANY ($2)'),
        ('memory_history', 'memory_id = ANY ($2)')
    LOOP
        EXECUTE format('DELETE FROM %I WHERE workspace_id = $1 AND (%s)', name, which_rows)
        USING this_workspace, memory_ids;
        GET DIAGNOSTICS affected = ROW_COUNT;
        RETURN NEXT;
    END LOOP;
    name := 'entity';
    DELETE FROM entity e
    WHERE e.workspace_id = this_workspace
      AND ((whole_user AND e.user_id = of_user)
           OR (e.id = ANY (entity_ids)
               AND NOT EXISTS (SELECT FROM memory_entity me
                               WHERE me.workspace_id = this_workspace AND me.entity_id = e.id)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

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
                              JOIN turn t ON t.workspace_id = this_workspace AND t.id = (source ->> 'turn_id')::uuid)
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
        UPDATE decision d SET reply = NULL, verdict = d.verdict - 'reason'
        WHERE d.workspace_id = this_workspace AND d.memory_id = ANY (changed_ids);
    END IF;

    -- what mentions the memories: history, decisions, audit
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
           OR (of_memories IS NULL
               AND is_of_subject(d.user_id, d.agent_id, d.run_id, NULL, of_user, of_agent, of_run, of_channel)));
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
      AND is_of_subject(o.request -> 'scope' ->> 0, o.request -> 'scope' ->> 1, o.request -> 'scope' ->> 2,
                        coalesce(o.request -> 'scope' ->> 3, o.request ->> 'channel'),
                        of_user, of_agent, of_run, of_channel);
    name := 'job';
    DELETE FROM job j
    WHERE j.workspace_id = this_workspace
      AND (j.memory_id = ANY (memory_ids)
           OR j.payload ->> 'operation_id' = ANY (operation_ids::text[])
           OR j.payload ->> 'conversation_id' = ANY (conversation_ids::text[])
           OR (of_memories IS NULL
               AND is_of_subject(j.wall ->> 'user_id', j.wall ->> 'agent_id', j.wall ->> 'run_id', NULL,
                                of_user, of_agent, of_run, of_channel)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'operation';
    DELETE FROM operation WHERE workspace_id = this_workspace AND id = ANY (operation_ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    -- answers about turns contain their words, so delete them even if only a part of a turn is erased
    id_texts := memory_id_texts || turn_ids::text[] || keep_turns::text[] || changed_ids::text[];
    name := 'idempotency';
    DELETE FROM idempotency i
    WHERE i.workspace_id = this_workspace AND i.status IS NOT NULL
      AND ((of_memories IS NULL AND coalesce(i.user_id, i.agent_id, i.run_id) IS NOT NULL
            AND is_of_subject(i.user_id, i.agent_id, i.run_id, NULL, of_user, of_agent, of_run, NULL))
           OR i.body ->> 'operation_id' = ANY (operation_ids::text[])
           OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.id') value
                      WHERE value #>> '{}' = ANY (id_texts))
           OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.source_id') value
                      WHERE value #>> '{}' = ANY (id_texts))
           OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.target_id') value
                      WHERE value #>> '{}' = ANY (id_texts)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    -- the only unanswered row visible here is this request's own
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
