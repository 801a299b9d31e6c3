"""Merging two entities into one, and undoing it.

The mentions and edges of the absorbed entity move to the survivor, its names become aliases, its row is deleted. If the
survivor already has an edge, only its evidence is added. `entity_merge.absorbed` keeps the previous state, so an undo
is exact except for what has been deleted since.

Lock order: one merge of a user at a time, then the memories, the entities and the edges, each by ascending id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import TextClause, text
from uuid_utils.compat import uuid7

from service.postgres.engine import Session
from service.postgres.scopes import type_parameters

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

RECORD = type_parameters(
    text(f"""
    INSERT INTO entity_merge (workspace_id, id, entity_id, absorbed_id, absorbed, created_at)
    SELECT e.workspace_id, :id, :survivor, e.id, jsonb_build_object(
        'row', to_jsonb(e),
        'aliases', (SELECT coalesce(jsonb_agg(to_jsonb(a)), '[]') FROM entity_alias a
                    WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id),
        'vectors', (SELECT coalesce(jsonb_agg(to_jsonb(v)), '[]') FROM entity_vector v
                    WHERE v.workspace_id = e.workspace_id AND v.entity_id = e.id),
        'links', (SELECT coalesce(jsonb_agg(to_jsonb(l)), '[]') FROM memory_entity l
                  WHERE l.workspace_id = e.workspace_id AND l.entity_id = e.id),
        'new_links', (SELECT coalesce(jsonb_agg(l.memory_id), '[]') FROM memory_entity l
                      WHERE l.workspace_id = e.workspace_id AND l.entity_id = e.id AND NOT EXISTS (
                          SELECT FROM memory_entity s WHERE s.workspace_id = e.workspace_id
                              AND s.entity_id = :survivor AND s.memory_id = l.memory_id)),
        'edges', (SELECT coalesce(jsonb_agg(to_jsonb(g)), '[]') FROM entity_edge g
                  WHERE g.workspace_id = e.workspace_id AND (g.source_id = e.id OR g.target_id = e.id)),
        'moved', (SELECT coalesce(jsonb_agg(t.id), '[]') FROM ({MOVED}) t WHERE t.existing IS NULL AND NOT t.is_loop),
        'evidence', (SELECT coalesce(jsonb_agg(to_jsonb(x)), '[]') FROM ({MOVED}) t JOIN entity_edge_source x
                     ON x.workspace_id = :workspace AND x.edge_id = t.id WHERE t.existing IS NOT NULL OR t.is_loop),
        'new_evidence', (SELECT coalesce(jsonb_agg(
                             jsonb_build_object('edge_id', t.existing, 'memory_id', x.memory_id)), '[]')
                         FROM ({MOVED}) t JOIN entity_edge_source x
                             ON x.workspace_id = :workspace AND x.edge_id = t.id
                         WHERE t.existing IS NOT NULL AND NOT EXISTS (
                             SELECT FROM entity_edge_source s WHERE s.workspace_id = :workspace
                                 AND s.edge_id = t.existing AND s.memory_id = x.memory_id)),
        'merges', (SELECT coalesce(jsonb_agg(to_jsonb(o)), '[]') FROM entity_merge o
                   WHERE o.workspace_id = e.workspace_id AND o.entity_id = e.id)), :now
    FROM entity e WHERE e.workspace_id = :workspace AND e.id = :absorbed
    """)  # noqa: S608 - our own parts
)

MOVE_LINKS = text("""
    INSERT INTO memory_entity (workspace_id, memory_id, entity_id, extracted_by)
    SELECT workspace_id, memory_id, :survivor, extracted_by FROM memory_entity
    WHERE workspace_id = :workspace AND entity_id = :absorbed ORDER BY memory_id ON CONFLICT DO NOTHING
""")
LOCK_EDGES = text("""
    SELECT FROM entity_edge e
    WHERE e.workspace_id = :workspace AND (e.source_id = :absorbed OR e.target_id = :absorbed)
    ORDER BY e.id FOR UPDATE
""")
MOVE_EVIDENCE = text(f"""
    WITH moved AS ({MOVED}), locked AS (  -- an edge may be deleted this moment, with its other end
        SELECT e.id FROM entity_edge e WHERE e.workspace_id = :workspace AND e.id IN (SELECT existing FROM moved)
        ORDER BY e.id FOR KEY SHARE
    )
    INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by)
    SELECT x.workspace_id, locked.id, x.memory_id, x.extracted_by FROM moved t JOIN locked ON locked.id = t.existing
    JOIN entity_edge_source x ON x.workspace_id = :workspace AND x.edge_id = t.id
    ORDER BY locked.id, x.memory_id ON CONFLICT DO NOTHING
""")  # noqa: S608 - our own parts
MOVE_EDGES = text(f"""
    UPDATE entity_edge g SET source_id = t.source_id, target_id = t.target_id FROM ({MOVED}) t
    WHERE g.workspace_id = :workspace AND g.id = t.id AND t.existing IS NULL AND NOT t.is_loop
""")  # noqa: S608 - our own parts

# The remaining edges are deleted with the row.
DELETE_ABSORBED = text("DELETE FROM entity WHERE workspace_id = :workspace AND id = :absorbed")
# Its names become aliases of the survivor, unless a third entity has them.
ADD_ALIASES = text("""
    WITH names AS (
        SELECT m.absorbed -> 'row' ->> 'name' AS alias, m.absorbed -> 'row' ->> 'name_key' AS key FROM entity_merge m
        WHERE m.workspace_id = :workspace AND m.id = :id
        UNION ALL
        SELECT a ->> 'alias', a ->> 'alias_key' FROM entity_merge m
        CROSS JOIN LATERAL jsonb_array_elements(m.absorbed -> 'aliases') a
        WHERE m.workspace_id = :workspace AND m.id = :id
    ), added AS (
        INSERT INTO entity_alias (workspace_id, entity_id, alias_key, alias, user_id, channel, created_at)
        SELECT e.workspace_id, e.id, n.key, n.alias, e.user_id, e.channel, clock_timestamp()
        FROM names n JOIN entity e ON e.workspace_id = :workspace AND e.id = :survivor AND e.name_key <> n.key
        ORDER BY n.key ON CONFLICT DO NOTHING RETURNING alias_key
    )
    UPDATE entity_merge SET absorbed = absorbed || jsonb_build_object('new_aliases',
        (SELECT coalesce(jsonb_agg(alias_key), '[]') FROM added))
    WHERE workspace_id = :workspace AND id = :id
""")
UPDATE_SURVIVOR = type_parameters(
    text("""
    UPDATE entity e SET aliases = coalesce(
            (SELECT array_agg(a.alias ORDER BY a.created_at, a.alias_key) FROM entity_alias a
             WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id), '{}'),
        version = e.version + 1, updated_at = :now
    WHERE e.workspace_id = :workspace AND e.id = :survivor
""")
)

# -- undo -----------------------------------------------------------------------------------------------------------

GET = text("""
    SELECT id, entity_id, absorbed_id, created_at, undone_at, absorbed -> 'row' ->> 'name' AS name,
           jsonb_array_length(absorbed -> 'new_links') AS mentions, jsonb_array_length(absorbed -> 'moved') AS relations
    FROM entity_merge WHERE workspace_id = :workspace AND id = :id
""")
LOCK_LINKED_MEMORIES = text("""
    SELECT m.id FROM memory m WHERE m.workspace_id = :workspace AND m.id IN (
        SELECT (l ->> 'memory_id')::uuid FROM entity_merge g
        CROSS JOIN LATERAL jsonb_array_elements((g.absorbed -> 'links') || (g.absorbed -> 'evidence')) l
        WHERE g.workspace_id = :workspace AND g.id = :id)
    ORDER BY m.id FOR KEY SHARE
""")
LOCK_ENTITIES = text("""
    SELECT e.id FROM entity e WHERE e.workspace_id = :workspace AND e.id IN (
        SELECT unnest(ARRAY[(x ->> 'source_id')::uuid, (x ->> 'target_id')::uuid, g.entity_id]) FROM entity_merge g
        LEFT JOIN LATERAL jsonb_array_elements(g.absorbed -> 'edges') x ON true
        WHERE g.workspace_id = :workspace AND g.id = :id)
    ORDER BY e.id FOR UPDATE
""")
REMOVE_ALIASES = text("""
    DELETE FROM entity_alias a USING entity_merge g
    WHERE g.workspace_id = :workspace AND g.id = :id AND a.workspace_id = :workspace AND a.entity_id = g.entity_id
      AND g.absorbed -> 'new_aliases' ? a.alias_key
""")
RESTORE_ENTITY = text("""
    INSERT INTO entity SELECT r.*
    FROM entity_merge g CROSS JOIN LATERAL jsonb_populate_record(NULL::entity, g.absorbed -> 'row') r
    WHERE g.workspace_id = :workspace AND g.id = :id
    ON CONFLICT DO NOTHING RETURNING id
""")
REMOVE_LINKS = text("""
    DELETE FROM memory_entity l USING entity_merge g
    WHERE g.workspace_id = :workspace AND g.id = :id AND l.workspace_id = :workspace AND l.entity_id = g.entity_id
      AND g.absorbed -> 'new_links' ? l.memory_id::text
""")
# Only the end that the merge replaced: the other end may have been merged into a third entity since.
MOVE_EDGES_BACK = text("""
    UPDATE entity_edge e
    SET source_id = CASE WHEN r.source_id = g.absorbed_id THEN r.source_id ELSE e.source_id END,
        target_id = CASE WHEN r.target_id = g.absorbed_id THEN r.target_id ELSE e.target_id END
    FROM entity_merge g CROSS JOIN LATERAL jsonb_populate_recordset(NULL::entity_edge, g.absorbed -> 'edges') r
    WHERE g.workspace_id = :workspace AND g.id = :id AND g.absorbed -> 'moved' ? r.id::text
      AND e.workspace_id = :workspace AND e.id = r.id
""")
REMOVE_EVIDENCE = text("""
    DELETE FROM entity_edge_source x
    USING entity_merge g CROSS JOIN LATERAL jsonb_array_elements(g.absorbed -> 'new_evidence') n
    WHERE g.workspace_id = :workspace AND g.id = :id AND x.workspace_id = :workspace
      AND x.edge_id = (n ->> 'edge_id')::uuid AND x.memory_id = (n ->> 'memory_id')::uuid
""")
MEMORY_IS_THERE = "EXISTS (SELECT FROM memory m WHERE m.workspace_id = g.workspace_id AND m.id = r.memory_id)"
EDGE_IS_THERE = "EXISTS (SELECT FROM entity_edge e WHERE e.workspace_id = g.workspace_id AND e.id = r.edge_id)"
ENDS_ARE_THERE = """NOT g.absorbed -> 'moved' ? r.id::text AND 2 = (
    SELECT count(*) FROM entity o WHERE o.workspace_id = g.workspace_id AND o.id IN (r.source_id, r.target_id))"""


def _restore(table: str, kept_as: str, where: str = "true") -> TextClause:
    return text(
        f"""
        INSERT INTO {table} SELECT r.* FROM entity_merge g
        CROSS JOIN LATERAL jsonb_populate_recordset(NULL::{table}, g.absorbed -> '{kept_as}') r
        WHERE g.workspace_id = :workspace AND g.id = :id AND {where} ON CONFLICT DO NOTHING
        """  # noqa: S608 - our own parts
    )


RESTORE = (
    _restore("entity_alias", "aliases"),
    _restore("entity_vector", "vectors"),
    _restore("memory_entity", "links", MEMORY_IS_THERE),
    MOVE_EDGES_BACK,
    _restore("entity_edge", "edges", ENDS_ARE_THERE),
    REMOVE_EVIDENCE,
    _restore("entity_edge_source", "evidence", f"{MEMORY_IS_THERE} AND {EDGE_IS_THERE}"),
    _restore("entity_merge", "merges"),
)
UPDATE_ALIASES = text("""
    UPDATE entity e SET aliases = coalesce(
        (SELECT array_agg(a.alias ORDER BY a.created_at, a.alias_key) FROM entity_alias a
         WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id), '{}')
    WHERE e.workspace_id = :workspace AND e.id = :absorbed
""")
MARK_UNDONE = type_parameters(
    text("UPDATE entity_merge SET undone_at = :now WHERE workspace_id = :workspace AND id = :id")
)

# After a purge: if all memories that named the absorbed entity are gone, its names are deleted as aliases and in the
# record of the merge, because they are words of those memories.
FORGET = text("""
    WITH forgotten AS (
        SELECT g.workspace_id, g.id, g.entity_id, g.absorbed -> 'new_aliases' AS names FROM entity_merge g
        WHERE g.workspace_id = :workspace AND g.absorbed -> 'row' ->> 'extracted_by' <> 'caller'
          AND jsonb_array_length(g.absorbed -> 'links') > 0 AND NOT EXISTS (
              SELECT FROM jsonb_array_elements(g.absorbed -> 'links') l
              JOIN memory m ON m.workspace_id = g.workspace_id AND m.id = (l ->> 'memory_id')::uuid)
    ), aliases AS (
        DELETE FROM entity_alias a USING forgotten f
        WHERE a.workspace_id = f.workspace_id AND a.entity_id = f.entity_id AND f.names ? a.alias_key
    ), merges AS (
        DELETE FROM entity_merge g USING forgotten f WHERE g.workspace_id = f.workspace_id AND g.id = f.id
    )
    UPDATE entity e SET aliases = coalesce(
        (SELECT array_agg(a.alias ORDER BY a.created_at, a.alias_key) FROM entity_alias a, forgotten f
         WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id AND f.entity_id = e.id
           AND NOT f.names ? a.alias_key), '{}')
    WHERE e.workspace_id = :workspace AND e.id IN (SELECT entity_id FROM forgotten)
""")


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge with the numbers of mentions and relations that moved. `name`: of the absorbed entity."""

    id: UUID
    entity_id: UUID
    absorbed_id: UUID
    name: str
    mentions: int
    relations: int
    created_at: datetime
    undone_at: datetime | None


async def lock_merges(session: Session, workspace_id: UUID, user_id: str | None) -> None:
    """Waits for other merges of the user."""
    await session.execute(LOCK_MERGES, {"name": f"{workspace_id}|{user_id or ''}"})


async def lock_memories(session: Session, workspace_id: UUID, absorbed: UUID) -> None:
    """Locks the memories that a merge writes to; before the entities are locked."""
    await session.execute(LOCK_MEMORIES, {"workspace": workspace_id, "absorbed": absorbed})


async def merge(session: Session, workspace_id: UUID, absorbed: UUID, survivor: UUID, *, now: datetime) -> UUID:
    """Merges `absorbed` into `survivor`, both locked; returns the id of the merge."""
    values = {"workspace": workspace_id, "id": uuid7(), "absorbed": absorbed, "survivor": survivor}
    await session.execute(LOCK_EDGES, {"workspace": workspace_id, "absorbed": absorbed})
    await session.execute(RECORD, {**values, "now": now})
    ends = {"workspace": workspace_id, "absorbed": absorbed, "survivor": survivor}
    for statement in (MOVE_LINKS, MOVE_EVIDENCE, MOVE_EDGES):
        await session.execute(statement, ends)
    await session.execute(DELETE_ABSORBED, {"workspace": workspace_id, "absorbed": absorbed})
    await session.execute(ADD_ALIASES, {"workspace": workspace_id, "id": values["id"], "survivor": survivor})
    await session.execute(UPDATE_SURVIVOR, {"workspace": workspace_id, "survivor": survivor, "now": now})
    return values["id"]


async def get(session: Session, workspace_id: UUID, merge_id: UUID) -> Merge | None:
    row = (await session.execute(GET, {"workspace": workspace_id, "id": merge_id})).one_or_none()
    return Merge(**row._mapping) if row else None


async def lock_for_undo(session: Session, workspace_id: UUID, merge_id: UUID) -> None:
    """Locks everything that an undo changes: memories, then entities."""
    values = {"workspace": workspace_id, "id": merge_id}
    await session.execute(LOCK_LINKED_MEMORIES, values)
    await session.execute(LOCK_ENTITIES, values)


async def undo(session: Session, workspace_id: UUID, done: Merge, *, now: datetime) -> bool:
    """Restores the absorbed entity; False, without further changes, if another one has its name now."""
    values = {"workspace": workspace_id, "id": done.id}
    await session.execute(REMOVE_ALIASES, values)
    if await session.scalar(RESTORE_ENTITY, values) is None:
        return False
    await session.execute(REMOVE_LINKS, values)
    for statement in RESTORE:
        await session.execute(statement, values)
    await session.execute(UPDATE_ALIASES, {"workspace": workspace_id, "absorbed": done.absorbed_id})
    await session.execute(UPDATE_SURVIVOR, {"workspace": workspace_id, "survivor": done.entity_id, "now": now})
    await session.execute(MARK_UNDONE, {**values, "now": now})
    return True


async def forget_names(session: Session, workspace_id: UUID) -> None:
    """Deletes names in merges of entities that only purged memories named."""
    await session.execute(FORGET, {"workspace": workspace_id})
