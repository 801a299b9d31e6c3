"""How do two entities become one, and two again?

The absorbed entity's mentions and edges go over to the other, its names become aliases, its row goes. An edge that the
other has already is not doubled: its evidence is added. `absorbed` keeps all of that as it was, so undo is exact as
far as the world still holds it: memories that went meanwhile stay gone.

Locks: one merge of a user's at a time, then the memories, the entities and the edges, each by ascending id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from uuid_utils.compat import uuid7

from service.db.conditions import typed
from service.db.engine import Session

# Two merges that meet in an edge would each see the other's half of it.
ONE = text("SELECT pg_advisory_xact_lock(hashtextextended('merge|' || CAST(:name AS text), 0))")

# Whatever gets a new row that points at a memory: mentions, and evidence of edges that fall together.
LOCK_MEMORIES = text("""
    SELECT m.id FROM memory m WHERE m.workspace_id = :workspace AND m.id IN (
        SELECT me.memory_id FROM memory_entity me WHERE me.workspace_id = :workspace AND me.entity_id = :absorbed
        UNION ALL
        SELECT x.memory_id FROM entity_edge e JOIN entity_edge_source x
            ON x.workspace_id = e.workspace_id AND x.edge_id = e.id
        WHERE e.workspace_id = :workspace AND (e.source_id = :absorbed OR e.target_id = :absorbed))
    ORDER BY m.id FOR KEY SHARE
""")

EDGES = "(e.source_id = :absorbed OR e.target_id = :absorbed)"

# Of each edge: where it leads once its end is exchanged, and the edge that stands there already.
TURNED = f"""
    SELECT e.id, x.source_id, x.target_id, there.id AS there, x.source_id = x.target_id AS closed
    FROM entity_edge e CROSS JOIN LATERAL (
        SELECT CASE WHEN e.source_id = :absorbed THEN CAST(:survivor AS uuid) ELSE e.source_id END AS source_id,
               CASE WHEN e.target_id = :absorbed THEN CAST(:survivor AS uuid) ELSE e.target_id END AS target_id
    ) x LEFT JOIN entity_edge there ON there.workspace_id = e.workspace_id AND there.source_id = x.source_id
        AND there.target_id = x.target_id AND there.rel_type = e.rel_type
    WHERE e.workspace_id = :workspace AND {EDGES}
"""  # noqa: S608 - our own parts

KEEP = typed(
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
                          SELECT FROM memory_entity own WHERE own.workspace_id = e.workspace_id
                              AND own.entity_id = :survivor AND own.memory_id = l.memory_id)),
        'edges', (SELECT coalesce(jsonb_agg(to_jsonb(g)), '[]') FROM entity_edge g
                  WHERE g.workspace_id = e.workspace_id AND (g.source_id = e.id OR g.target_id = e.id)),
        'moved', (SELECT coalesce(jsonb_agg(t.id), '[]') FROM ({TURNED}) t WHERE t.there IS NULL AND NOT t.closed),
        'evidence', (SELECT coalesce(jsonb_agg(to_jsonb(x)), '[]') FROM ({TURNED}) t JOIN entity_edge_source x
                     ON x.workspace_id = :workspace AND x.edge_id = t.id WHERE t.there IS NOT NULL OR t.closed),
        'new_evidence', (SELECT coalesce(jsonb_agg(
                             jsonb_build_object('edge_id', t.there, 'memory_id', x.memory_id)), '[]')
                         FROM ({TURNED}) t JOIN entity_edge_source x
                             ON x.workspace_id = :workspace AND x.edge_id = t.id
                         WHERE t.there IS NOT NULL AND NOT EXISTS (
                             SELECT FROM entity_edge_source own WHERE own.workspace_id = :workspace
                                 AND own.edge_id = t.there AND own.memory_id = x.memory_id)),
        'merges', (SELECT coalesce(jsonb_agg(to_jsonb(o)), '[]') FROM entity_merge o
                   WHERE o.workspace_id = e.workspace_id AND o.entity_id = e.id)), :now
    FROM entity e WHERE e.workspace_id = :workspace AND e.id = :absorbed
    """)  # noqa: S608 - our own parts
)

LINKS = text("""
    INSERT INTO memory_entity (workspace_id, memory_id, entity_id, extracted_by)
    SELECT workspace_id, memory_id, :survivor, extracted_by FROM memory_entity
    WHERE workspace_id = :workspace AND entity_id = :absorbed ORDER BY memory_id ON CONFLICT DO NOTHING
""")
LOCK_EDGES = text("""
    SELECT FROM entity_edge e
    WHERE e.workspace_id = :workspace AND (e.source_id = :absorbed OR e.target_id = :absorbed)
    ORDER BY e.id FOR UPDATE
""")
EVIDENCE = text(f"""
    WITH turned AS ({TURNED}), there AS (  -- an edge may go this moment, with its other end
        SELECT e.id FROM entity_edge e WHERE e.workspace_id = :workspace AND e.id IN (SELECT there FROM turned)
        ORDER BY e.id FOR KEY SHARE
    )
    INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by)
    SELECT x.workspace_id, there.id, x.memory_id, x.extracted_by FROM turned t JOIN there ON there.id = t.there
    JOIN entity_edge_source x ON x.workspace_id = :workspace AND x.edge_id = t.id
    ORDER BY there.id, x.memory_id ON CONFLICT DO NOTHING
""")  # noqa: S608 - our own parts
TURN = text(f"""
    UPDATE entity_edge g SET source_id = t.source_id, target_id = t.target_id FROM ({TURNED}) t
    WHERE g.workspace_id = :workspace AND g.id = t.id AND t.there IS NULL AND NOT t.closed
""")  # noqa: S608 - our own parts

# What is left of the edges goes with the row. Its names become the other's, where no third one bears them.
REMOVE = text("DELETE FROM entity WHERE workspace_id = :workspace AND id = :absorbed")
NAMES = text("""
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
REFRESH = typed(
    text("""
    UPDATE entity e SET aliases = coalesce(
            (SELECT array_agg(a.alias ORDER BY a.created_at, a.alias_key) FROM entity_alias a
             WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id), '{}'),
        version = e.version + 1, updated_at = :now
    WHERE e.workspace_id = :workspace AND e.id = :survivor
""")
)

# -- two again ----------------------------------------------------------------------------------------------------

GET = text("""
    SELECT id, entity_id, absorbed_id, created_at, undone_at, absorbed -> 'row' ->> 'name' AS name,
           jsonb_array_length(absorbed -> 'new_links') AS mentions, jsonb_array_length(absorbed -> 'moved') AS relations
    FROM entity_merge WHERE workspace_id = :workspace AND id = :id
""")
LOCK_LINKED = text("""
    SELECT m.id FROM memory m WHERE m.workspace_id = :workspace AND m.id IN (
        SELECT (l ->> 'memory_id')::uuid FROM entity_merge g
        CROSS JOIN LATERAL jsonb_array_elements((g.absorbed -> 'links') || (g.absorbed -> 'evidence')) l
        WHERE g.workspace_id = :workspace AND g.id = :id)
    ORDER BY m.id FOR KEY SHARE
""")
FAR_ENDS = text("""
    SELECT e.id FROM entity e WHERE e.workspace_id = :workspace AND e.id IN (
        SELECT unnest(ARRAY[(x ->> 'source_id')::uuid, (x ->> 'target_id')::uuid, g.entity_id]) FROM entity_merge g
        LEFT JOIN LATERAL jsonb_array_elements(g.absorbed -> 'edges') x ON true
        WHERE g.workspace_id = :workspace AND g.id = :id)
    ORDER BY e.id FOR UPDATE
""")
OF_MERGE = "FROM entity_merge g {more} WHERE g.workspace_id = :workspace AND g.id = :id"


def _restored(table: str, part: str, condition: str = "true") -> Any:
    rows = f"CROSS JOIN LATERAL jsonb_populate_recordset(NULL::{table}, g.absorbed -> '{part}') r"
    return text(f"INSERT INTO {table} SELECT r.* {OF_MERGE.format(more=rows)} AND {condition} ON CONFLICT DO NOTHING")


NO_ALIASES = text(
    "DELETE FROM entity_alias a USING (SELECT g.entity_id, g.absorbed "  # noqa: S608 - OF_MERGE is ours
    + OF_MERGE.format(more="")
    + """) g WHERE a.workspace_id = :workspace AND a.entity_id = g.entity_id
        AND g.absorbed -> 'new_aliases' ? a.alias_key"""
)
ROW = text(
    "INSERT INTO entity SELECT r.* "
    + OF_MERGE.format(more="CROSS JOIN LATERAL jsonb_populate_record(NULL::entity, g.absorbed -> 'row') r")
    + " ON CONFLICT DO NOTHING RETURNING id"
)
NO_LINKS = text(
    "DELETE FROM memory_entity l USING (SELECT g.entity_id, g.absorbed "  # noqa: S608 - OF_MERGE is ours
    + OF_MERGE.format(more="")
    + """) g WHERE l.workspace_id = :workspace AND l.entity_id = g.entity_id
        AND g.absorbed -> 'new_links' ? l.memory_id::text"""
)
TURN_BACK = text(
    # only the end that was exchanged: the other may have become part of a third entity since
    "UPDATE entity_edge e SET source_id = CASE WHEN r.source_id = r.absorbed_id THEN r.source_id ELSE e.source_id END, "  # noqa: S608
    "target_id = CASE WHEN r.target_id = r.absorbed_id THEN r.target_id ELSE e.target_id END "
    "FROM (SELECT r.*, g.absorbed_id "
    + OF_MERGE.format(more="CROSS JOIN LATERAL jsonb_populate_recordset(NULL::entity_edge, g.absorbed -> 'edges') r")
    + " AND g.absorbed -> 'moved' ? r.id::text) r WHERE e.workspace_id = :workspace AND e.id = r.id"
)
NO_EVIDENCE = text(
    "DELETE FROM entity_edge_source x USING (SELECT (n ->> 'edge_id')::uuid AS edge_id, "  # noqa: S608
    "(n ->> 'memory_id')::uuid AS memory_id "
    + OF_MERGE.format(more="CROSS JOIN LATERAL jsonb_array_elements(g.absorbed -> 'new_evidence') n")
    + ") n WHERE x.workspace_id = :workspace AND x.edge_id = n.edge_id AND x.memory_id = n.memory_id"
)
ENDS_THERE = """2 = (SELECT count(*) FROM entity o WHERE o.workspace_id = g.workspace_id
    AND o.id IN (r.source_id, r.target_id))"""
MEMORY_THERE = "EXISTS (SELECT FROM memory m WHERE m.workspace_id = g.workspace_id AND m.id = r.memory_id)"
EDGE_THERE = "EXISTS (SELECT FROM entity_edge e WHERE e.workspace_id = g.workspace_id AND e.id = r.edge_id)"
BACK = (
    _restored("entity_alias", "aliases"),
    _restored("entity_vector", "vectors"),
    _restored("memory_entity", "links", MEMORY_THERE),
    TURN_BACK,
    _restored("entity_edge", "edges", f"NOT g.absorbed -> 'moved' ? r.id::text AND {ENDS_THERE}"),
    NO_EVIDENCE,
    _restored("entity_edge_source", "evidence", f"{MEMORY_THERE} AND {EDGE_THERE}"),
    _restored("entity_merge", "merges"),
)
ALIASES_OF = text("""
    UPDATE entity e SET aliases = coalesce(
        (SELECT array_agg(a.alias ORDER BY a.created_at, a.alias_key) FROM entity_alias a
         WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id), '{}')
    WHERE e.workspace_id = :workspace AND e.id = :absorbed
""")
MARK = typed(text("UPDATE entity_merge SET undone_at = :now WHERE workspace_id = :workspace AND id = :id"))

# Once all memories that named the absorbed entity are erased, its names are their words: as aliases, and in the record.
FADE = text("""
    WITH faded AS (
        SELECT g.workspace_id, g.id, g.entity_id, g.absorbed -> 'new_aliases' AS names FROM entity_merge g
        WHERE g.workspace_id = :workspace AND g.absorbed -> 'row' ->> 'extracted_by' <> 'caller'
          AND jsonb_array_length(g.absorbed -> 'links') > 0 AND NOT EXISTS (
              SELECT FROM jsonb_array_elements(g.absorbed -> 'links') l
              JOIN memory m ON m.workspace_id = g.workspace_id AND m.id = (l ->> 'memory_id')::uuid)
    ), unnamed AS (
        DELETE FROM entity_alias a USING faded f
        WHERE a.workspace_id = f.workspace_id AND a.entity_id = f.entity_id AND f.names ? a.alias_key
    ), gone AS (
        DELETE FROM entity_merge g USING faded f WHERE g.workspace_id = f.workspace_id AND g.id = f.id
    )
    UPDATE entity e SET aliases = coalesce(
        (SELECT array_agg(a.alias ORDER BY a.created_at, a.alias_key) FROM entity_alias a, faded f
         WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id AND f.entity_id = e.id
           AND NOT f.names ? a.alias_key), '{}')
    WHERE e.workspace_id = :workspace AND e.id IN (SELECT entity_id FROM faded)
""")


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge did: how many mentions and relations went over. `name`: of the absorbed entity."""

    id: UUID
    entity_id: UUID
    absorbed_id: UUID
    name: str
    mentions: int
    relations: int
    created_at: datetime
    undone_at: datetime | None


async def one_at_a_time(session: Session, workspace_id: UUID, user_id: str | None) -> None:
    """Waits for the other merges of the user."""
    await session.execute(ONE, {"name": f"{workspace_id}|{user_id or ''}"})


async def lock_memories(session: Session, workspace_id: UUID, absorbed: UUID) -> None:
    """To be taken before the entities are locked."""
    await session.execute(LOCK_MEMORIES, {"workspace": workspace_id, "absorbed": absorbed})


async def merge(session: Session, workspace_id: UUID, absorbed: UUID, survivor: UUID, *, now: datetime) -> UUID:
    """Makes `absorbed` part of `survivor`, both locked; returns the merge's id."""
    values = {"workspace": workspace_id, "id": uuid7(), "absorbed": absorbed, "survivor": survivor}
    await session.execute(LOCK_EDGES, {"workspace": workspace_id, "absorbed": absorbed})
    await session.execute(KEEP, {**values, "now": now})
    ends = {"workspace": workspace_id, "absorbed": absorbed, "survivor": survivor}
    for statement in (LINKS, EVIDENCE, TURN):
        await session.execute(statement, ends)
    await session.execute(REMOVE, {"workspace": workspace_id, "absorbed": absorbed})
    await session.execute(NAMES, {"workspace": workspace_id, "id": values["id"], "survivor": survivor})
    await session.execute(REFRESH, {"workspace": workspace_id, "survivor": survivor, "now": now})
    return values["id"]


async def get(session: Session, workspace_id: UUID, merge_id: UUID) -> Merge | None:
    row = (await session.execute(GET, {"workspace": workspace_id, "id": merge_id})).one_or_none()
    if row is None:
        return None
    return Merge(
        row.id, row.entity_id, row.absorbed_id, row.name, row.mentions, row.relations, row.created_at, row.undone_at
    )


async def lock(session: Session, workspace_id: UUID, merge_id: UUID) -> None:
    """All that an undo touches: memories, then entities."""
    values = {"workspace": workspace_id, "id": merge_id}
    await session.execute(LOCK_LINKED, values)
    await session.execute(FAR_ENDS, values)


async def undo(session: Session, workspace_id: UUID, done: Merge, *, now: datetime) -> bool:
    """Whether the absorbed entity is back; not when another bears its name by now."""
    values = {"workspace": workspace_id, "id": done.id}
    await session.execute(NO_ALIASES, values)
    if await session.scalar(ROW, values) is None:
        return False
    await session.execute(NO_LINKS, values)
    for statement in BACK:
        await session.execute(statement, values)
    await session.execute(ALIASES_OF, {"workspace": workspace_id, "absorbed": done.absorbed_id})
    await session.execute(REFRESH, {"workspace": workspace_id, "survivor": done.entity_id, "now": now})
    await session.execute(MARK, {**values, "now": now})
    return True


async def fade(session: Session, workspace_id: UUID) -> None:
    """Takes away what merges remember of entities that only erased memories named."""
    await session.execute(FADE, {"workspace": workspace_id})
