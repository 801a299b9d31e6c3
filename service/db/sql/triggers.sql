CREATE OR REPLACE TRIGGER unsaid AFTER DELETE ON entity_edge_source
    FOR EACH ROW EXECUTE FUNCTION drop_unsaid_edge();
