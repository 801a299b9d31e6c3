CREATE OR REPLACE TRIGGER drop_unsupported_edge AFTER DELETE ON entity_edge_source
    FOR EACH ROW EXECUTE FUNCTION drop_unsupported_edge();
