-- Trigger: fails an operation when its job is dead, whether an attempt failed or the lease ended because the worker was
-- killed. The worker records endings without a workspace, so this runs as the owner.
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
