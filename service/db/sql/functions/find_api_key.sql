-- The key with this hash, unless revoked, with the settings of its workspace.
CREATE OR REPLACE FUNCTION find_api_key(secret_hash text)
RETURNS TABLE (
    workspace_id uuid,
    id uuid,
    rights text[],
    user_id text,
    agent_id text,
    run_id text,
    channel varchar,
    expires_at timestamptz,
    settings jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT k.workspace_id, k.id, k.rights, k.user_id, k.agent_id, k.run_id, k.channel, k.expires_at, w.settings
    FROM api_key k JOIN workspace w USING (workspace_id)
    WHERE k.key_hash = secret_hash AND k.revoked_at IS NULL
$$;

REVOKE EXECUTE ON FUNCTION find_api_key(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key(text) TO loxodon_app;
