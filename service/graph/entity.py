"""Entities as the API writes and reads them: created, related, merged, removed; listed, found, and walked from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from service.conversations.conversations import find_conversation
from service.domain.entity import (
    Entity,
    EntityOwner,
    EntityPath,
    EntityRelation,
    display_name,
    key,
    type_name,
)
from service.domain.errors import Conflict, InvalidInput, NotFound, TooLarge
from service.domain.filters import uuid_or_none
from service.domain.request import Call
from service.domain.scope import Scope
from service.domain.sizes import MAX_ALIASES, check_merged
from service.domain.text import CleanText
from service.graph.entity_scope import EdgeFilter, EdgePlace, EntityScope
from service.graph.models import CreateEntityRelationRequest, UpsertEntityRequest
from service.graph.statements import entities, entity_relations, merges
from service.language.relations import normalise_label
from service.postgres import direct
from service.providers.protocols import Vector
from service.runtime import pii
from service.runtime.pii import clean_words
from service.runtime.resources import Resources
from service.runtime.transactions import Write, plain_transaction


def entity_not_found(field: str = "id") -> NotFound:
    return NotFound("There is no entity with this id." if field == "id" else f"{field}: no such entity.", field=field)


async def upsert(
    owner: EntityOwner, new: UpsertEntityRequest, vector: Vector | None, res: Resources, call: Call
) -> tuple[Entity, bool]:
    """Creates or changes the entity with this name or alias; returns it, and whether it is new. Unless given, its
    vector is made from name and description. Raises Conflict for an alias of another entity, PreconditionFailed for
    another version."""
    new = await _clean(new, res)
    vector, is_changed = (vector, True) if vector is not None else await _vector(owner, new, res)
    async with plain_transaction(owner.workspace_id, res, call) as write:
        session = write.session
        entity_id, is_new = await _find_or_create(write, owner, new, res)
        stored = await entities.get(session, EntityScope(owner.workspace_id, None), entity_id)
        assert stored is not None, "it is locked"
        aliases = {key(alias): alias for alias in new.aliases if key(alias) != key(stored.name)}
        if await entities.is_any_taken(session, owner, entity_id, aliases):
            raise Conflict("aliases: one of them is another entity's name; merge the two instead.", field="aliases")
        if len({*map(key, stored.aliases), *aliases}) > MAX_ALIASES:
            raise TooLarge(f"aliases: an entity can have at most {MAX_ALIASES}.", field="aliases")
        check_merged("properties", {**stored.properties, **new.properties})
        await entities.add_aliases(session, owner, entity_id, aliases)
        await entities.change(session, owner, entity_id, new, now=res.clock(), is_new=is_new)
        if is_changed:
            await entities.LATE_VECTORS.replace(session, entity_id, vector, generation=res.generation)
        entity = await entities.get(session, EntityScope(owner.workspace_id, None), entity_id)
        assert entity is not None, "it is locked"
        await write.audit("upsert_entity", _scope(entity, owner.workspace_id), [entity_id])
        return await write.answer((entity, is_new))


async def _clean(new: UpsertEntityRequest, res: Resources) -> UpsertEntityRequest:
    clean = {
        "name": await clean_words(display_name(new.name), "name", res),
        "type": type_name(await clean_words(new.type, "type", res)) if new.type else None,
        "description": await clean_words(new.description, "description", res) if new.description else None,
        "aliases": [await clean_words(display_name(alias), "aliases", res) for alias in new.aliases],
        "properties": (await pii.clean_object(new.properties, "properties", res))[0],
    }
    return new.model_copy(update=clean)


async def _vector(owner: EntityOwner, new: UpsertEntityRequest, res: Resources) -> tuple[Vector | None, bool]:
    """The vector of name and description (None while the embedder is unavailable), and whether one of them changes."""
    async with res.db.read(owner.workspace_id) as session:
        known = await entities.find_id(session, owner, new.name)
        stored = await entities.get(session, EntityScope(owner.workspace_id, None), known) if known else None
    if stored is not None and new.description in (None, stored.description):
        return None, False
    name = stored.name if stored else new.name
    return await res.embed_now(owner.workspace_id, entities.embedded_text(name, new.description)), True


async def _find_or_create(
    write: Write, owner: EntityOwner, new: UpsertEntityRequest, res: Resources
) -> tuple[UUID, bool]:
    session = write.session
    entity_id = await entities.find_id(session, owner, new.name)
    if entity_id is None and write.call.expected is None:
        created = await entities.create(session, owner, new, now=res.clock())
        if created is not None:
            return created, True
        entity_id = await entities.find_id(session, owner, new.name)
    version = (await entities.lock(session, [entity_id])).get(entity_id) if entity_id else None
    write.check_version(version, "entity")
    if entity_id is None or version is None:
        raise Conflict("The entity was just deleted; try again.", field="name")
    return entity_id, False


async def remove(scope: EntityScope, entity_id: UUID, res: Resources, call: Call) -> Entity:
    """Removes an entity with its aliases, relations and mentions; memories stay. Raises NotFound or
    PreconditionFailed."""
    async with plain_transaction(scope.workspace_id, res, call) as write:
        versions = await entities.lock(write.session, [entity_id])
        stored = await entities.get(write.session, scope, entity_id)
        if entity_id not in versions or stored is None:
            raise entity_not_found()
        write.check_version(versions[entity_id], "entity")
        await entities.remove(write.session, [entity_id])
        await write.audit("delete_entity", _scope(stored, scope.workspace_id), [entity_id])
        return await write.answer(stored, of_user=stored.user_id)


async def relate(
    workspace_id: UUID, new: CreateEntityRelationRequest, res: Resources, call: Call
) -> tuple[EntityRelation, bool]:
    """Returns the relation, and whether it is new; an existing one of the same pair and type gets the new values.
    Raises NotFound naming the end that does not exist, InvalidInput for one entity, or entities of two users."""
    if new.source_id == new.target_id:
        raise InvalidInput("target_id: an entity cannot be related to itself.", field="target_id")
    label = await clean_words(new.type, "type", res)
    kind = normalise_label(label)
    if not kind:
        raise InvalidInput("type: needs a letter.", field="type")
    properties, _ = await pii.clean_object(new.properties, "properties", res)
    ids = [new.source_id, new.target_id]
    async with plain_transaction(workspace_id, res, call) as write:
        ends = await entity_relations.lock_ends(write.session, ids)
        for field, end in zip(("source_id", "target_id"), ids, strict=True):
            if end not in ends:
                raise entity_not_found(field)
        users = {end.user_id for end in ends.values() if end.user_id is not None}
        if len(users) > 1:
            raise InvalidInput("target_id: belongs to another user.", field="target_id")
        source, target = (ends[end].name for end in ids)
        stored_as = {"label": label, "type": kind, "properties": properties, "source": source, "target": target}
        stored, is_new = await entity_relations.put(write.session, {**dict(new), **stored_as}, now=res.clock())
        scope = Scope(workspace_id, next(iter(users), None))
        await write.audit("relate_entities", scope, ids, strength=new.strength)
        return await write.answer((stored, is_new), of_user=scope.user_id)


async def unrelate(
    workspace_id: UUID, source_id: UUID, target_id: UUID, label: str | None, res: Resources, call: Call
) -> int:
    """Removes relations from source to target; returns how many. Raises NotFound for an unknown source."""
    kind = normalise_label(await clean_words(label, "type", res)) if label is not None else None  # as it was stored
    async with plain_transaction(workspace_id, res, call) as write:
        ends = await entity_relations.lock_ends(write.session, [source_id, target_id])
        if source_id not in ends:
            raise entity_not_found("source_id")
        removed = await entity_relations.remove(write.session, source_id, target_id, kind)
        scope = Scope(workspace_id, ends[source_id].user_id, channel=ends[source_id].channel)
        if removed:
            await write.audit("unrelate_entities", scope, [source_id, target_id])
        return await write.answer(removed, of_user=scope.user_id)


async def merge(workspace_id: UUID, absorbed: UUID, survivor: UUID, res: Resources, call: Call) -> Entity:
    """Merges one entity into another, and returns that: it gets the names as aliases, the mentions and the relations.
    Raises NotFound naming the one that does not exist, InvalidInput for one entity, or entities of two users, Conflict
    for one with relations outside the wall."""
    if absorbed == survivor:
        raise InvalidInput("target_id: an entity cannot be merged into itself.", field="target_id")
    everything = EntityScope(workspace_id, None)
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        known = await entities.get_many(session, everything, [absorbed, survivor])
        if survivor not in known:  # without its user there is no lock to wait for
            raise entity_not_found("source_id" if absorbed not in known else "target_id")
        await merges.lock_merges(session, known[survivor].user_id)
        await merges.lock_memories(session, absorbed)
        await entities.lock(session, [absorbed, survivor])
        both = await entities.get_many(session, everything, [absorbed, survivor])
        for field, each in (("source_id", absorbed), ("target_id", survivor)):
            if each not in both:
                raise entity_not_found(field)
        if both[absorbed].user_id != both[survivor].user_id:
            raise InvalidInput("target_id: belongs to another user.", field="target_id")
        if await merges.has_hidden_edges(session, absorbed):
            raise Conflict("source_id: the entity has relations that this key cannot see.", field="source_id")
        await merges.merge(session, absorbed, survivor, now=res.clock())
        merged = await entities.get(session, everything, survivor)
        assert merged is not None, "it is locked"
        ids = [absorbed, survivor]
        await write.audit("merge_entities", _scope(merged, workspace_id), ids)
        return await write.answer(merged, of_user=merged.user_id)


def _scope(of: Entity, workspace_id: UUID) -> Scope:
    return Scope(workspace_id, of.user_id, channel=of.channel)


# -- reading ----------------------------------------------------------------------------------------------------------

MIN_SIMILARITY = 0.5
"""Minimum score of an entity that was found by its vector only."""

MAX_NODES = 500  # in the response of a walk, or on each side of a path: a hub has thousands of neighbours


async def list_entities(
    scope: Scope,
    res: Resources,
    *,
    kind: str | None,
    conversation: str | None,
    after: tuple[str, UUID] | None,
    limit: int,
) -> list[tuple[str, Entity]]:
    """The next entities of a scope by name, each with its key for the next page. `conversation`: only entities that it
    mentions. Raises NotFound."""
    async with res.db.snapshot(scope.workspace_id) as session:
        talk = (await find_conversation(session, scope, conversation, "conversation_id")).id if conversation else None
        entity_scope = EntityScope(scope.workspace_id, scope)
        return await entities.page(session, entity_scope, kind=kind, conversation_id=talk, after=after, limit=limit)


@dataclass(frozen=True, slots=True)
class EntityHit:
    """An entity found by a search: `score` is the greater of the name match and `similarity`."""

    entity: Entity
    score: float
    similarity: float | None


async def search(
    scope: EntityScope, query: CleanText, res: Resources, *, kind: str | None, limit: int, counts: bool
) -> tuple[list[EntityHit], list[str]]:
    """The best entities by name or meaning, and warnings. `counts`: whether this counts as a use."""
    vector = await res.embed_query_now(scope.workspace_id, query)
    warnings = [] if vector is not None else ["embedding_unavailable: only names were searched."]
    async with res.db.begin(scope.workspace_id) as session:
        found = await entities.search(session, scope, query, vector, kind=kind, generation=res.generation, limit=limit)
        hits = []
        for entity, fit, cosine in found:
            similarity = None if cosine is None else res.embedder.query_similarity(cosine)
            score = max(fit, similarity or 0.0)
            if fit > 0 or score >= MIN_SIMILARITY:
                hits.append(EntityHit(entity, score, similarity))
        hits.sort(key=lambda hit: (-hit.score, -hit.entity.mentions, hit.entity.name))
        if counts:
            await entities.count_read(session, [hit.entity.id for hit in hits[:limit]], now=res.clock())
    return hits[:limit], warnings


async def read(scope: EntityScope, entity_id: UUID, res: Resources, *, field: str = "id") -> Entity:
    """The entity; raises NotFound when it does not exist or is outside the scope."""
    async with res.db.read(scope.workspace_id) as session:
        entity = await entities.get(session, scope, entity_id)
    if entity is None:
        raise entity_not_found(field)
    return entity


async def relations_of(
    scope: EntityScope,
    name: str,
    edges: EdgeFilter,
    res: Resources,
    *,
    after: EdgePlace | None,
    limit: int,
    counts: bool,
) -> tuple[list[Entity], list[EntityRelation]]:
    """The entities with this name or id, and their relations, strongest first. Raises NotFound."""
    async with res.db.begin(scope.workspace_id) as session:
        named, as_id = await entities.by_names(session, scope, [name]), uuid_or_none(name)
        if not named and as_id:
            named = list((await entities.get_many(session, scope, [as_id])).values())
        if not named:
            raise NotFound("There is no entity with this name.", field="name")
        named.sort(key=lambda entity: entity.id)
        ids = [entity.id for entity in named]
        relations = await entity_relations.page(session, ids, edges, after=after, limit=limit)
        if counts:
            await entities.count_read(session, ids, now=res.clock())
    return named, relations


async def read_graph(
    scope: EntityScope, starts: list[UUID], edges: EdgeFilter, res: Resources, *, depth: int, limit: int, counts: bool
) -> tuple[list[tuple[int, Entity]], list[EntityRelation], bool]:
    """At most `limit` entities near the starts, each with its depth, the relations between them, and whether there are
    more. Raises NotFound."""
    workspace_id = scope.workspace_id
    async with res.db.begin(workspace_id) as session:
        if set(starts) - (await entities.get_many(session, scope, starts)).keys():
            raise entity_not_found("ids")
        walk = await entity_relations.neighbourhood(session, starts, edges, depth=depth, limit=limit)
        get_many = partial(entities.get_many, session, EntityScope(workspace_id, None))
        by_id, count = await direct.page_of_ids(list(walk.depths), get_many)
        if counts:
            await entities.count_read(session, starts, now=res.clock())
    nodes = [(away, by_id[entity_id]) for entity_id, away in walk.depths.items() if entity_id in by_id]
    relations = [edge for edge in walk.relations if {edge.source_id, edge.target_id} <= by_id.keys()]
    return nodes, relations, walk.truncated or count < len(walk.depths)


async def find_path(
    scope: EntityScope, source_id: UUID, target_id: UUID, edges: EdgeFilter, res: Resources, *, max_edges: int
) -> tuple[EntityPath, list[Entity]]:
    """A shortest path with its entities in its order. Raises NotFound naming the end."""
    await read(scope, source_id, res, field="source_id")
    await read(scope, target_id, res, field="target_id")
    workspace_id = scope.workspace_id
    async with res.db.snapshot(workspace_id) as session:
        way = await entity_relations.shortest_path(
            session, source_id, target_id, edges, max_edges=max_edges, max_nodes=MAX_NODES
        )
        nodes = await entities.get_many(session, EntityScope(workspace_id, None), way.entity_ids)
    return way, [nodes[entity_id] for entity_id in way.entity_ids]
