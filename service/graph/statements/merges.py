"""Merging one entity into another.

The mentions and edges of the absorbed entity move to the survivor, its names become aliases, its row is deleted. If the
survivor already has an edge, only its evidence is added.

Lock order: one merge of a user at a time, then the memories, the entities and the edges, each by ascending id.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from service.postgres.engine import Session
from service.postgres.template import typed_text

# Two merges of entities with an edge between them would each see half of the other's changes.
LOCK_MERGES = text("SELECT pg_advisory_xact_lock(hashtextextended('merge|' || CAST(:name AS text), 0))")

# The memories that get a new row: a mention, or evidence of an edge that coincides with another.
LOCK_MEMORIES = text("""
    SELECT m.id FROM memory m WHERE m.workspace_id = :workspace AND m.id IN (
        SELECT me.memory_id FROM memory_entity me WHERE me.workspace_id = :workspace AND me.entity_id = :absorbed
        UNION ALL
        SELECT x.memory_id FROM entity_edge e JOIN entity_edge_source x
            ON x.workspace_id = e.workspace_id AND x.edge_id = e.id
        WHERE e.workspace_id = :workspace AND (e.source_id = :absorbed OR e.target_id = :absorbed))
    ORDER BY m.id FOR KEY SHARE
""")

# The edges of the absorbed entity: their ends once it is replaced, the edge that exists there already, and whether it
# would lead from the survivor to itself.
MOVED = """
    SELECT e.id, x.source_id, x.target_id, existing.id AS existing, x.source_id = x.target_id AS is_loop
    FROM entity_edge e CROSS JOIN LATERAL (
        SELECT CASE WHEN e.source_id = :absorbed THEN CAST(:survivor AS uuid) ELSE e.source_id END AS source_id,
               CASE WHEN e.target_id = :absorbed THEN CAST(:survivor AS uuid) ELSE e.target_id END AS target_id
    ) x LEFT JOIN entity_edge existing ON existing.workspace_id = e.workspace_id AND existing.source_id = x.source_id
        AND existing.target_id = x.target_id AND existing.rel_type = e.rel_type
    WHERE e.workspace_id = :workspace AND (e.source_id = :absorbed OR e.target_id = :absorbed)
"""

MOVE_LINKS = text("""
    INSERT INTO memory_entity (workspace_id, memory_id, entity_id, extracted_by)
    SELECT workspace_id, memory_id, :survivor, extracted_by FROM memory_entity
    WHERE workspace_id = :workspace AND entity_id = :absorbed ORDER BY memory_id ON CONFLICT DO NOTHING
""")
# Also those that exist already: they could be deleted with their other end.
LOCK_EDGES = text(f"""
    SELECT FROM entity_edge e
    WHERE e.workspace_id = :workspace
      AND (e.source_id = :absorbed OR e.target_id = :absorbed OR e.id IN (SELECT existing FROM ({MOVED}) moved))
    ORDER BY e.id FOR UPDATE
""")  # noqa: S608 - no user input
MOVE_EVIDENCE = text(f"""
    INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by)
    SELECT x.workspace_id, t.existing, x.memory_id, x.extracted_by FROM ({MOVED}) t
    JOIN entity_edge_source x ON x.workspace_id = :workspace AND x.edge_id = t.id
    WHERE t.existing IS NOT NULL ORDER BY t.existing, x.memory_id ON CONFLICT DO NOTHING
""")  # noqa: S608 - no user input
MOVE_EDGES = text(f"""
    UPDATE entity_edge g SET source_id = t.source_id, target_id = t.target_id FROM ({MOVED}) t
    WHERE g.workspace_id = :workspace AND g.id = t.id AND t.existing IS NULL AND NOT t.is_loop
""")  # noqa: S608 - no user input

# `named_by`: the memories whose words the name is; a purge of all of them erases it.
NAMES = text("""
    SELECT a.alias_key AS key, a.alias, a.named_by FROM entity_alias a
    WHERE a.workspace_id = :workspace AND a.entity_id = :absorbed
    UNION ALL
    SELECT e.name_key, e.name, CASE WHEN e.extracted_by <> 'caller' THEN nullif(ARRAY(
        SELECT l.memory_id FROM memory_entity l WHERE l.workspace_id = e.workspace_id AND l.entity_id = e.id), '{}') END
    FROM entity e WHERE e.workspace_id = :workspace AND e.id = :absorbed ORDER BY key
""")
HAS_HIDDEN_EDGES = text("""
    SELECT is_outside('relations of an entity', id) FROM entity WHERE workspace_id = :workspace AND id = :absorbed
""")
# The remaining edges are deleted with the row.
DELETE_ABSORBED = text("DELETE FROM entity WHERE workspace_id = :workspace AND id = :absorbed")
# Unless a third entity has the name.
ADD_ALIAS = text("""
    INSERT INTO entity_alias (workspace_id, entity_id, alias_key, alias, user_id, channel, named_by, created_at)
    SELECT e.workspace_id, e.id, :key, :alias, e.user_id, e.channel, CAST(:named_by AS uuid[]), clock_timestamp()
    FROM entity e WHERE e.workspace_id = :workspace AND e.id = :survivor AND e.name_key <> :key
    ON CONFLICT DO NOTHING
""")
UPDATE_SURVIVOR = typed_text("""
    UPDATE entity e SET version = e.version + 1, updated_at = :now
    WHERE e.workspace_id = :workspace AND e.id = :survivor
""")

FORGET = text("""
    DELETE FROM entity_alias a WHERE a.workspace_id = :workspace AND a.named_by IS NOT NULL AND NOT EXISTS (
        SELECT FROM memory m WHERE m.workspace_id = a.workspace_id AND m.id = ANY (a.named_by))
""")


async def lock_merges(session: Session, user_id: str | None) -> None:
    """Waits for other merges of the user."""
    await session.execute(LOCK_MERGES, {"name": f"{session.workspace_id}|{user_id or ''}"})


async def lock_memories(session: Session, absorbed: UUID) -> None:
    """Locks the memories that a merge writes to; before the entities are locked."""
    await session.execute(LOCK_MEMORIES, {"absorbed": absorbed})


async def has_hidden_edges(session: Session, absorbed: UUID) -> bool:
    """Whether the entity has an edge outside the wall, which could not be moved."""
    return bool(await session.scalar(HAS_HIDDEN_EDGES, {"absorbed": absorbed}))


async def merge(session: Session, absorbed: UUID, survivor: UUID, *, now: datetime) -> None:
    """Merges `absorbed` into `survivor`, both locked."""
    source = {"absorbed": absorbed}
    target = {"survivor": survivor}
    await session.execute(LOCK_EDGES, {**source, **target})
    for statement in (MOVE_LINKS, MOVE_EVIDENCE, MOVE_EDGES):
        await session.execute(statement, {**source, **target})
    names = (await session.execute(NAMES, source)).mappings().all()
    await session.execute(DELETE_ABSORBED, source)
    for name in names:
        await session.execute(ADD_ALIAS, {**target, **name})
    await session.execute(UPDATE_SURVIVOR, {**target, "now": now})


async def forget_names(session: Session) -> None:
    """After a purge, deletes the aliases that are words of purged memories alone."""
    await session.execute(FORGET)
