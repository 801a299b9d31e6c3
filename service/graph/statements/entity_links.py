"""Links from memories to the entities they name, and the entities that jobs add for them.

An entity is unique by user, channel and `name_key` (the casefolded name). Rows are inserted in the order of their keys,
so two writers with the same new names never wait for each other in a circle; existing rows are not touched, so no
writer waits for a well-known name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, bindparam, text
from uuid_utils.compat import uuid7

from service.domain.entity import EntityOwner, NamedEntity, key
from service.graph.statements.entities import NAMED
from service.postgres import direct
from service.postgres.direct import NewRows
from service.postgres.engine import Session

# Uses uq_entity_workspace_id_user_id_channel_name_key. One branch for owners with a user and one for those without:
# with OR the planner reads all entities without a user in either case.
KNOWN = text("""
    SELECT o.place, e.name, e.name_key, e.type, a.alias_key
    FROM unnest(CAST(:users AS text[]), CAST(:channels AS text[])) WITH ORDINALITY AS o (user_id, channel, place)
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT u.id, u.name, u.name_key, u.type FROM entity u
            WHERE u.workspace_id = :workspace AND u.channel = o.channel AND u.user_id = o.user_id
            UNION ALL
            SELECT n.id, n.name, n.name_key, n.type FROM entity n
            WHERE n.workspace_id = :workspace AND n.channel = o.channel AND n.user_id IS NULL AND o.user_id IS NULL
        ) found
        ORDER BY id LIMIT :limit
    ) e LEFT JOIN entity_alias a ON a.workspace_id = :workspace AND a.entity_id = e.id
""")

# Names that exist, as an entity's own or as an alias of another entity, which then is meant.
GIVEN = NAMED.format(channel="given.channel", user="given.user_id", key="given.key")
EXISTING = text(f"""
    SELECT given.place FROM unnest(CAST(:users AS text[]), CAST(:channels AS text[]), CAST(:keys AS text[]))
        WITH ORDINALITY AS given (user_id, channel, key, place)
    WHERE EXISTS ({GIVEN})
""")  # noqa: S608 - no user input

INSERT = text("""
    INSERT INTO entity (workspace_id, id, user_id, channel, name, name_key, type, description, extracted_by,
                        first_seen)
    VALUES (:workspace, :id, :user_id, :channel, :name, :key, :type, :description, :extracted_by, :first_seen)
    ON CONFLICT (workspace_id, user_id, channel, name_key) DO NOTHING
""").bindparams(bindparam("first_seen", type_=DateTime(timezone=True)))

# Separate, because ON CONFLICT DO NOTHING does not return rows that others have just committed. Links of
# the same extractor to entities that the text no longer names are deleted; links of other extractors stay. By ascending
# id, because a link locks its entity, and deleting entities locks them in the same order.
MENTIONED = text(f"""
    SELECT given.memory_id, given.key, given.extracted_by, named.id
    FROM unnest(CAST(:memory_ids AS uuid[]), CAST(:users AS text[]), CAST(:channels AS text[]), CAST(:keys AS text[]),
                CAST(:extractors AS text[]))
        WITH ORDINALITY AS given (memory_id, user_id, channel, key, extracted_by, place)
    CROSS JOIN LATERAL ({GIVEN}) named
    ORDER BY named.id, given.memory_id, given.place
""")  # noqa: S608 - no user input
UNLINK = text("""
    DELETE FROM memory_entity me
    USING unnest(CAST(:read AS uuid[]), CAST(:readers AS text[])) AS r (memory_id, extracted_by)
    WHERE me.workspace_id = :workspace AND me.memory_id = r.memory_id AND me.extracted_by = r.extracted_by
      AND NOT EXISTS (SELECT FROM unnest(CAST(:memory_ids AS uuid[]), CAST(:ids AS uuid[])) AS named (memory_id, id)
                      WHERE named.memory_id = me.memory_id AND named.id = me.entity_id)
""")
LINK = text("""
    INSERT INTO memory_entity (workspace_id, memory_id, entity_id, extracted_by)
    VALUES (:workspace, :memory_id, :id, :extracted_by) ON CONFLICT DO NOTHING
""")

# Entities that only these memories name, and no caller wrote or related: they are deleted with the memories. Locked by
# ascending id; a concurrent link waits for the lock and then finds no entity.
LOCK_UNNAMED = text("""
    SELECT e.id FROM entity e
    WHERE e.workspace_id = :workspace AND e.extracted_by <> 'caller'
      AND e.id IN (SELECT me.entity_id FROM memory_entity me
                   WHERE me.workspace_id = :workspace AND me.memory_id = ANY (CAST(:ids AS uuid[])))
      AND NOT EXISTS (SELECT FROM memory_entity me WHERE me.workspace_id = :workspace AND me.entity_id = e.id
                      AND NOT me.memory_id = ANY (CAST(:ids AS uuid[])) OFFSET 0)  -- one at a time, not all mentions
      AND NOT EXISTS (SELECT FROM entity_edge o WHERE o.workspace_id = :workspace AND o.source_id = e.id
                      AND o.extracted_by = 'caller')
      AND NOT EXISTS (SELECT FROM entity_edge i WHERE i.workspace_id = :workspace AND i.target_id = e.id
                      AND i.extracted_by = 'caller')
    ORDER BY e.id FOR UPDATE
""")

# Checks again with a new snapshot, because the lock may have been waited for.
REMOVE_UNNAMED = text("""
    DELETE FROM entity e WHERE e.workspace_id = :workspace AND e.id = ANY (CAST(:ids AS uuid[]))
      AND NOT EXISTS (SELECT FROM memory_entity me WHERE me.workspace_id = :workspace AND me.entity_id = e.id)
""")


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A memory names an entity. `extracted_by`: what found it there; `seen_at`: when the memory happened."""

    memory_id: UUID
    owner: EntityOwner
    named: NamedEntity
    extracted_by: str
    seen_at: datetime


async def read_known(
    session: Session, owners: Sequence[EntityOwner], *, limit: int
) -> dict[EntityOwner, dict[str, NamedEntity]]:
    """For each owner, casefolded names and aliases → the entity they mean; an entity's own name wins over another's
    alias. Only the oldest `limit` entities of each owner."""
    rows = await direct.fetch(session, KNOWN, {**_columns(owners), "limit": limit})
    aliases: dict[EntityOwner, dict[str, NamedEntity]] = {owner: {} for owner in owners}
    names: dict[EntityOwner, dict[str, NamedEntity]] = {owner: {} for owner in owners}
    for row in rows:
        owner, named = owners[row.place - 1], NamedEntity(row.name, row.type)
        names[owner][row.name_key] = named
        if row.alias_key is not None:
            aliases[owner][row.alias_key] = named
    return {owner: aliases[owner] | names[owner] for owner in owners}


async def add(session: Session, mentions: Iterable[EntityMention]) -> None:
    """Inserts the entities that do not exist yet, each as first mentioned; an existing one keeps its type."""
    new: dict[tuple[EntityOwner, str], EntityMention] = {}
    for mention in mentions:
        new.setdefault((mention.owner, key(mention.named.name)), mention)
    if not new:
        return
    given = sorted(new.items(), key=lambda each: (each[0][0].user_id or "", each[0][0].channel, each[0][1]))
    keys = {"keys": [name for (_, name), _ in given], **_columns([owner for (owner, _), _ in given])}
    known = {row.place for row in await direct.fetch(session, EXISTING, {**keys})}
    rows = [
        {
            "id": uuid7(),
            "user_id": owner.user_id,
            "channel": owner.channel,
            "name": mention.named.name,
            "key": name,
            "type": mention.named.type,
            "description": mention.named.description,
            "extracted_by": mention.extracted_by,
            "first_seen": mention.seen_at,
        }
        for index, ((owner, name), mention) in enumerate(given, 1)
        if index not in known
    ]
    await direct.insert(session, NewRows(INSERT, rows))


async def link(
    session: Session, mentions: Sequence[EntityMention], *, read: Collection[tuple[UUID, str]]
) -> dict[tuple[UUID, str], UUID]:
    """Links memories to exactly these entities, for the extractors in `read` (memory, extractor); returns the entities
    by memory and key. If two extractors read the same name, the first keeps the link."""
    values: dict[str, Any] = {
        **_columns([mention.owner for mention in mentions]),
        "memory_ids": [mention.memory_id for mention in mentions],
        "keys": [key(mention.named.name) for mention in mentions],
        "extractors": [mention.extracted_by for mention in mentions],
    }
    named = await direct.fetch(session, MENTIONED, values)
    kept = {"memory_ids": [row.memory_id for row in named], "ids": [row.id for row in named]}
    readers = {"read": [memory_id for memory_id, _ in read], "readers": [by for _, by in read]}
    await direct.fetch(session, UNLINK, {**kept, **readers})
    links = [{**row._asdict()} for row in named]
    await direct.insert(session, NewRows(LINK, links))
    return {(row.memory_id, row.key): row.id for row in named}


async def lock_unnamed(session: Session, memory_ids: Sequence[UUID]) -> list[UUID]:
    """Locks the entities that no memory names once these are deleted; returns their ids."""
    return list(await session.scalars(LOCK_UNNAMED, {"ids": list(memory_ids)}))


async def remove_unnamed(session: Session, ids: Sequence[UUID]) -> None:
    """Deletes those that no memory names, with their aliases, vectors and relations."""
    if ids:
        await session.execute(REMOVE_UNNAMED, {"ids": list(ids)})


def _columns(owners: Sequence[EntityOwner]) -> dict[str, object]:
    return {"users": [owner.user_id for owner in owners], "channels": [owner.channel for owner in owners]}
