"""Links from memories to the entities they name, and the entities that jobs add for them.

An entity is unique by user, channel and `name_key` (the casefolded name). Rows are inserted in the order of their keys,
so two writers with the same new names never wait for each other in a circle; existing rows are not touched, so no
writer waits for a well-known name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from uuid_utils.compat import uuid7

from service.domain.entity import EntityOwner, NamedEntity, key
from service.postgres import direct
from service.postgres.engine import Session

# Uses uq_entity_workspace_id_user_id_channel_name_key. One branch for owners with a user and one for those without:
# with OR the planner reads all entities without a user in either case.
KNOWN = text("""
    SELECT o.place, e.name, e.name_key, e.aliases, e.type
    FROM unnest(CAST(:users AS text[]), CAST(:channels AS text[])) WITH ORDINALITY AS o (user_id, channel, place)
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT u.id, u.name, u.name_key, u.aliases, u.type FROM entity u
            WHERE u.workspace_id = :workspace AND u.channel = o.channel AND u.user_id = o.user_id
            UNION ALL
            SELECT n.id, n.name, n.name_key, n.aliases, n.type FROM entity n
            WHERE n.workspace_id = :workspace AND n.channel = o.channel AND n.user_id IS NULL AND o.user_id IS NULL
        ) found
        ORDER BY id LIMIT :limit
    ) e
""")

# A name that is an alias of another entity means that entity. If several rows have one name, the first counts.
INSERT = text("""
    INSERT INTO entity (workspace_id, id, user_id, channel, name, name_key, type, description, extracted_by,
                        first_seen)
    SELECT :workspace, new.id, new.user_id, new.channel, new.name, new.name_key, new.type, new.description,
           new.extracted_by, new.first_seen
    FROM unnest(CAST(:ids AS uuid[]), CAST(:users AS text[]), CAST(:channels AS text[]), CAST(:names AS text[]),
                CAST(:keys AS text[]), CAST(:types AS text[]), CAST(:descriptions AS text[]),
                CAST(:extractors AS text[]), CAST(:first_seen AS timestamptz[]))
         AS new (id, user_id, channel, name, name_key, type, description, extracted_by, first_seen)
    WHERE NOT EXISTS (
        SELECT FROM entity_alias a
        WHERE a.workspace_id = :workspace AND a.channel = new.channel AND a.alias_key = new.name_key
          AND (a.user_id = new.user_id OR (new.user_id IS NULL AND a.user_id IS NULL)))
    ORDER BY new.user_id, new.channel, new.name_key
    ON CONFLICT (workspace_id, user_id, channel, name_key) DO NOTHING
""")

# Separate, because ON CONFLICT DO NOTHING does not return rows that others have just committed. Links of
# the same extractor to entities that the text no longer names are deleted; links of other extractors stay. By ascending
# id, because a link locks its entity, and deleting entities locks them in the same order.
LINK = text("""
    WITH given AS (
        SELECT * FROM unnest(CAST(:memory_ids AS uuid[]), CAST(:users AS text[]), CAST(:channels AS text[]),
                             CAST(:keys AS text[]), CAST(:extractors AS text[]))
            WITH ORDINALITY AS g (memory_id, user_id, channel, key, extracted_by, place)
    ), named AS MATERIALIZED (
        SELECT given.memory_id, given.key, given.extracted_by, given.place, found.id
        FROM given CROSS JOIN LATERAL (
            SELECT e.id FROM entity e
            WHERE e.workspace_id = :workspace AND e.channel = given.channel AND e.name_key = given.key
              AND (e.user_id = given.user_id OR (given.user_id IS NULL AND e.user_id IS NULL))
            UNION ALL
            SELECT a.entity_id FROM entity_alias a
            WHERE a.workspace_id = :workspace AND a.channel = given.channel AND a.alias_key = given.key
              AND (a.user_id = given.user_id OR (given.user_id IS NULL AND a.user_id IS NULL))
        ) found
    ), outdated AS (
        DELETE FROM memory_entity me
        USING unnest(CAST(:read AS uuid[]), CAST(:readers AS text[])) AS r (memory_id, extracted_by)
        WHERE me.workspace_id = :workspace AND me.memory_id = r.memory_id AND me.extracted_by = r.extracted_by
          AND NOT EXISTS (SELECT FROM named WHERE named.memory_id = me.memory_id AND named.id = me.entity_id)
    ), linked AS (
        INSERT INTO memory_entity (workspace_id, memory_id, entity_id, extracted_by)
        SELECT DISTINCT ON (id, memory_id) :workspace, memory_id, id, extracted_by
        FROM named ORDER BY id, memory_id, place
        ON CONFLICT DO NOTHING
    )
    SELECT memory_id, key, id FROM named
""")

# Entities that only these memories name, and no caller wrote or related: they are deleted with the memories. Locked by
# ascending id; a concurrent link waits for the lock and then finds no entity.
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
    session: Session, workspace_id: UUID, owners: Sequence[EntityOwner], *, limit: int
) -> dict[EntityOwner, dict[str, NamedEntity]]:
    """For each owner, casefolded names and aliases → the entity they mean; an entity's own name wins over another's
    alias. Only the oldest `limit` entities of each owner."""
    rows = await direct.fetch(session, KNOWN, {"workspace": workspace_id, **_columns(owners), "limit": limit})
    aliases: dict[EntityOwner, dict[str, NamedEntity]] = {owner: {} for owner in owners}
    names: dict[EntityOwner, dict[str, NamedEntity]] = {owner: {} for owner in owners}
    for row in rows:
        owner, named = owners[row.place - 1], NamedEntity(row.name, row.type)
        names[owner][row.name_key] = named
        aliases[owner].update((alias.casefold(), named) for alias in row.aliases)
    return {owner: aliases[owner] | names[owner] for owner in owners}


async def add(session: Session, workspace_id: UUID, mentions: Iterable[EntityMention]) -> None:
    """Inserts the entities that do not exist yet, each as first mentioned; an existing one keeps its type."""
    new: dict[tuple[EntityOwner, str], EntityMention] = {}
    for mention in mentions:
        new.setdefault((mention.owner, key(mention.named.name)), mention)
    if not new:
        return
    await direct.fetch(
        session,
        INSERT,
        {
            "workspace": workspace_id,
            **_columns([owner for owner, _ in new]),
            "ids": [uuid7() for _ in new],
            "names": [entity_mention.named.name for entity_mention in new.values()],
            "keys": [name_key for _, name_key in new],
            "types": [entity_mention.named.type for entity_mention in new.values()],
            "descriptions": [entity_mention.named.description for entity_mention in new.values()],
            "extractors": [entity_mention.extracted_by for entity_mention in new.values()],
            "first_seen": [entity_mention.seen_at for entity_mention in new.values()],
        },
    )


async def link(
    session: Session, workspace_id: UUID, mentions: Sequence[EntityMention], *, read: Collection[tuple[UUID, str]]
) -> dict[tuple[UUID, str], UUID]:
    """Links memories to exactly these entities, for the extractors in `read` (memory, extractor); returns the entities
    by memory and key. If two extractors read the same name, the first keeps the link."""
    values = {
        "workspace": workspace_id,
        **_columns([mention.owner for mention in mentions]),
        "memory_ids": [mention.memory_id for mention in mentions],
        "keys": [key(mention.named.name) for mention in mentions],
        "extractors": [mention.extracted_by for mention in mentions],
        "read": [memory_id for memory_id, _ in read],
        "readers": [by for _, by in read],
    }
    return {(row.memory_id, row.key): row.id for row in await direct.fetch(session, LINK, values)}


async def lock_unnamed(session: Session, workspace_id: UUID, memory_ids: Sequence[UUID]) -> list[UUID]:
    """Locks the entities that no memory names once these are deleted; returns their ids."""
    return list(await session.scalars(LOCK_UNNAMED, {"workspace": workspace_id, "ids": list(memory_ids)}))


async def remove_unnamed(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> None:
    """Deletes those that no memory names, with their aliases, vectors and relations."""
    if ids:
        await session.execute(REMOVE_UNNAMED, {"workspace": workspace_id, "ids": list(ids)})


def _columns(owners: Sequence[EntityOwner]) -> dict[str, object]:
    return {"users": [owner.user_id for owner in owners], "channels": [owner.channel for owner in owners]}
