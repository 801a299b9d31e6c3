-- The key with this hash, unless revoked, with the settings of its workspace. After a rotation the old hash finds it
-- too, until `old_until`, which is NULL if the hash is the current one.
CREATE OR REPLACE FUNCTION find_api_key(secret_hash text)
RETURNS TABLE (
    workspace_id uuid,
    id uuid,
    rights text[],
    user_id text,
    agent_id text,
    run_id text,
    channels text[],
    default_user_id text,
    default_agent_id text,
    default_run_id text,
    default_channel varchar,
    expires_at timestamptz,
    old_until timestamptz,
    settings jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT k.workspace_id, k.id, k.rights, k.user_id, k.agent_id, k.run_id, k.channels, k.default_user_id,
           k.default_agent_id, k.default_run_id, k.default_channel, k.expires_at, k.old_until, w.settings
    FROM (
        SELECT a.*, NULL::timestamptz AS old_until FROM api_key a WHERE a.key_hash = secret_hash
        UNION ALL
        SELECT a.*, a.old_key_until FROM api_key a WHERE a.old_key_hash = secret_hash AND a.key_hash <> secret_hash
    ) k JOIN workspace w USING (workspace_id)
    WHERE k.revoked_at IS NULL
$$;

GRANT EXECUTE ON FUNCTION find_api_key TO loxodon_app;
