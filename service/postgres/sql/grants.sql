-- Rights of the service's roles on tables. The worker inherits those of the app. Functions grant EXECUTE in their own
-- files; protect() lets the worker run VACUUM.

GRANT SELECT, INSERT, UPDATE, DELETE ON
    memory, memory_stat, memory_edge, memory_vector, memory_source, memory_entity, term_stat,
    conversation, turn, turn_vector, withdrawn_span, user_profile, working_item,
    entity, entity_alias, entity_vector, entity_edge, entity_edge_source,
    goal, goal_edge, goal_memory, goal_vector,
    strategy, strategy_conversation, strategy_vector,
    decision, review, job, operation, idempotency, llm_cache, embedding_cache, model_day,
    webhook, webhook_delivery
    TO loxodon_app;

-- Append-only, except for the end of an interval of history; erasures delete uses of tools.
GRANT SELECT ON erased_memory TO loxodon_app;
GRANT SELECT, INSERT ON audit_log, conversation_log TO loxodon_app;
GRANT SELECT, INSERT, UPDATE (recorded_to) ON memory_history TO loxodon_app;
GRANT SELECT, INSERT, DELETE ON tool_invocation TO loxodon_app;
GRANT USAGE ON SEQUENCE memory_history_seq, tool_invocation_seq, working_item_seq TO loxodon_app;

GRANT SELECT, UPDATE (name, settings) ON workspace TO loxodon_app;
GRANT SELECT, INSERT, UPDATE (
    name, rights, user_id, agent_id, run_id, channels, default_user_id, default_agent_id, default_run_id,
    default_channel, expires_at, revoked_at, key_hash, hint, old_key_hash, old_key_until, former_key_hashes, last_used_at)
    ON api_key TO loxodon_app;
GRANT SELECT ON embedding_generation TO loxodon_app;

GRANT SELECT ON schedule TO loxodon_app;
GRANT INSERT, UPDATE ON schedule TO loxodon_worker;
