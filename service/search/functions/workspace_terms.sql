-- Terms hashed together with the workspace, so that a common term of one tenant does not lengthen posting lists of
-- another. Collisions are filtered out by comparing the terms themselves.
CREATE OR REPLACE FUNCTION workspace_terms(of_workspace uuid, of_terms integer[])
RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = public, pg_temp
AS $$
    SELECT array_agg(term # uuid_hash(of_workspace)) FROM unnest(of_terms) term
$$;

GRANT EXECUTE ON FUNCTION workspace_terms TO loxodon_app, loxodon_walled;
