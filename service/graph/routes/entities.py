"""Routes for entities: create, change, search, delete, merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from service.domain.entity import Entity, EntityOwner, EntityUpsert, type_name
from service.domain.request import StoredAnswer
from service.graph import entity, reading
from service.graph.entity_scope import EntityScope
from service.graph.routes.entity_models import (
    DeletedEntityResponse,
    EntityPage,
    EntityResponse,
    EntitySearchHit,
    EntitySearchResponse,
    ListEntitiesRequest,
    MergeEntitiesRequest,
    UpsertEntityRequest,
)
from service.http import cursors, errors
from service.http.deps import (
    AgentId,
    CallerOf,
    Changer,
    ChannelName,
    Deleter,
    Reader,
    ResourcesOf,
    RunId,
    ScopeOf,
    UserId,
    list_scope,
    scope_of,
)
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf, uuid_of
from service.http.reads import AuditReadOf, CountsOf
from service.http.schemas import Channel, Filled, embedding_vector
from service.http.writes import CallOf, answer, send
from service.runtime.pii import clean_words

router = APIRouter(prefix="/v1/entities", tags=["entities"], route_class=JsonRoute)


async def _visibility(
    caller: CallerOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
) -> EntityScope:
    """The scope of a request by id: an entity is found in any channel; only the given ids restrict it."""
    if not any((user_id, agent_id, run_id)):
        return EntityScope(caller.workspace_id, None)
    scope = scope_of(caller, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, channel)
    return EntityScope(caller.workspace_id, replace(scope, every_channel=channel is None))


VisibleOf = Annotated[EntityScope, Depends(_visibility)]
"""The entities that a request by id may see."""


async def _scope_visibility(
    caller: CallerOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
) -> EntityScope:
    scope = scope_of(caller, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, channel, needs_id=False)
    return EntityScope(caller.workspace_id, scope if any((scope.user_id, scope.agent_id, scope.run_id)) else None)


ScopeVisibleOf = Annotated[EntityScope, Depends(_scope_visibility)]
"""The entities that a request by name may see: those of the scope, or of the whole workspace without one."""


@router.post("", summary="List the entities of a scope", responses=errors.document(404))
async def list_entities(body: ListEntitiesRequest, caller: Reader, res: ResourcesOf) -> EntityPage:
    """Entities are listed by name. agent_id and run_id select entities that memories of that agent or run mention,
    conversation_id those that memories extracted from its turns mention."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    scope = list_scope(scope, caller, body.channel)
    after = cursors.unpack(body.cursor, UUID, str)[::-1] if body.cursor else None
    kind = type_name(body.type) if body.type else None
    entities = await reading.list_entities(
        scope, res, kind=kind, conversation=body.conversation_id, after=after, limit=body.limit + 1
    )
    page, last = cursors.cut(entities, body.limit)
    more = cursors.pack(last[1].id, last[0]) if last else None
    return EntityPage(results=[EntityResponse.of(each) for _, each in page], next_cursor=more)


@router.put(
    "",
    summary="Create an entity, or add to the one with this name",
    response_model=EntityResponse,
    responses={201: {"model": EntityResponse, "description": "Created"}},
)
async def upsert_entity(
    body: UpsertEntityRequest, caller: Changer, res: ResourcesOf, call: CallOf, expected: ExpectedOf
) -> Response:
    """An entity is identified by user, channel and name, ignoring case; an alias matches too."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    owner = EntityOwner(caller.workspace_id, scope.user_id, scope.channel)
    vector = embedding_vector(body.embedding, res.embedder.dimension)
    new = EntityUpsert(body.name, body.type, body.description, tuple(body.aliases), body.properties, body.salience)
    return send(_answer(await entity.upsert(owner, new, vector, res, call.with_serializer(_answer), expected=expected)))


def _answer(upserted: tuple[Entity, bool]) -> StoredAnswer:
    return answer(201 if upserted[1] else 200, EntityResponse.of(upserted[0]))


@router.get("/search", summary="Search entities by name or meaning")
async def search_entities(
    caller: Reader,
    scope: ScopeOf,
    res: ResourcesOf,
    note: AuditReadOf,
    counts: CountsOf,
    query: Annotated[
        Filled, Query(min_length=1, max_length=1_000, description="A name or a description", examples=["acme"])
    ],
    type: Annotated[str | None, Query(max_length=50, description="Only this type, such as person or project")] = None,
    channels: Annotated[
        list[Channel] | None, Query(max_length=20, description="Channels to search in addition")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of results")] = 10,
) -> EntitySearchResponse:
    """Finds entities whose name or alias equals, starts with or contains the query, and entities whose name and
    description are similar to it."""
    wanted = await clean_words(query, "query", res)
    seen = EntityScope(caller.workspace_id, scope, channels=tuple(channels or ()))
    kind = type_name(type) if type else None
    found, warnings = await reading.search(seen, wanted, res, kind=kind, limit=limit, counts=counts)
    hits, more = cursors.cut(found, limit)
    if more:
        warnings.append(f"limit: the first {len(hits)} entities fill an answer.")
    shown = [hit.entity for hit in hits]
    note("entities/search", scope, shown, query=wanted, subject="entity", channels=channels or (), limit=limit)
    results = [EntitySearchHit.of(hit.entity, score=hit.score, similarity=hit.similarity) for hit in hits]
    return EntitySearchResponse(results=results, warnings=warnings)


@router.get("/{id}", summary="Get an entity", response_model=EntityResponse)
async def get_entity(id: str, caller: Reader, res: ResourcesOf, seen: VisibleOf) -> Response:
    """Scope ids are optional; those given must match the entity's."""
    return send(_answer_found(await reading.read(seen, uuid_of(id, "entity"), res)))


@router.delete("/{id}", summary="Delete an entity", response_model=DeletedEntityResponse)
async def delete_entity(
    id: str, caller: Deleter, res: ResourcesOf, call: CallOf, expected: ExpectedOf, seen: VisibleOf
) -> Response:
    """Also deletes its aliases, relations and mentions. The memories stay, and a later text can create it again."""
    call = call.with_serializer(_answer_removal)
    return send(_answer_removal(await entity.remove(seen, uuid_of(id, "entity"), res, call, expected=expected)))


def _answer_removal(removed: Entity) -> StoredAnswer:
    return answer(200, DeletedEntityResponse(id=removed.id, deleted=True))


@router.post(
    "/merge", summary="Merge one entity into another", response_model=EntityResponse, responses=errors.document(404)
)
async def merge_entities(body: MergeEntitiesRequest, caller: Changer, res: ResourcesOf, call: CallOf) -> Response:
    """The source's names become aliases of the target, and its mentions and relations move to it; a relation that the
    target already has is not duplicated. Returns the target. This cannot be undone."""
    context = call.with_serializer(_answer_found)
    return send(_answer_found(await entity.merge(caller.workspace_id, body.source_id, body.target_id, res, context)))


def _answer_found(known: Entity) -> StoredAnswer:
    return answer(200, EntityResponse.of(known))
