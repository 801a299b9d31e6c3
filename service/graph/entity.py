"""Entities written through the API: created or changed, related, merged and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.entity import Entity, EntityOwner, EntityRelation, EntityUpsert, display_name, key, type_name
from service.domain.errors import Conflict, InvalidInput, NotFound, TooLarge
from service.domain.request import Call, Expected, check_version
from service.domain.scope import Scope
from service.domain.sizes import MAX_ALIASES, check_merged
from service.graph.entity_scope import EntityScope
from service.graph.statements import entities, entity_relations, merges
from service.language.relations import normalise_label
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.runtime import pii
from service.runtime.deferred_vectors import embed_now
from service.runtime.pii import clean_words
from service.runtime.resources import Resources
from service.runtime.transactions import plain_transaction


def entity_not_found(field: str = "id") -> NotFound:
    return NotFound("There is no entity with this id." if field == "id" else f"{field}: no such entity.", field=field)


async def upsert(
    owner: EntityOwner,
    new: EntityUpsert,
    vector: Vector | None,
    res: Resources,
    call: Call,
    *,
    expected: Expected | None = None,
) -> tuple[Entity, bool]:
    """Creates or changes the entity with this name or alias; returns it, and whether it is new. Unless given, its
    vector is made from name and description. Raises Conflict for an alias of another entity, PreconditionFailed for
    another version."""
    new = await _clean(new, res)
    vector, is_changed = (vector, True) if vector is not None else await _vector(owner, new, res)
    async with plain_transaction(owner.workspace_id, res, call) as write:
        session = write.session
        entity_id, is_new = await _find_or_create(session, owner, new, res, expected)
        stored = await entities.get(session, EntityScope(owner.workspace_id, None), entity_id)
        assert stored is not None, "it is locked"
        aliases = {key(alias): alias for alias in new.aliases if key(alias) != key(stored.name)}
        if await entities.is_any_taken(session, owner, entity_id, aliases):
            raise Conflict("aliases: one of them is another entity's name; merge the two instead.", field="aliases")
        if len({*map(key, stored.aliases), *aliases}) > MAX_ALIASES:
            raise TooLarge(f"aliases: an entity has at most {MAX_ALIASES}.", field="aliases")
        check_merged("properties", {**stored.properties, **new.properties})
        await entities.add_aliases(session, owner, entity_id, aliases)
        await entities.change(session, owner, entity_id, new, now=res.clock(), is_new=is_new)
        if is_changed:
            await entities.LATE_VECTORS.replace(session, entity_id, vector, generation=res.generation)
        entity = await entities.get(session, EntityScope(owner.workspace_id, None), entity_id)
        assert entity is not None, "it is locked"
        await write.audit("upsert_entity", _scope(entity, owner.workspace_id), [entity_id])
        return await write.answer((entity, is_new))


async def _clean(new: EntityUpsert, res: Resources) -> EntityUpsert:
    names = [await clean_words(display_name(alias), "aliases", res) for alias in new.aliases]
    properties, _ = await pii.clean_object(new.properties, "properties", res)
    return replace(
        new,
        name=await clean_words(display_name(new.name), "name", res),
        type=type_name(await clean_words(new.type, "type", res)) if new.type else None,
        description=await clean_words(new.description, "description", res) if new.description else None,
        aliases=tuple(names),
        properties=properties,
    )


async def _vector(owner: EntityOwner, new: EntityUpsert, res: Resources) -> tuple[Vector | None, bool]:
    """The vector of name and description (None while the embedder is unavailable), and whether one of them changes."""
    async with res.db.read(owner.workspace_id) as session:
        known = await entities.find_id(session, owner, new.name)
        stored = await entities.get(session, EntityScope(owner.workspace_id, None), known) if known else None
    if stored is not None and new.description in (None, stored.description):
        return None, False
    name = stored.name if stored else new.name
    return await embed_now(owner.workspace_id, entities.embedded_text(name, new.description), res), True


async def _find_or_create(
    session: Session, owner: EntityOwner, new: EntityUpsert, res: Resources, expected: Expected | None
) -> tuple[UUID, bool]:
    entity_id = await entities.find_id(session, owner, new.name)
    if entity_id is None and expected is None:
        created = await entities.create(session, owner, new, now=res.clock())
        if created is not None:
            return created, True
        entity_id = await entities.find_id(session, owner, new.name)
    version = (await entities.lock(session, [entity_id])).get(entity_id) if entity_id else None
    check_version(version, expected, "entity")
    if entity_id is None or version is None:
        raise Conflict("The entity was just deleted; try again.", field="name")
    return entity_id, False


async def remove(
    seen: EntityScope, entity_id: UUID, res: Resources, call: Call, *, expected: Expected | None = None
) -> Entity:
    """Removes an entity with its aliases, relations and mentions; memories stay. Raises NotFound or
    PreconditionFailed."""
    async with plain_transaction(seen.workspace_id, res, call) as write:
        versions = await entities.lock(write.session, [entity_id])
        stored = await entities.get(write.session, seen, entity_id)
        if entity_id not in versions or stored is None:
            raise entity_not_found()
        check_version(versions[entity_id], expected, "entity")
        await entities.remove(write.session, [entity_id])
        await write.audit("delete_entity", _scope(stored, seen.workspace_id), [entity_id])
        return await write.answer(stored, of_user=stored.user_id)


@dataclass(frozen=True, slots=True)
class ShownRelation:
    """A relation with the names of its ends and some of the memories that state it."""

    relation: EntityRelation
    source: str
    target: str
    memory_ids: Sequence[UUID] = ()


async def relate(workspace_id: UUID, given: EntityRelation, res: Resources, call: Call) -> tuple[ShownRelation, bool]:
    """Returns the relation, and whether it is new; an existing one of the same pair and type gets the new values.
    Raises NotFound naming the end that does not exist, InvalidInput for one entity, or entities of two users."""
    if given.source_id == given.target_id:
        raise InvalidInput("target_id: an entity cannot be related to itself.", field="target_id")
    label = await clean_words(given.label, "type", res)
    kind = normalise_label(label)
    if not kind:
        raise InvalidInput("type: needs a letter.", field="type")
    properties, _ = await pii.clean_object(given.properties, "properties", res)
    clean = replace(given, id=uuid7(), label=label, type=kind, properties=properties)
    async with plain_transaction(workspace_id, res, call) as write:
        ends = await entity_relations.lock_ends(write.session, [clean.source_id, clean.target_id])
        for field, end in (("source_id", clean.source_id), ("target_id", clean.target_id)):
            if end not in ends:
                raise entity_not_found(field)
        users = {end.user_id for end in ends.values() if end.user_id is not None}
        if len(users) > 1:
            raise InvalidInput("target_id: belongs to another user.", field="target_id")
        stored, is_new = await entity_relations.put(write.session, clean, now=res.clock())
        scope = Scope(workspace_id, next(iter(users), None))
        ids = [clean.source_id, clean.target_id]
        await write.audit("relate_entities", scope, ids, strength=clean.strength)
        shown = ShownRelation(stored, ends[clean.source_id].name, ends[clean.target_id].name)
        return await write.answer((shown, is_new), of_user=scope.user_id)


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
    Raises NotFound naming the one that does not exist, InvalidInput for one entity, or entities of two users."""
    if absorbed == survivor:
        raise InvalidInput("target_id: an entity cannot become part of itself.", field="target_id")
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
        await merges.merge(session, absorbed, survivor, now=res.clock())
        merged = await entities.get(session, everything, survivor)
        assert merged is not None, "it is locked"
        ids = [absorbed, survivor]
        await write.audit("merge_entities", _scope(merged, workspace_id), ids)
        return await write.answer(merged, of_user=merged.user_id)


def _scope(of: Entity, workspace_id: UUID) -> Scope:
    return Scope(workspace_id, of.user_id, channel=of.channel)
