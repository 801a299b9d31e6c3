-- Workspaces with at least `min_memories` memories. In smaller ones searches count terms themselves.
CREATE OR REPLACE FUNCTION find_large_workspaces(min_memories integer)
RETURNS TABLE (workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id FROM workspace w
    WHERE has_memories(w.workspace_id, min_memories)
    ORDER BY w.workspace_id
$$;

GRANT EXECUTE ON FUNCTION find_large_workspaces TO loxodon_worker;
