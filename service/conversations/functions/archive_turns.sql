-- Trigger: archives and restores turns with their conversation.
CREATE OR REPLACE FUNCTION archive_turns() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE turn SET archived = NEW.archived WHERE workspace_id = NEW.workspace_id AND conversation_id = NEW.id;
    RETURN NULL;
END
$$;
