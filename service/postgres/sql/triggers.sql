CREATE OR REPLACE TRIGGER drop_unsupported_edge AFTER DELETE ON entity_edge_source
    FOR EACH ROW EXECUTE FUNCTION drop_unsupported_edge();

CREATE OR REPLACE TRIGGER archive_turns AFTER UPDATE OF archived ON conversation
    FOR EACH ROW WHEN (NEW.archived <> OLD.archived) EXECUTE FUNCTION archive_turns();

CREATE OR REPLACE TRIGGER fail_operation AFTER UPDATE OF state ON job
    FOR EACH ROW WHEN (NEW.state = 'dead' AND NEW.payload ? 'operation_id') EXECUTE FUNCTION fail_operation();

CREATE CONSTRAINT TRIGGER refuse_unanswered AFTER INSERT OR UPDATE ON idempotency DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.status IS NULL) EXECUTE FUNCTION refuse_unanswered();
