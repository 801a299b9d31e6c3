-- Deletes at most `batch_size` working items of all workspaces that have expired at time `at`; returns how many.
CREATE OR REPLACE FUNCTION sweep_working(at timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT delete_due('working_item', 'expires_at', at, batch_size)
$$;

GRANT EXECUTE ON FUNCTION sweep_working TO loxodon_worker;
