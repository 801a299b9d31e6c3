"""Relations between memories, entities, and relations between entities."""
