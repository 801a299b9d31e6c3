-- Creates a workspace with its first key: the only write that needs no current workspace.
CREATE OR REPLACE FUNCTION create_workspace(
    new_workspace uuid,
    workspace_name text,
    new_key uuid,
    key_name text,
    hash text,
    hint text,
    key_rights text[]
)
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    INSERT INTO workspace (workspace_id, name) VALUES (new_workspace, workspace_name);
    INSERT INTO api_key (workspace_id, id, name, key_hash, hint, rights)
    VALUES (new_workspace, new_key, key_name, hash, hint, key_rights);
$$;

GRANT EXECUTE ON FUNCTION create_workspace TO loxodon_app;
