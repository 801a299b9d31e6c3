-- Promoted copies, outside the wall of the transaction, of memories inside it: for a wall of channels, those in
-- _global. Only copies that nobody has changed and to which nothing else was promoted, locked by ascending id. None
-- without a wall, where the service's statements see copies anyway. For functions of the owner.
CREATE OR REPLACE FUNCTION copies_outside(of_memories uuid[])
RETURNS uuid[]
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(array_agg(locked.id), '{}') FROM (
        SELECT c.id FROM memory c
        WHERE c.workspace_id = current_setting('loxodon.workspace')::uuid AND c.version = 1
          AND c.id IN (
              SELECT e.source_id FROM memory_edge e
              WHERE e.workspace_id = current_setting('loxodon.workspace')::uuid AND e.target_id = ANY (of_memories)
                AND e.rel_type = 'PROMOTED_FROM' AND e.properties @> '{"copied": true}'
                AND is_outside('memory', e.source_id) AND NOT is_outside('memory', e.target_id))
          AND NOT EXISTS (
              SELECT FROM memory_edge o WHERE o.workspace_id = c.workspace_id AND o.source_id = c.id
                AND o.rel_type = 'PROMOTED_FROM' AND NOT o.target_id = ANY (of_memories))
        ORDER BY c.id FOR UPDATE OF c
    ) locked
$$;
