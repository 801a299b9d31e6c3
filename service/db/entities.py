"""Which entities are known, and which memories name them?

An entity is unique by user, channel and `name_key` (the casefolded name). Rows are inserted in the order of their
keys, so two writers that meet the same new names never wait for each other in a circle; existing rows are not
touched, so nobody waits for a well-known name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from uuid_utils.compat import uuid7

from service.db.engine import Session


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose entities: they are told apart by user and channel, never by agent or run."""

    workspace_id: UUID
    user_id: str | None
    channel: str


@dataclass(frozen=True, slots=True)
class Named:
    """A name as it is written, and its type."""

    name: str
    type: str


# uq_entity_workspace_id_user_id_channel_name_key: equality on user_id or IS NULL, whichever applies
KNOWN = text("""
    SELECT e.name, e.name_key, e.aliases, e.type FROM entity e
    WHERE e.workspace_id = :workspace AND e.channel = :channel
      AND (e.user_id = :user_id OR (CAST(:user_id AS text) IS NULL AND e.user_id IS NULL))
    ORDER BY e.id LIMIT :limit
""")

INSERT = text("""
    INSERT INTO entity (workspace_id, id, user_id, channel, name, name_key, type, extracted_by, first_seen)
    SELECT :workspace, new.id, :user_id, :channel, new.name, new.name_key, new.type, :extracted_by, :first_seen
    FROM unnest(CAST(:ids AS uuid[]), CAST(:names AS text[]), CAST(:keys AS text[]), CAST(:types AS text[]))
         AS new (id, name, name_key, type)
    ORDER BY new.name_key
    ON CONFLICT (workspace_id, user_id, channel, name_key) DO NOTHING
""")

# A statement of its own, because ON CONFLICT DO NOTHING does not return rows that others committed meanwhile. Links to
# entities of the same extractor that the text does not name any more go; others' links stay.
LINK = text("""
    WITH named AS (
        SELECT e.id FROM entity e
        WHERE e.workspace_id = :workspace AND e.channel = :channel AND e.name_key = ANY (CAST(:keys AS text[]))
          AND (e.user_id = :user_id OR (CAST(:user_id AS text) IS NULL AND e.user_id IS NULL))
    ), gone AS (
        DELETE FROM memory_entity me USING entity e
        WHERE me.workspace_id = :workspace AND me.memory_id = :memory_id
          AND e.workspace_id = me.workspace_id AND e.id = me.entity_id AND e.extracted_by = :extracted_by
          AND me.entity_id NOT IN (SELECT id FROM named)
    )
    INSERT INTO memory_entity (workspace_id, memory_id, entity_id) SELECT :workspace, :memory_id, id FROM named
    ON CONFLICT DO NOTHING
""")


async def known(session: Session, owner: Owner, *, limit: int) -> dict[str, Named]:
    """Casefolded names and aliases → the entity they mean; an entity's own name wins over another's alias."""
    rows = (await session.execute(KNOWN, {**_owner(owner), "limit": limit})).all()
    found = {alias.casefold(): Named(row.name, row.type) for row in rows for alias in row.aliases}
    return found | {row.name_key: Named(row.name, row.type) for row in rows}


async def add(
    session: Session, owner: Owner, named: Iterable[Named], *, extracted_by: str, first_seen: datetime
) -> None:
    """Inserts the entities that do not exist yet; a type that is stored already stays (C57)."""
    new = {key(each.name): each for each in named}
    if not new:
        return
    await session.execute(
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


async def link(session: Session, owner: Owner, memory_id: UUID, named: Iterable[Named], *, extracted_by: str) -> None:
    """Makes the memory name exactly these entities, as far as `extracted_by` is concerned."""
    keys = sorted({key(each.name) for each in named})
    values = {**_owner(owner), "memory_id": memory_id, "keys": keys, "extracted_by": extracted_by}
    await session.execute(LINK, values)


def key(name: str) -> str:
    """The identity of a name: casefolded here, because Postgres' lower() under locale C leaves Ä (D8)."""
    return name.casefold()


def _owner(owner: Owner) -> dict[str, object]:
    return {"workspace": owner.workspace_id, "user_id": owner.user_id, "channel": owner.channel}
