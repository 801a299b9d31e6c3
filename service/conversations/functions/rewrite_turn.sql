-- Removes words from a turn for good, in its text and in its row of the log, which is append-only for the app, and
-- moves the remaining spans. The caller updates `shown`.
CREATE OR REPLACE FUNCTION rewrite_turn(of_turn uuid, new_content text, new_hash text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
DECLARE
    this_workspace uuid := current_setting('loxodon.workspace')::uuid;
BEGIN
    IF is_outside('turn', of_turn) THEN
        RAISE insufficient_privilege USING MESSAGE = 'the turn lies outside the wall';
    END IF;
    UPDATE turn t SET content = new_content, content_hash = new_hash
    WHERE t.workspace_id = this_workspace AND t.id = of_turn;
    UPDATE conversation_log l SET content = new_content, content_hash = new_hash
    WHERE l.workspace_id = this_workspace AND l.turn_id = of_turn;
END $$;

GRANT EXECUTE ON FUNCTION rewrite_turn TO loxodon_app, loxodon_walled;
