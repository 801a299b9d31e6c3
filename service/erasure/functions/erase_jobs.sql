-- Deletes the jobs of these memories, conversations and operations, and those that requests behind a wall of the scope
-- have left; returns how many. Only for purge_subject(), which calls it with the ids that it has erased.
CREATE OR REPLACE FUNCTION erase_jobs(
    of_user text,
    of_agent text,
    of_run text,
    of_channel text,
    of_memories uuid[],
    of_conversations uuid[],
    of_operations uuid[]
)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    removed bigint;
BEGIN
    IF to_regclass('pg_dist_partition') IS NULL THEN  -- on Citus the owner cannot look for what the caller has just erased
        of_memories := ARRAY(SELECT id FROM unnest(of_memories) id WHERE NOT is_outside('memory', id));
        of_conversations := ARRAY(SELECT id FROM unnest(of_conversations) id WHERE NOT is_outside('conversation', id));
    END IF;
    DELETE FROM job j
    WHERE j.workspace_id = current_setting('loxodon.workspace')::uuid AND (
        j.memory_id = ANY (of_memories)
        OR j.payload ->> 'conversation_id' = ANY (of_conversations::text[])
        OR j.payload ->> 'operation_id' = ANY (of_operations::text[])
        OR num_nonnulls(of_user, of_agent, of_run) > 0 AND in_wall(of_user, of_agent, of_run, of_channel)
            AND is_of_subject(j.wall ->> 'user_id', j.wall ->> 'agent_id', j.wall ->> 'run_id', NULL,
                              of_user, of_agent, of_run, of_channel));
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;

GRANT EXECUTE ON FUNCTION erase_jobs TO loxodon_app, loxodon_walled;
