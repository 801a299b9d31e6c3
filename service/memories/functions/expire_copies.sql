-- Lets the promoted copies of memories that are about to be deleted expire, where they lie outside the wall: no read
-- shows them any more, and the clean-up deletes them as it deletes everything that has expired. The wall keeps the
-- transaction itself from writing there. An end in the past, whatever the caller's clock says.
CREATE OR REPLACE FUNCTION expire_copies(of_memories uuid[])
RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    UPDATE memory SET expires_at = created_at
    WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND id = ANY ((SELECT copies_outside(of_memories))::uuid[])
$$;

REVOKE EXECUTE ON FUNCTION expire_copies(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION expire_copies(uuid[]) TO loxodon_app;
