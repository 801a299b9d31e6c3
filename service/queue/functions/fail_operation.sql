-- Trigger: an operation whose job is dead has failed, however that happened: an attempt that failed, a lease that ran
-- out because the worker was killed. The worker writes endings in no workspace, so this runs as the owner.
CREATE OR REPLACE FUNCTION fail_operation()
RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE operation o SET state = 'failed', request = '{}', finished_at = now(), error = jsonb_build_object(
        'code', 'internal_error',
        'detail', 'Its job ended in its last attempt; what it had stored stays. ' || coalesce(NEW.last_error, ''))
    WHERE o.workspace_id = NEW.workspace_id AND o.id = (NEW.payload ->> 'operation_id')::uuid AND o.finished_at IS NULL;
    RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION fail_operation() FROM PUBLIC;
