-- Erases a subject: a scope (rows with every given id) or one memory with its promoted copies. Returns the rows
-- affected by table.
--
-- Ids of memories that are gone already come from history. Rows that only speak of the subject keep their time and
-- numbers and lose their words (audit, other memories' decisions and snapshots). A job that runs this moment finds
-- its operation answered and stores nothing. The caches hold words of nobody in particular, so all of the workspace's
-- go. This is the one way besides appending to change history and audit: the app has no right to delete there.
CREATE OR REPLACE FUNCTION purge_subject(
    of_user text,
    of_agent text,
    of_run text,
    of_channel text,
    of_memory uuid
)
RETURNS TABLE (name text, affected bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    whole boolean := of_memory IS NULL AND of_agent IS NULL AND of_run IS NULL AND of_channel IS NULL;
    ids uuid[];
    words text[];
    convs uuid[];
    turns uuid[];
    touched uuid[];
    ops uuid[];
    ents uuid[];
BEGIN
    IF of_memory IS NULL AND of_user IS NULL AND of_agent IS NULL AND of_run IS NULL THEN
        RAISE EXCEPTION 'a subject is a user, an agent, a run or a memory';
    END IF;
    IF of_memory IS NOT NULL THEN
        WITH RECURSIVE same AS (
            SELECT of_memory AS id
            UNION
            SELECT CASE WHEN e.source_id = same.id THEN e.target_id ELSE e.source_id END
            FROM same JOIN memory_edge e ON e.workspace_id = here AND e.rel_type = 'PROMOTED_FROM'
                AND (e.source_id = same.id OR e.target_id = same.id)
        )
        SELECT array_agg(id) INTO ids FROM same;
    ELSE
        SELECT coalesce(array_agg(DISTINCT id), '{}') INTO ids FROM (
            SELECT m.id FROM memory m
            WHERE m.workspace_id = here AND (of_user IS NULL OR m.user_id = of_user)
              AND (of_agent IS NULL OR m.agent_id = of_agent) AND (of_run IS NULL OR m.run_id = of_run)
              AND (of_channel IS NULL OR m.channel = of_channel)
            UNION ALL
            SELECT h.memory_id FROM memory_history h
            WHERE h.workspace_id = here AND (of_user IS NULL OR h.user_id = of_user)
              AND (of_agent IS NULL OR h.agent_id = of_agent) AND (of_run IS NULL OR h.run_id = of_run)
              AND (of_channel IS NULL OR h.before ->> 'channel' = of_channel)
        ) known;
    END IF;
    words := ids::text[];

    PERFORM FROM memory WHERE workspace_id = here AND id = ANY (ids) ORDER BY id FOR UPDATE;
    PERFORM FROM memory_edge WHERE workspace_id = here AND (source_id = ANY (ids) OR target_id = ANY (ids))
        ORDER BY source_id, rel_type, target_id FOR UPDATE;

    -- what was said
    SELECT coalesce(array_agg(id), '{}') INTO turns FROM (
        SELECT s.turn_id AS id FROM memory_source s WHERE s.workspace_id = here AND s.memory_id = ANY (ids)
        UNION  -- of a memory that is gone only history knows the turns
        SELECT (was ->> 'turn_id')::uuid FROM memory_history h
            CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) was
        WHERE h.workspace_id = here AND h.memory_id = ANY (ids)
    ) said;
    SELECT coalesce(array_agg(DISTINCT t.conversation_id), '{}') INTO touched
    FROM turn t WHERE t.workspace_id = here AND t.id = ANY (turns);
    SELECT coalesce(array_agg(c.id), '{}') INTO convs FROM conversation c
    WHERE of_memory IS NULL AND c.workspace_id = here AND (of_user IS NULL OR c.user_id = of_user)
      AND (of_agent IS NULL OR c.agent_id = of_agent) AND (of_run IS NULL OR c.external_id = of_run)
      AND (of_channel IS NULL OR c.channel = of_channel);
    name := 'turn';
    WITH gone AS (
        DELETE FROM turn t WHERE t.workspace_id = here AND (t.conversation_id = ANY (convs) OR t.id = ANY (turns))
        RETURNING 1
    ) SELECT count(*) INTO affected FROM gone;
    RETURN NEXT;
    name := 'conversation';
    DELETE FROM conversation c WHERE c.workspace_id = here AND (c.id = ANY (convs) OR (c.id = ANY (touched)
        AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = here AND t.conversation_id = c.id)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

    -- a turn's words also stand in the context of its neighbours
    UPDATE memory m SET context_terms = '{}', context_bm25 = NULL
    WHERE m.workspace_id = here AND NOT m.id = ANY (ids) AND m.context_terms <> '{}'
      AND m.conversation_id = ANY (touched);
    DELETE FROM memory_vector v WHERE v.workspace_id = here AND v.kind = 'context' AND v.memory_id IN (
        SELECT m.id FROM memory m WHERE m.workspace_id = here AND m.conversation_id = ANY (touched));

    -- memories, and what goes with them
    SELECT coalesce(array_agg(id), '{}') INTO ents FROM (
        SELECT me.entity_id AS id FROM memory_entity me WHERE me.workspace_id = here AND me.memory_id = ANY (ids)
        UNION
        SELECT was::uuid FROM memory_history h
            CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(h.before -> 'entity_ids', '[]')) was
        WHERE h.workspace_id = here AND h.memory_id = ANY (ids)
    ) called;
    name := 'memory_vector';
    DELETE FROM memory_vector WHERE workspace_id = here AND memory_id = ANY (ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'memory_edge';
    DELETE FROM memory_edge WHERE workspace_id = here AND (source_id = ANY (ids) OR target_id = ANY (ids));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'memory';
    DELETE FROM memory WHERE workspace_id = here AND id = ANY (ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'entity';
    DELETE FROM entity e WHERE e.workspace_id = here AND ((whole AND e.user_id = of_user) OR (e.id = ANY (ents)
        AND NOT EXISTS (SELECT FROM memory_entity me WHERE me.workspace_id = here AND me.entity_id = e.id)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'review';
    DELETE FROM review WHERE workspace_id = here AND memory_id = ANY (ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

    -- what happened
    name := 'memory_history';
    DELETE FROM memory_history WHERE workspace_id = here AND memory_id = ANY (ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    UPDATE memory_history h SET before = jsonb_set(h.before, '{edges}', (
        SELECT coalesce(jsonb_agg(g), '[]') FROM jsonb_array_elements(h.before -> 'edges') g
        WHERE NOT g ->> 'source_id' = ANY (words) AND NOT g ->> 'target_id' = ANY (words)))
    WHERE h.workspace_id = here AND EXISTS (
        SELECT FROM jsonb_array_elements(coalesce(h.before -> 'edges', '[]')) g
        WHERE g ->> 'source_id' = ANY (words) OR g ->> 'target_id' = ANY (words));
    name := 'decision';
    DELETE FROM decision d WHERE d.workspace_id = here AND (d.memory_id = ANY (ids) OR (of_memory IS NULL
        AND of_channel IS NULL AND (of_user IS NULL OR d.user_id = of_user)
        AND (of_agent IS NULL OR d.agent_id = of_agent) AND (of_run IS NULL OR d.run_id = of_run)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    UPDATE decision d SET reply = NULL, verdict = d.verdict - 'reason'
    WHERE d.workspace_id = here AND d.candidates ?| words;
    name := 'audit_log';
    UPDATE audit_log a SET query_text = NULL, metadata = '{}', config_snapshot = '{}', error_message = NULL,
        user_id = NULL, session_id = NULL, conversation_id = NULL, request_id = NULL, source_channel = NULL,
        target_channels = '{}', promoted_from_channel = NULL
    WHERE a.workspace_id = here AND (a.affected_ids && ids OR (of_memory IS NULL AND CASE
        WHEN of_user IS NOT NULL THEN a.user_id = of_user OR a.metadata #>> '{covers,user_id}' = of_user
        ELSE (of_agent IS NULL OR of_agent IN (a.metadata #>> '{scope,agent_id}', a.metadata #>> '{covers,agent_id}'))
         AND (of_run IS NULL OR of_run IN (a.metadata #>> '{scope,run_id}', a.metadata #>> '{covers,run_id}')) END));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;

    -- work, answers and caches
    SELECT coalesce(array_agg(o.id), '{}') INTO ops FROM operation o
    WHERE o.workspace_id = here AND of_memory IS NULL AND o.request ? 'scope'
      AND (of_user IS NULL OR o.request -> 'scope' ->> 0 = of_user)
      AND (of_agent IS NULL OR o.request -> 'scope' ->> 1 = of_agent)
      AND (of_run IS NULL OR o.request -> 'scope' ->> 2 = of_run);
    name := 'job';
    DELETE FROM job j WHERE j.workspace_id = here AND (j.memory_id = ANY (ids)
        OR j.payload ->> 'operation_id' = ANY (ops::text[]) OR j.payload ->> 'conversation_id' = ANY (convs::text[]));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'operation';
    DELETE FROM operation WHERE workspace_id = here AND id = ANY (ops);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'idempotency';
    DELETE FROM idempotency i WHERE i.workspace_id = here AND i.status IS NOT NULL AND (
        (of_memory IS NULL AND coalesce(i.user_id, i.agent_id, i.run_id) IS NOT NULL
         AND (of_user IS NULL OR i.user_id = of_user) AND (of_agent IS NULL OR i.agent_id = of_agent)
         AND (of_run IS NULL OR i.run_id = of_run))
        OR i.body ->> 'operation_id' = ANY (ops::text[])
        OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.id') found WHERE found #>> '{}' = ANY (words))
        OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.source_id') found
                   WHERE found #>> '{}' = ANY (words))
        OR EXISTS (SELECT FROM jsonb_path_query(i.body, 'strict $.**.target_id') found
                   WHERE found #>> '{}' = ANY (words)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    -- the only unanswered row in sight is this request's own
    UPDATE idempotency SET user_id = NULL, agent_id = NULL, run_id = NULL WHERE workspace_id = here AND status IS NULL;
    INSERT INTO idempotency (workspace_id, key, fingerprint, status, body, expires_at)
    SELECT here, 'operation:' || each, each::text, 410, '{"results": [], "warnings": ["purged"]}',
           now() + interval '1 day'
    FROM unnest(ops) each ON CONFLICT DO NOTHING;
    name := 'llm_cache';
    DELETE FROM llm_cache WHERE workspace_id = here;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'embedding_cache';
    DELETE FROM embedding_cache WHERE workspace_id = here;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
END $$;

REVOKE EXECUTE ON FUNCTION purge_subject(text, text, text, text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION purge_subject(text, text, text, text, uuid) TO loxodon_app;
