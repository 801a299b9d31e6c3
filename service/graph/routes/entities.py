"""Routes for entities and their relations."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import FiniteFloat

from service.domain.entity import Entity, EntityOwner, EntityRelation, type_name
from service.domain.errors import InvalidInput
from service.graph import entity
from service.graph.entity_scope import EdgeFilter, EntityScope
from service.graph.models import (
    CreateEntityRelationRequest,
    DeletedEntityResponse,
    EntityGraphNode,
    EntityGraphResponse,
    EntityPage,
    EntityPathResponse,
    EntityRelationPage,
    EntityRelationResponse,
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
    CursorOf,
    Deleter,
    Reader,
    ResourcesOf,
    RunId,
    ScopeOf,
    UserId,
    Writer,
    list_scope,
    scope_of,
)
from service.http.json_body import JsonRoute
from service.http.narrowing import Comma
from service.http.preconditions import VersionedCallOf, uuid_of
from service.http.query_parameters import REPEATABLE, split
from service.http.reads import AuditReadOf, CountsOf
from service.http.schemas import Channel, Filled, Time, embedding_vector
from service.http.writes import CallOf, answer, count_response, send, sends, sends_new
from service.language.relations import normalise_label
from service.runtime.pii import clean_words

router = APIRouter(prefix="/v1/entities", tags=["entities"], route_class=JsonRoute)

MAX_PATH_EDGES = 6
MAX_STARTS, MAX_TYPES = 50, 20
DEFAULT_NODES = 100


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


async def _edge_filter(
    res: ResourcesOf,
    types: Annotated[list[Comma] | None, Query(max_length=MAX_TYPES, description=f"{REPEATABLE}; any spelling")] = None,
    valid_at: Annotated[Time | None, Query(description="Relations valid at this moment; default now")] = None,
    include_invalid: Annotated[bool, Query(description="Include relations that are not valid at that moment")] = False,
) -> EdgeFilter:
    wanted = tuple(dict.fromkeys(normalise_label(part) for part in split(types, "types")))
    if "" in wanted or len(wanted) > MAX_TYPES:
        raise InvalidInput(f"types: at most {MAX_TYPES} are allowed, and each must contain a letter.", field="types")
    return EdgeFilter(None if include_invalid else valid_at or res.clock(), wanted)


EdgeFilterOf = Annotated[EdgeFilter, Depends(_edge_filter)]
"""The relations that a request follows."""


# -- relations: before entities, or "graph" would be taken for an id --------------------------------------------------


@router.get(
    "/{name:path}/relations", summary="List the relations of an entity by its name", responses=errors.document(404)
)
async def list_entity_relations(
    name: Annotated[str, Path(min_length=1, max_length=255, description="Name, alias or id; case-insensitive")],
    caller: Reader,
    res: ResourcesOf,
    counts: CountsOf,
    scope: ScopeVisibleOf,
    edges: EdgeFilterOf,
    cursor: CursorOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> EntityRelationPage:
    """Relations in both directions, strongest first. Without scope ids, those of every entity with this name in the
    workspace."""
    after = cursor.key(FiniteFloat, UUID, UUID)
    named, relations = await entity.relations_of(scope, name, edges, res, after=after, limit=limit + 1, counts=counts)
    page, last = cursors.cut(relations, limit)
    more = None
    if last:
        far = last.target_id if last.source_id in {each.id for each in named} else last.source_id
        more = cursor.pack(last.strength, far, last.id)
    results = [EntityRelationResponse.of(relation) for relation in page]
    return EntityRelationPage(entities=[EntityResponse.of(each) for each in named], results=results, next_cursor=more)


@router.post(
    "/relations",
    summary="Create a relation between two entities",
    status_code=201,
    responses={
        200: {"model": EntityRelationResponse, "description": "The relation existed and was updated"},
        **errors.document(404),
    },
)
@sends_new(EntityRelationResponse.of)
async def create_entity_relation(
    body: CreateEntityRelationRequest, caller: Changer, res: ResourcesOf, call: CallOf
) -> tuple[EntityRelation, bool]:
    """Reads from source to target: Alice works_at Acme. There is one relation per pair and type; creating it again
    updates it."""
    return await entity.relate(caller.workspace_id, body, res, call)


@router.delete("/relations", summary="Delete relations between two entities", responses=errors.document(404))
@sends(count_response)
async def delete_entity_relation(
    caller: Writer,
    res: ResourcesOf,
    call: CallOf,
    source_id: UUID,
    target_id: UUID,
    type: Annotated[str | None, Query(min_length=1, max_length=200, description="Default: every type")] = None,
) -> int:
    """Deletes the relations from source to target; without any, 0 are deleted."""
    return await entity.unrelate(caller.workspace_id, source_id, target_id, type, res, call)


@router.get(
    "/graph",
    summary="Get the neighbourhood of entities",
    response_model=EntityGraphResponse,
    responses=errors.document(404),
)
async def get_entity_graph(
    caller: Reader,
    res: ResourcesOf,
    counts: CountsOf,
    scope: VisibleOf,
    edges: EdgeFilterOf,
    ids: Annotated[list[Comma], Query(max_length=MAX_STARTS, description=REPEATABLE)],
    depth: Annotated[int, Query(ge=1, le=3, description="Number of edges to follow, in both directions")] = 2,
    limit: Annotated[int, Query(ge=1, le=entity.MAX_NODES, description="Maximum number of nodes")] = DEFAULT_NODES,
) -> Response:
    """Follows the 50 strongest relations of each node; `truncated` says whether there are more, or more nodes than fit
    the response."""
    starts = _ids(ids)
    max_nodes = max(limit, len(starts))
    nodes, relations, more = await entity.read_graph(
        scope, starts, edges, res, depth=depth, limit=max_nodes, counts=counts
    )
    page, last = cursors.cut(relations, len(relations))
    body = EntityGraphResponse(
        nodes=[EntityGraphNode.of(node, depth=away) for away, node in nodes],
        relations=[EntityRelationResponse.of(relation) for relation in page],
        truncated=more or last is not None,
    )
    return send(answer(200, body))  # validated once: a response has hundreds of rows


@router.get("/path", summary="Find a shortest path between two entities", responses=errors.document(404))
async def find_entity_path(
    caller: Reader,
    res: ResourcesOf,
    scope: VisibleOf,
    edges: EdgeFilterOf,
    source_id: UUID,
    target_id: UUID,
    max_depth: Annotated[int, Query(ge=1, le=MAX_PATH_EDGES)] = 4,
) -> EntityPathResponse:
    """Edges are followed in both directions. Without a path, `found` is false."""
    way, nodes = await entity.find_path(scope, source_id, target_id, edges, res, max_edges=max_depth)
    return EntityPathResponse(
        found=bool(nodes),
        length=len(way.relations) if nodes else None,
        nodes=[EntityResponse.of(node) for node in nodes],
        relations=[EntityRelationResponse.of(relation) for relation in way.relations],
        truncated=way.truncated,
    )


def _ids(given: list[str]) -> list[UUID]:
    parts = split(given, "ids")
    if len(parts) > MAX_STARTS:
        raise InvalidInput(f"ids: at most {MAX_STARTS}.", field="ids")
    try:
        return list(dict.fromkeys(UUID(part) for part in parts))
    except ValueError:
        raise entity.entity_not_found("ids") from None


# -- entities ---------------------------------------------------------------------------------------------------------


@router.post("", summary="List the entities of a scope", responses=errors.document(404))
async def list_entities(body: ListEntitiesRequest, caller: Reader, res: ResourcesOf) -> EntityPage:
    """Entities are listed by name. agent_id and run_id select entities that memories of that agent or run mention,
    conversation_id those that memories extracted from its turns mention."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    scope = list_scope(scope, caller, body.channel)
    cursor = cursors.Cursor("entities", body.cursor)
    key = cursor.key(UUID, str)
    after = (key[1], key[0]) if key else None
    kind = type_name(body.type) if body.type else None
    entities = await entity.list_entities(
        scope, res, kind=kind, conversation=body.conversation_id, after=after, limit=body.limit + 1
    )
    page, last = cursors.cut(entities, body.limit)
    more = cursor.pack(last[1].id, last[0]) if last else None
    return EntityPage(results=[EntityResponse.of(each) for _, each in page], next_cursor=more)


@router.put(
    "",
    summary="Create an entity, or add to the one with this name",
    responses={201: {"model": EntityResponse, "description": "Created"}},
)
@sends_new(EntityResponse.of)
async def upsert_entity(
    body: UpsertEntityRequest, caller: Changer, res: ResourcesOf, call: VersionedCallOf
) -> tuple[Entity, bool]:
    """An entity is identified by user, channel and name, ignoring case; an alias matches too."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    owner = EntityOwner(caller.workspace_id, scope.user_id, scope.channel)
    vector = embedding_vector(body.embedding, res.embedder.dimension)
    return await entity.upsert(owner, body, vector, res, call)


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
    caller.check_channels(channels or ())
    wanted = await clean_words(query, "query", res)
    entity_scope = EntityScope(caller.workspace_id, scope, channels=tuple(channels or ()))
    kind = type_name(type) if type else None
    found, warnings = await entity.search(entity_scope, wanted, res, kind=kind, limit=limit, counts=counts)
    hits, more = cursors.cut(found, limit)
    if more:
        warnings.append(f"limit: the first {len(hits)} entities fill the answer.")
    shown = [hit.entity for hit in hits]
    note("entities/search", scope, shown, query=wanted, subject="entity", channels=channels or (), limit=limit)
    results = [EntitySearchHit.of(hit.entity, score=hit.score, similarity=hit.similarity) for hit in hits]
    return EntitySearchResponse(results=results, warnings=warnings)


@router.get("/{id}", summary="Get an entity")
@sends(EntityResponse.of)
async def get_entity(id: str, caller: Reader, res: ResourcesOf, scope: VisibleOf) -> Entity:
    """Scope ids are optional; those given must match the entity's."""
    return await entity.read(scope, uuid_of(id, "entity"), res)


def deleted_entity_response(removed: Entity) -> DeletedEntityResponse:
    return DeletedEntityResponse(id=removed.id, deleted=True)


@router.delete("/{id}", summary="Delete an entity")
@sends(deleted_entity_response)
async def delete_entity(id: str, caller: Deleter, res: ResourcesOf, call: VersionedCallOf, scope: VisibleOf) -> Entity:
    """Also deletes its aliases, relations and mentions. The memories stay, and a later text can create it again."""
    return await entity.remove(scope, uuid_of(id, "entity"), res, call)


@router.post("/merge", summary="Merge one entity into another", responses=errors.document(404))
@sends(EntityResponse.of)
async def merge_entities(body: MergeEntitiesRequest, caller: Changer, res: ResourcesOf, call: CallOf) -> Entity:
    """The source's names become aliases of the target, and its mentions and relations move to it; a relation that the
    target already has is not duplicated. Returns the target. This cannot be undone."""
    return await entity.merge(caller.workspace_id, body.source_id, body.target_id, res, call)
