-- Trigger: refuses to commit an Idempotency-Key without the answer for repetitions, which would fail for a day.
CREATE OR REPLACE FUNCTION refuse_unanswered()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM idempotency i
               WHERE i.workspace_id = NEW.workspace_id AND i.key = NEW.key AND i.status IS NULL) THEN
        RAISE EXCEPTION 'an Idempotency-Key has no answer';
    END IF;
    RETURN NULL;
END $$;
