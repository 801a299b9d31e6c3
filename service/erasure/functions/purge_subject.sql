-- Erases a subject with its jobs; returns the rows affected by table. On Citus erase_subject() runs on the node of the
-- workspace and the rest on the coordinator, in the transaction and with the role of the caller.
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
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    erased record;
    memory_ids uuid[];
    conversation_ids uuid[];
    operation_ids uuid[];
BEGIN
    FOR erased IN SELECT * FROM erase_subject(
        of_user, of_agent, of_run, of_channel, of_memories, of_turns, keep_turns)
    LOOP
        name := erased.name;
        affected := erased.affected;
        RETURN NEXT;
        CASE name
            WHEN 'memory' THEN memory_ids := erased.ids;
            WHEN 'conversation' THEN conversation_ids := erased.ids;
            WHEN 'operation' THEN operation_ids := erased.ids;
            ELSE NULL;
        END CASE;
    END LOOP;
    name := 'job';
    affected := erase_jobs(of_user, of_agent, of_run, of_channel, memory_ids, conversation_ids, operation_ids);
    RETURN NEXT;
END $$;

GRANT EXECUTE ON FUNCTION purge_subject TO loxodon_app, loxodon_walled;
