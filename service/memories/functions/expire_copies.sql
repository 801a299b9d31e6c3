-- Expires the promoted copies, outside the wall, of memories that are about to be deleted: reads no longer show them,
-- and the clean-up deletes them like everything that has expired. The wall prevents the transaction itself from writing
-- there. The end is in the past by any clock.
CREATE OR REPLACE FUNCTION expire_copies(of_memories uuid[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    this_workspace constant uuid := current_setting('loxodon.workspace');
    copies constant uuid[] := copies_outside(of_memories);
BEGIN
    UPDATE memory SET expires_at = created_at WHERE workspace_id = this_workspace AND id = ANY (copies);
END $$;

GRANT EXECUTE ON FUNCTION expire_copies TO loxodon_app, loxodon_walled;
