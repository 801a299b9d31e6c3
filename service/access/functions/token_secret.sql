-- The secret that signs tokens: the stored one, else the proposed one, which is then stored.
CREATE OR REPLACE FUNCTION token_secret(proposed text)
RETURNS text
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    INSERT INTO token_secret (secret) VALUES (proposed) ON CONFLICT DO NOTHING;
    SELECT secret FROM token_secret
$$;

GRANT EXECUTE ON FUNCTION token_secret TO loxodon_app;
