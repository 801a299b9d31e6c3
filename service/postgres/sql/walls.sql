-- Walls: what a key made for one user, agent, run or some channels can access. Its transactions run as loxodon_walled
-- (service/postgres/opening.py), which has only the rights on tables granted here and sees only the rows inside its wall.
-- loxodon_app may become this role but does not inherit from it, so other keys pay nothing. docs/decisions/045-walls.md
--
-- What is not known to be inside is outside: a table without a column for an id is closed to a wall of that id. A new
-- table is closed until it is named here and in tests/postgres/test_walls.py.

GRANT SELECT, INSERT, UPDATE, DELETE ON
    memory, memory_stat, memory_edge, memory_vector, memory_source, memory_entity,
    conversation, turn, turn_vector, withdrawn_span, user_profile, working_item,
    entity, entity_alias, entity_vector, entity_edge, entity_edge_source,
    goal, goal_edge, goal_memory, goal_vector,
    strategy, strategy_conversation, strategy_vector,
    decision, review, operation, idempotency
    TO loxodon_walled;
GRANT SELECT, INSERT ON conversation_log TO loxodon_walled;
GRANT SELECT, INSERT, UPDATE (recorded_to) ON memory_history TO loxodon_walled;
GRANT SELECT, INSERT, DELETE ON tool_invocation, job TO loxodon_walled;
GRANT INSERT ON audit_log TO loxodon_walled;
-- Answers and vectors by the hash of the requested text: a caller who has the text learns nothing new.
GRANT SELECT, INSERT, UPDATE, DELETE ON llm_cache, embedding_cache TO loxodon_walled;
GRANT SELECT ON term_stat, embedding_generation, erased_memory TO loxodon_walled;
GRANT USAGE ON SEQUENCE memory_history_seq, tool_invocation_seq, working_item_seq TO loxodon_walled;

-- Each setting is in a subquery, which is evaluated once per statement instead of once per row. Citus allows no subquery
-- in the policies of a table that it distributes.
DO $$
DECLARE
    once constant text := CASE WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')
                          THEN '%s' ELSE '(SELECT %s)' END;
    user_wall constant text := format(once, 'nullif(current_setting(''loxodon.wall_user_id'', true), '''')');
    agent_wall constant text := format(once, 'nullif(current_setting(''loxodon.wall_agent_id'', true), '''')');
    run_wall constant text := format(once, 'nullif(current_setting(''loxodon.wall_run_id'', true), '''')');
    channel_wall constant text := format(once, 'nullif(current_setting(''loxodon.wall_channels'', true), '''')::text[]');
    digest constant text := format(once, 'current_setting(''loxodon.wall_digest'')');
    same constant text := '(%1$s IS NULL OR %2$s = %1$s)';
    own_ids constant text := concat_ws(' AND ', format(same, user_wall, 'user_id'),
                                       format(same, agent_wall, 'agent_id'), format(same, run_wall, 'run_id'));
    -- copies of a conversation's turns have its id, not its name
    run_of_notes constant text := format('CASE WHEN turn_id IS NULL OR is_outside(''turn'', turn_id)
                                          THEN conversation_id ELSE %s END', run_wall);
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
        ('working_item', 'user_id', 'agent_id', run_of_notes, 'channel', false),
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
        -- A session may have the name of a run. It is inside only if the wall has its user.
        IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = target.name::regclass AND attname = 'is_run') THEN
            inside := format('%s AND (is_run OR %s IS NULL OR %s IS NOT NULL)', inside, run_wall, user_wall);
        END IF;
        EXECUTE format('CREATE POLICY wall ON %I AS RESTRICTIVE TO loxodon_walled USING (%s AND (%s IS NULL OR %s))',
                       target.name, inside, channel_wall,
                       CASE WHEN target.channel_column IS NULL THEN 'false'
                            ELSE format('%s = ANY (%s::text[])', target.channel_column, channel_wall) END);
    END LOOP;

    -- Rows that belong to another row have its wall.
    FOR target IN SELECT * FROM (VALUES
        ('memory_stat', ARRAY['memory', 'memory_id']),
        ('memory_edge', ARRAY['memory', 'source_id', 'memory', 'target_id']),
        ('memory_source', ARRAY['memory', 'memory_id', 'turn', 'turn_id']),
        ('memory_entity', ARRAY['memory', 'memory_id', 'entity', 'entity_id']),
        ('withdrawn_span', ARRAY['turn', 'turn_id']),
        ('entity_vector', ARRAY['entity', 'entity_id']),
        ('entity_edge', ARRAY['entity', 'source_id', 'entity', 'target_id']),
        ('entity_edge_source', ARRAY['memory', 'memory_id', 'entity_edge', 'edge_id']),
        ('goal_edge', ARRAY['goal', 'source_id', 'goal', 'target_id']),
        ('goal_memory', ARRAY['goal', 'goal_id', 'memory', 'memory_id']),
        ('goal_vector', ARRAY['goal', 'goal_id']),
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

    -- These have the ids of their memory, but not its channel.
    inside := format('(%s OR (user_id IS NULL AND agent_id IS NULL AND run_id IS NULL))', own_ids);
    EXECUTE format('CREATE POLICY wall ON memory_history AS RESTRICTIVE TO loxodon_walled '
                   'USING (%s AND (%s IS NULL OR NOT is_outside(''memory'', memory_id)))', inside, channel_wall);
    EXECUTE format('CREATE POLICY wall ON decision AS RESTRICTIVE TO loxodon_walled '
                   'USING (%1$s AND (%2$s IS NULL OR memory_id IS NOT NULL AND NOT is_outside(''memory'', memory_id))) '
                   'WITH CHECK (%1$s AND (%2$s IS NULL OR NOT is_outside(''memory'', memory_id)))',
                   inside, channel_wall);
    -- Answers given behind the same wall, or about what lies inside.
    EXECUTE format('CREATE POLICY wall ON idempotency AS RESTRICTIVE TO loxodon_walled USING ('
                   'starts_with(key, %s || '':'') OR %s AND %s IS NULL)', digest, own_ids, channel_wall);

    -- Operations started behind the same wall. They store the wall, because their request is deleted once it is done.
    EXECUTE format('CREATE POLICY wall ON operation AS RESTRICTIVE TO loxodon_walled USING (wall = %s)', digest);
END $$;

-- Its turns would be deleted with it.
CREATE POLICY wall_of_turns ON conversation AS RESTRICTIVE FOR DELETE TO loxodon_walled
    USING (NOT is_outside('turns of a conversation', id));

-- Jobs for what is inside. Others can be inserted, such as those of an operation, but not seen.
CREATE POLICY wall ON job AS RESTRICTIVE TO loxodon_walled
    USING ((memory_id IS NOT NULL OR payload ? 'conversation_id') AND NOT is_outside('memory', memory_id)
           AND NOT is_outside('conversation', (payload ->> 'conversation_id')::uuid))
    WITH CHECK (NOT is_outside('memory', memory_id)
                AND NOT is_outside('conversation', (payload ->> 'conversation_id')::uuid));

-- An id does not say whose it was: the change feed has no erasures behind a wall.
CREATE POLICY wall ON erased_memory AS RESTRICTIVE TO loxodon_walled USING (false);

-- Only the frequencies of terms over all workspaces: those of its own workspace would reveal others' texts.
CREATE POLICY wall ON term_stat AS RESTRICTIVE FOR SELECT TO loxodon_walled
    USING (workspace_id = '00000000-0000-0000-0000-000000000000');
