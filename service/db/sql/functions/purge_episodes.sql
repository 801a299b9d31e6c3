-- Erases the turns of a subject: log, turn vectors, turns, profile. Returns the rows affected by table.
--
-- The subject is a scope (rows with every given id), or memories and turns. Of memories the turns they came from go as
-- well, but for `keep_turns`. Runs before purge_subject(), which removes the sources by which a memory's turns are found;
-- of a memory that is gone only history knows them, or its texts.
CREATE OR REPLACE FUNCTION purge_episodes(
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
    turn_ids uuid[];
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
    SELECT coalesce(array_agg(id), '{}') INTO turn_ids FROM (
        SELECT s.turn_id AS id FROM memory_source s WHERE s.workspace_id = this_workspace AND s.memory_id = ANY (of_memories)
        UNION
        SELECT (source ->> 'turn_id')::uuid FROM memory_history h
        CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) source
        WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (of_memories)
        UNION
        SELECT t.id FROM turn t
        WHERE of_memories IS NULL AND t.workspace_id = this_workspace
          AND (of_user IS NULL OR t.user_id = of_user)
          AND (of_agent IS NULL OR t.agent_id = of_agent)
          AND (of_run IS NULL OR t.run_id = of_run)
          AND (of_channel IS NULL OR t.channel = of_channel)
        UNION
        SELECT unnest(of_turns)
    ) sources WHERE NOT id = ANY (keep_turns) AND NOT is_outside('turn', id);
    name := 'conversation_log';
    DELETE FROM conversation_log l
    WHERE l.workspace_id = this_workspace
      AND (l.turn_id = ANY (turn_ids)
           OR EXISTS (SELECT FROM memory_history h
                      WHERE h.workspace_id = this_workspace AND h.memory_id = ANY (of_memories)
                        AND h.user_id IS NOT DISTINCT FROM l.user_id AND h.agent_id IS NOT DISTINCT FROM l.agent_id
                        AND l.content_hash IN (encode(sha256(convert_to(h.old_memory, 'UTF8')), 'hex'),
                                               encode(sha256(convert_to(h.new_memory, 'UTF8')), 'hex')))
           OR (of_memories IS NULL
               AND (of_user IS NULL OR l.user_id = of_user)
               AND (of_agent IS NULL OR l.agent_id = of_agent)
               AND (of_run IS NULL OR l.run_id = of_run)
               AND (of_channel IS NULL OR l.channel = of_channel)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'turn_vector';
    DELETE FROM turn_vector v WHERE v.workspace_id = this_workspace AND v.turn_id = ANY (turn_ids);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    DELETE FROM turn t
    WHERE of_memories IS NULL AND t.workspace_id = this_workspace AND t.id = ANY (turn_ids)
      AND NOT EXISTS (SELECT FROM memory_source s WHERE s.workspace_id = this_workspace AND s.turn_id = t.id);
    name := 'user_profile';
    DELETE FROM user_profile p
    WHERE p.workspace_id = this_workspace AND of_memories IS NULL AND p.user_id = of_user
      AND of_agent IS NULL AND of_run IS NULL AND of_channel IS NULL;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
END $$;

REVOKE EXECUTE ON FUNCTION purge_episodes(text, text, text, text, uuid[], uuid[], uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION purge_episodes(text, text, text, text, uuid[], uuid[], uuid[]) TO loxodon_app;
