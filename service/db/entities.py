"""Which entities are known, and which memories name them?

An entity is unique by user, channel and `name_key` (the casefolded name). Rows are inserted in the order of their
keys, so two writers that meet the same new names never wait for each other in a circle; existing rows are not
touched, so nobody waits for a well-known name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from uuid_utils.compat import uuid7

from service.db import direct
from service.db.engine import Session
from service.domain.entity import Named, Owner, key

# uq_entity_workspace_id_user_id_channel_name_key: equality on user_id or IS NULL, whichever applies
KNOWN = text("""
    SELECT e.name, e.name_key, e.aliases, e.type FROM entity e
    WHERE e.workspace_id = :workspace AND e.channel = :channel
      AND (e.user_id = :user_id OR (CAST(:user_id AS text) IS NULL AND e.user_id IS NULL))
    ORDER BY e.id LIMIT :limit
""")

# A name that is another entity's alias is that entity (C32).
INSERT = text("""
    INSERT INTO entity (workspace_id, id, user_id, channel, name, name_key, type, extracted_by, first_seen)
    SELECT :workspace, new.id, :user_id, CAST(:channel AS text), new.name, new.name_key, new.type, :extracted_by,
           :first_seen
    FROM unnest(CAST(:ids AS uuid[]), CAST(:names AS text[]), CAST(:keys AS text[]), CAST(:types AS text[]))
         AS new (id, name, name_key, type)
    WHERE NOT EXISTS (
        SELECT FROM entity_alias a
        WHERE a.workspace_id = :workspace AND a.channel = CAST(:channel AS text) AND a.alias_key = new.name_key
          AND (a.user_id = :user_id OR (CAST(:user_id AS text) IS NULL AND a.user_id IS NULL)))
    ORDER BY new.name_key
    ON CONFLICT (workspace_id, user_id, channel, name_key) DO NOTHING
""")

# A statement of its own, because ON CONFLICT DO NOTHING does not return rows that others committed meanwhile. Links of
# the same extractor to entities that the text does not name any more go; others' links stay. By ascending id, because
# a link locks its entity: whoever takes entities away locks them in the same order.
LINK = text("""
    WITH named AS (
        SELECT e.id, e.name_key AS key FROM entity e
        WHERE e.workspace_id = :workspace AND e.channel = :channel AND e.name_key = ANY (CAST(:keys AS text[]))
          AND (e.user_id = :user_id OR (CAST(:user_id AS text) IS NULL AND e.user_id IS NULL))
        UNION ALL
        SELECT a.entity_id, a.alias_key FROM entity_alias a
        WHERE a.workspace_id = :workspace AND a.channel = :channel AND a.alias_key = ANY (CAST(:keys AS text[]))
          AND (a.user_id = :user_id OR (CAST(:user_id AS text) IS NULL AND a.user_id IS NULL))
    ), gone AS (
        DELETE FROM memory_entity me
        WHERE me.workspace_id = :workspace AND me.memory_id = :memory_id AND me.extracted_by = :extracted_by
          AND me.entity_id NOT IN (SELECT id FROM named)
    ), linked AS (
        INSERT INTO memory_entity (workspace_id, memory_id, entity_id, extracted_by)
        SELECT :workspace, :memory_id, id, :extracted_by FROM (SELECT DISTINCT id FROM named) d ORDER BY id
        ON CONFLICT DO NOTHING
    )
    SELECT key, id FROM named
""")

# What only these memories name, and no caller spoke of: it goes with them. Locked by ascending id; a link that is made
# meanwhile waits for the lock and then finds nothing to lead to.
LOCK_UNNAMED = text("""
    SELECT e.id FROM entity e
    WHERE e.workspace_id = :workspace AND e.extracted_by <> 'caller'
      AND e.id IN (SELECT me.entity_id FROM memory_entity me
                   WHERE me.workspace_id = :workspace AND me.memory_id = ANY (CAST(:ids AS uuid[])))
      AND NOT EXISTS (SELECT FROM memory_entity me WHERE me.workspace_id = :workspace AND me.entity_id = e.id
                      AND NOT me.memory_id = ANY (CAST(:ids AS uuid[])))
      AND NOT EXISTS (SELECT FROM entity_edge o WHERE o.workspace_id = :workspace AND o.source_id = e.id
                      AND o.extracted_by = 'caller')
      AND NOT EXISTS (SELECT FROM entity_edge i WHERE i.workspace_id = :workspace AND i.target_id = e.id
                      AND i.extracted_by = 'caller')
    ORDER BY e.id FOR UPDATE
""")

# A second look, with the snapshot of after the wait.
REMOVE_UNNAMED = text("""
    DELETE FROM entity e WHERE e.workspace_id = :workspace AND e.id = ANY (CAST(:ids AS uuid[]))
      AND NOT EXISTS (SELECT FROM memory_entity me WHERE me.workspace_id = :workspace AND me.entity_id = e.id)
""")


async def known(session: Session, owner: Owner, *, limit: int) -> dict[str, Named]:
    """Casefolded names and aliases → the entity they mean; an entity's own name wins over another's alias."""
    rows = await direct.fetch(session, KNOWN, {**_owner(owner), "limit": limit})
    found = {alias.casefold(): Named(row.name, row.type) for row in rows for alias in row.aliases}
    return found | {row.name_key: Named(row.name, row.type) for row in rows}


async def add(
    session: Session, owner: Owner, named: Iterable[Named], *, extracted_by: str, first_seen: datetime
) -> None:
    """Inserts the entities that do not exist yet; a type that is stored already stays (C57)."""
    new = {key(each.name): each for each in named}
    if not new:
        return
    await direct.fetch(
        session,
        INSERT,
        {
            **_owner(owner),
            "ids": [uuid7() for _ in new],
            "names": [each.name for each in new.values()],
            "keys": list(new),
            "types": [each.type for each in new.values()],
            "extracted_by": extracted_by,
            "first_seen": first_seen,
        },
    )


async def link(
    session: Session, owner: Owner, memory_id: UUID, named: Iterable[Named], *, extracted_by: str
) -> dict[str, UUID]:
    """Makes the memory name exactly these entities, as far as `extracted_by` is concerned; returns their ids by key."""
    keys = sorted({key(each.name) for each in named})
    values = {**_owner(owner), "memory_id": memory_id, "keys": keys, "extracted_by": extracted_by}
    return {row.key: row.id for row in await direct.fetch(session, LINK, values)}


async def lock_unnamed(session: Session, workspace_id: UUID, memory_ids: Sequence[UUID]) -> list[UUID]:
    """Locks the entities that nobody names once these memories are gone, and returns their ids."""
    return list(await session.scalars(LOCK_UNNAMED, {"workspace": workspace_id, "ids": list(memory_ids)}))


async def remove_unnamed(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> None:
    """Takes those away that no memory names, with their aliases, vectors and relations."""
    if ids:
        await session.execute(REMOVE_UNNAMED, {"workspace": workspace_id, "ids": list(ids)})


def _owner(owner: Owner) -> dict[str, object]:
    return {"workspace": owner.workspace_id, "user_id": owner.user_id, "channel": owner.channel}
