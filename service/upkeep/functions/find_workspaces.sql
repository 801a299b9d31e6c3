-- All workspaces, for upkeep.
CREATE OR REPLACE FUNCTION find_workspaces()
RETURNS TABLE (workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id FROM workspace w ORDER BY w.workspace_id
$$;

GRANT EXECUTE ON FUNCTION find_workspaces TO loxodon_worker;
