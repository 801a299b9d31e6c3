-- Whether a workspace has memories or conversations, and for `consolidate` unread turns. A function, because Citus looks
-- into one workspace at a time. Only for find_due_workspaces().
CREATE OR REPLACE FUNCTION has_work(of_workspace uuid, job_name text)
RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
BEGIN
    IF job_name = 'consolidate' THEN
        RETURN EXISTS (SELECT 1 FROM conversation c WHERE c.workspace_id = of_workspace AND c.consolidated_at IS NULL
                       AND c.turn_count > c.consolidated_turns AND NOT c.archived);
    END IF;
    RETURN has_memories(of_workspace, 1)
        OR EXISTS (SELECT 1 FROM conversation c WHERE c.workspace_id = of_workspace);
END $$;
