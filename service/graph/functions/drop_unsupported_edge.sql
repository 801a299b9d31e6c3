-- Trigger: deletes a relation that was extracted from texts together with the last memory that is evidence for it,
-- however that memory is deleted (request, cascade, erasure). The edge is locked before its evidence is counted, so
-- that concurrent deletes of the last two memories do not both see the other's. A transaction that deletes many
-- memories locks their edges by ascending id first.
CREATE OR REPLACE FUNCTION drop_unsupported_edge()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM FROM entity_edge e WHERE e.workspace_id = OLD.workspace_id AND e.id = OLD.edge_id FOR UPDATE;
    DELETE FROM entity_edge e
    WHERE e.workspace_id = OLD.workspace_id AND e.id = OLD.edge_id AND e.extracted_by <> 'caller'
      AND NOT EXISTS (SELECT FROM entity_edge_source s WHERE s.workspace_id = OLD.workspace_id
                      AND s.edge_id = OLD.edge_id);
    RETURN NULL;
END $$;
