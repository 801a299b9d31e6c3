"""Entities of a scope that callers create, change, find and delete.

Jobs write the entities that texts name, in entity_links.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from service.conversations.statements.conversations import MENTIONS
from service.domain.entity import CALLER, Entity, EntityOwner, key
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.graph.entity_scope import EntityScope
from service.graph.models import UpsertEntityRequest
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.postgres.tables import ENTITY, ENTITY_VECTOR
from service.postgres.template import typed_text
from service.postgres.vectors import Half, cosine, exact_distance
from service.runtime.statements.deferred_vectors import DeferredVectors

COUNTED = 1_000
"""Mentions are counted up to here: a well-known name has a hundred thousand."""

ROW = f"""
    e.id, e.user_id, e.channel, e.name, e.name_key, e.type, e.description, e.properties, e.salience,
    e.extracted_by, e.first_seen, e.last_accessed, e.access_count, e.version, e.created_at, e.updated_at,
    ARRAY(SELECT a.alias FROM entity_alias a WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id
          ORDER BY a.created_at, a.alias_key) AS aliases,
    (SELECT count(*) FROM (SELECT FROM memory_entity me WHERE me.workspace_id = e.workspace_id AND me.entity_id = e.id
                           LIMIT {COUNTED}) counted) AS mentions
"""  # noqa: S608 - no user input

NAMED = """
    SELECT e.id FROM entity e
    WHERE e.workspace_id = :workspace AND e.channel = {channel} AND e.name_key = {key}
      AND (e.user_id = {user} OR ({user} IS NULL AND e.user_id IS NULL))
    UNION ALL
    SELECT a.entity_id FROM entity_alias a
    WHERE a.workspace_id = :workspace AND a.channel = {channel} AND a.alias_key = {key}
      AND (a.user_id = {user} OR ({user} IS NULL AND a.user_id IS NULL))
"""
"""The entity of exactly this user and channel with a name, then the one with the alias."""

OF_OWNER = {"channel": ":channel", "user": "CAST(:user_id AS text)"}
BY_NAME = text(f"{NAMED.format(key=':key', **OF_OWNER)} LIMIT 1")
LOCK = text("""
    SELECT e.id, e.version FROM entity e WHERE e.workspace_id = :workspace AND e.id = ANY (CAST(:ids AS uuid[]))
    ORDER BY e.id FOR UPDATE
""")

CREATE = typed_text("""
    INSERT INTO entity (workspace_id, id, user_id, channel, name, name_key, type, extracted_by, first_seen, created_at,
                        updated_at)
    VALUES (:workspace, :id, :user_id, :channel, :name, :key, :type, :extracted_by, :now, :now, :now)
    ON CONFLICT (workspace_id, user_id, channel, name_key) DO NOTHING RETURNING id
""")

CHANGE = typed_text("""
    UPDATE entity e SET type = coalesce(:type, e.type), description = coalesce(:description, e.description),
        properties = e.properties || :properties, salience = coalesce(:salience, e.salience),
        base_salience = coalesce(:salience, e.base_salience), extracted_by = :extracted_by, version = e.version + :step,
        updated_at = :now
    WHERE e.workspace_id = :workspace AND e.id = :id
""").bindparams(bindparam("properties", type_=JSONB()))

ADD_ALIASES = text("""
    INSERT INTO entity_alias (workspace_id, entity_id, alias_key, alias, user_id, channel, created_at)
    SELECT :workspace, :id, new.key, new.alias, :user_id, :channel, clock_timestamp()
    FROM unnest(CAST(:keys AS text[]), CAST(:aliases AS text[])) AS new (key, alias) ORDER BY new.key
    ON CONFLICT DO NOTHING
""")
TAKEN = text(f"""
    SELECT new.key FROM unnest(CAST(:keys AS text[])) AS new (key)
    WHERE EXISTS (SELECT FROM ({NAMED.format(key="new.key", **OF_OWNER)}) named WHERE named.id <> :id)
""")  # noqa: S608 - no user input

REMOVE = text("DELETE FROM entity WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[]))")

# The entities that existed when the deletion of a user's scope began and that no memory names any more.
PURGE = """
    DELETE FROM entity e WHERE e.workspace_id = :workspace AND e.user_id = :user_id
      AND (CAST(:channel AS text) IS NULL OR e.channel = :channel)
"""
DELETE_UNNAMED = typed_text(f"""{PURGE} AND e.created_at <= :now
      AND NOT EXISTS (SELECT FROM memory_entity me WHERE me.workspace_id = e.workspace_id AND me.entity_id = e.id)
""")

# Counting a read never waits: an entity that is locked for a change is not counted.
COUNT_READ = typed_text("""
    UPDATE entity e SET access_count = e.access_count + 1, last_accessed = :now
    FROM (SELECT id FROM entity WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[]))
          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) unlocked
    WHERE e.workspace_id = :workspace AND e.id = unlocked.id
""")


async def get(session: Session, scope: EntityScope, entity_id: UUID) -> Entity | None:
    return (await get_many(session, scope, [entity_id])).get(entity_id)


async def get_many(session: Session, scope: EntityScope, ids: Iterable[UUID]) -> dict[UUID, Entity]:
    """The visible entities among `ids`."""
    rows = scope.rows & Condition("e.id = ANY (CAST(:ids AS uuid[]))", {"ids": list(ids)})
    return {row.id: entity_of(row) for row in await session.execute(_select(rows), rows.values)}


async def by_names(session: Session, scope: EntityScope, names: Iterable[str], *, limit: int = 100) -> list[Entity]:
    """The entities with one of these names or aliases, ignoring case, the most salient first: of the active channel and
    `_global`, or of every user."""
    named = """(e.name_key = ANY (CAST(:keys AS text[])) OR e.id IN (
        SELECT a.entity_id FROM entity_alias a
        WHERE a.workspace_id = :workspace AND a.alias_key = ANY (CAST(:keys AS text[]))))"""
    rows = scope.rows & Condition(named, {"keys": sorted({key(name) for name in names})})
    statement = _select(rows, "ORDER BY e.salience DESC, e.id LIMIT :limit")
    return [entity_of(row) for row in await session.execute(statement, {**rows.values, "limit": limit})]


async def page(
    session: Session,
    scope: EntityScope,
    *,
    kind: str | None,
    conversation_id: UUID | None = None,
    after: tuple[str, UUID] | None,
    limit: int,
) -> list[tuple[str, Entity]]:
    """The next entities by name, each with the key that the next page starts after."""
    rows = scope.rows
    if conversation_id is not None:
        mentions = MENTIONS.format(wanted="me.entity_id", given="t.conversation_id = :conversation")
        rows &= Condition(f"e.id IN ({mentions})", {"conversation": conversation_id})
    if kind is not None:
        rows &= Condition("e.type = :type", {"type": kind})
    if after is not None:
        place = {"after_key": after[0], "after_id": after[1]}
        rows &= Condition("(e.name_key, e.id) > (:after_key, :after_id)", place)
    statement = _select(rows, "ORDER BY e.name_key, e.id LIMIT :limit")
    values = {**rows.values, "limit": limit}
    return await direct.page(session, statement, values, lambda row: (row.name_key, entity_of(row)))


async def find_id(session: Session, owner: EntityOwner, name: str) -> UUID | None:
    """The entity of exactly this owner with the name, or else with the alias."""
    entity_id: UUID | None = await session.scalar(BY_NAME, {**_owner(owner), "key": key(name)})
    return entity_id


async def lock(session: Session, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Locks those that exist, by ascending id, and returns their versions."""
    rows = await session.execute(LOCK, {"ids": list(ids)})
    return {row.id: row.version for row in rows}


async def create(session: Session, owner: EntityOwner, new: UpsertEntityRequest, *, now: datetime) -> UUID | None:
    """Creates an entity; returns its id, or None if there is one with this name."""
    values = {
        **_owner(owner),
        "id": uuid7(),
        "name": new.name,
        "key": key(new.name),
        "type": new.type or "concept",
        "extracted_by": CALLER,
        "now": now,
    }
    created: UUID | None = await session.scalar(CREATE, values)
    return created


async def change(
    session: Session, owner: EntityOwner, entity_id: UUID, fields: UpsertEntityRequest, *, now: datetime, is_new: bool
) -> None:
    """Writes the given fields and increments the version, unless the entity is new."""
    values = {
        "id": entity_id,
        "type": fields.type,
        "description": fields.description,
        "properties": dict(fields.properties),
        "salience": fields.salience,
        "extracted_by": CALLER,
        "step": 0 if is_new else 1,
        "now": now,
    }
    await session.execute(CHANGE, values)


async def add_aliases(session: Session, owner: EntityOwner, entity_id: UUID, aliases: Mapping[str, str]) -> None:
    """Adds aliases (casefolded → as written), except those that belong to another entity."""
    values = {"keys": list(aliases), "aliases": list(aliases.values())}
    await session.execute(ADD_ALIASES, {**_owner(owner), "id": entity_id, **values})


async def is_any_taken(session: Session, owner: EntityOwner, entity_id: UUID, keys: Iterable[str]) -> bool:
    """Whether another entity has one of these casefolded names as its name or alias."""
    taken = await session.scalar(TAKEN, {**_owner(owner), "id": entity_id, "keys": list(keys)})
    return taken is not None


def embedded_text(name: str, description: str | None) -> CleanText:
    """The text that is embedded for an entity."""
    return CleanText(f"{name}: {description}" if description else name)


async def remove(session: Session, ids: Sequence[UUID]) -> int:
    """Deletes entities with their aliases, vectors, relations and mentions; returns how many."""
    result = await session.execute(REMOVE, {"ids": list(ids)})
    return result.rowcount


async def delete_unnamed(session: Session, scope: Scope, channel: str | None, *, upto: datetime) -> None:
    """Deletes the entities of a user that no memory names any more, after their memories were deleted."""
    values = {"user_id": scope.user_id, "channel": channel, "now": upto}
    await session.execute(DELETE_UNNAMED, values)


async def purge(session: Session, scope: Scope, channel: str | None) -> int:
    """Deletes all entities of a user; returns how many."""
    values = {"user_id": scope.user_id, "channel": channel}
    return (await session.execute(text(PURGE), values)).rowcount


async def count_read(session: Session, ids: Sequence[UUID], *, now: datetime) -> None:
    await session.execute(COUNT_READ, {"ids": list(ids), "now": now})


def _select(rows: Condition, order: str = "") -> TextClause:
    """The entities that meet `rows`, in this order."""
    return text(f"SELECT {ROW} FROM entity e WHERE {rows.sql} {order}")  # noqa: S608 - no user input


def _owner(owner: EntityOwner) -> dict[str, Any]:
    return {"workspace": owner.workspace_id, "user_id": owner.user_id, "channel": owner.channel}


entity_of = direct.reader(Entity, aliases=lambda row: tuple(row.aliases))


# How well a name fits the query: equal, at the beginning, at the beginning of a word, anywhere.
NAME_FIT = """
    CASE WHEN {key} = :key THEN 1.0 WHEN starts_with({key}, :key) THEN 0.9
         WHEN position(' ' || :key in {key}) > 0 THEN 0.8 WHEN position(:key in {key}) > 0 THEN 0.6 ELSE 0 END
"""
SEARCH = f"""
    WITH fits AS (
        SELECT e.id, greatest({NAME_FIT.format(key="e.name_key")}, coalesce(
            (SELECT max({NAME_FIT.format(key="a.alias_key")}) FROM entity_alias a
             WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id), 0)) AS fit
        FROM entity e WHERE {{rows}}
    ), chosen AS (
        (SELECT id FROM fits WHERE fit > 0 ORDER BY fit DESC, id LIMIT :limit)
        UNION
        SELECT id FROM (
            SELECT e.id FROM entity e JOIN entity_vector v ON v.workspace_id = e.workspace_id AND v.entity_id = e.id
            WHERE {{rows}} AND v.generation = :generation ORDER BY {exact_distance()} LIMIT :limit) nearest
    )
    SELECT {ROW}, fits.fit, {cosine("v.embedding")} AS cosine
    FROM chosen JOIN fits USING (id) JOIN entity e ON e.workspace_id = :workspace AND e.id = chosen.id
    LEFT JOIN entity_vector v ON v.workspace_id = e.workspace_id AND v.entity_id = e.id AND v.generation = :generation
"""  # noqa: S608 - no user input


async def search(
    session: Session,
    scope: EntityScope,
    query: str,
    vector: NDArray[np.float32] | None,
    *,
    kind: str | None,
    generation: int,
    limit: int,
) -> list[tuple[Entity, float, float | None]]:
    """The `limit` best by name and the `limit` nearest by vector (None: any), unordered, each with how well its names
    fit (0..1, 0: not at all) and its cosine. Substrings and vectors are compared one by one: a scope has hundreds of
    entities, seldom thousands."""
    rows = scope.rows
    if kind is not None:
        rows &= Condition("e.type = :type", {"type": kind})
    statement = text(SEARCH.format(rows=rows.sql)).bindparams(bindparam("query_vector", type_=Half()))
    given = {"query_vector": None if vector is None else vector.tolist(), "generation": generation}
    values = {**rows.values, **given, "key": key(query), "limit": limit}
    result = await session.execute(statement, values)
    return [(entity_of(row), float(row.fit), row.cosine) for row in result]


LATE_VECTORS = DeferredVectors(
    "entities",
    ENTITY,
    ENTITY_VECTOR,
    "entity_id",
    lambda row: embedded_text(row.name, row.description),
    ENTITY.c.extracted_by == CALLER,
)
