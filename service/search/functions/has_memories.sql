-- Whether a workspace has this many memories. A function, because Citus looks into one workspace at a time.
CREATE OR REPLACE FUNCTION has_memories(of_workspace uuid, at_least integer)
RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT 1 FROM memory m WHERE m.workspace_id = of_workspace LIMIT at_least) counted)
        >= at_least;
END $$;
