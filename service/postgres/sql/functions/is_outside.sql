-- Whether a row that another one belongs to is outside the wall of the transaction. False for a row that does not
-- exist: it is created by the same statement and checked by its own policy, or the foreign key fails. For a deleted
-- memory, history is consulted. Bypasses the policies, because it looks for rows that they hide.
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
        SELECT in_wall(t.user_id, t.agent_id, t.run_id, t.channel, is_run => t.is_run) INTO inside
        FROM turn t WHERE t.workspace_id = here AND t.id = of_id;
    ELSIF of_table = 'turns of a conversation' THEN  -- one of them
        SELECT bool_and(in_wall(t.user_id, t.agent_id, t.run_id, t.channel, is_run => t.is_run)) INTO inside
        FROM turn t WHERE t.workspace_id = here AND t.conversation_id = of_id;
    ELSIF of_table = 'conversation' THEN
        SELECT in_wall(c.user_id, c.agent_id, c.external_id, c.channel, is_run => c.is_run) INTO inside
        FROM conversation c WHERE c.workspace_id = here AND c.id = of_id;
    ELSIF of_table = 'entity' THEN
        SELECT in_wall(e.user_id, NULL, NULL, e.channel) INTO inside
        FROM entity e WHERE e.workspace_id = here AND e.id = of_id;
    ELSIF of_table = 'entity_edge' THEN
        SELECT NOT is_outside('entity', e.source_id) AND NOT is_outside('entity', e.target_id) INTO inside
        FROM entity_edge e WHERE e.workspace_id = here AND e.id = of_id;
    ELSIF of_table = 'relations of an entity' THEN  -- one of them
        SELECT bool_and(NOT is_outside('entity', e.source_id) AND NOT is_outside('entity', e.target_id)) INTO inside
        FROM entity_edge e WHERE e.workspace_id = here AND of_id IN (e.source_id, e.target_id);
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

GRANT EXECUTE ON FUNCTION is_outside TO loxodon_app, loxodon_walled;
