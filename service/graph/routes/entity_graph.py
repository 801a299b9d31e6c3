"""Routes for relations of entities: list, create, delete, neighbourhoods, shortest paths."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import FiniteFloat

from service.domain.entity import EntityRelation
from service.domain.errors import InvalidInput
from service.domain.request import StoredAnswer
from service.graph import entity, reading
from service.graph.entity import ShownRelation
from service.graph.entity_scope import EdgeFilter
from service.graph.routes.entities import ScopeVisibleOf, VisibleOf
from service.graph.routes.entity_models import (
    CreateEntityRelationRequest,
    EntityGraphNode,
    EntityGraphResponse,
    EntityPathResponse,
    EntityRelationPage,
    EntityRelationResponse,
    EntityResponse,
    relation_response,
)
from service.http import cursors, errors
from service.http.deps import Changer, Reader, ResourcesOf, Writer
from service.http.json_body import JsonRoute
from service.http.narrowing import Comma
from service.http.query_parameters import REPEATABLE, split
from service.http.reads import CountsOf
from service.http.schemas import DeletedCountResponse, Time
from service.http.writes import CallOf, answer, answer_count, send
from service.language.relations import normalise_label

router = APIRouter(prefix="/v1/entities", tags=["entities"], route_class=JsonRoute)

MAX_PATH_EDGES = 6
MAX_STARTS, MAX_TYPES = 50, 20
DEFAULT_NODES = 100


async def _conditions(
    res: ResourcesOf,
    types: Annotated[list[Comma] | None, Query(max_length=MAX_TYPES, description=f"{REPEATABLE}; any spelling")] = None,
    valid_at: Annotated[Time | None, Query(description="Relations valid at this moment; default now")] = None,
    include_invalid: Annotated[bool, Query(description="Include relations that are not valid at that moment")] = False,
) -> EdgeFilter:
    wanted = tuple(dict.fromkeys(normalise_label(part) for part in split(types, "types")))
    if "" in wanted or len(wanted) > MAX_TYPES:
        raise InvalidInput(f"types: at most {MAX_TYPES}, each with a letter.", field="types")
    return EdgeFilter(None if include_invalid else valid_at or res.clock(), wanted)


EdgeFilterOf = Annotated[EdgeFilter, Depends(_conditions)]
"""The relations that a request follows."""


@router.get(
    "/{name:path}/relations", summary="List the relations of an entity by its name", responses=errors.document(404)
)
async def list_entity_relations(
    name: Annotated[str, Path(min_length=1, max_length=255, description="Name, alias or id; case-insensitive")],
    caller: Reader,
    res: ResourcesOf,
    counts: CountsOf,
    seen: ScopeVisibleOf,
    edges: EdgeFilterOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> EntityRelationPage:
    """Relations in both directions, strongest first. Without scope ids, those of every entity with this name in the
    workspace."""
    after = cursors.unpack(cursor, FiniteFloat, UUID, UUID) if cursor else None
    named, relations = await reading.relations_of(seen, name, edges, res, after=after, limit=limit + 1, counts=counts)
    page, last = cursors.cut(relations, limit)
    more = None
    if last:
        edge, direction = last[0].relation, last[1]
        far = edge.target_id if direction == "out" else edge.source_id
        more = cursors.pack(edge.strength, far, edge.id)
    results = [relation_response(relation) for relation, _ in page]
    return EntityRelationPage(entities=[EntityResponse.of(each) for each in named], results=results, next_cursor=more)


@router.post(
    "/relations",
    summary="Create a relation between two entities",
    status_code=201,
    response_model=EntityRelationResponse,
    responses={
        200: {"model": EntityRelationResponse, "description": "The relation existed and was updated"},
        **errors.document(404),
    },
)
async def create_entity_relation(
    body: CreateEntityRelationRequest, caller: Changer, res: ResourcesOf, call: CallOf
) -> Response:
    """Reads from source to target: Alice works_at Acme. There is one relation per pair and type; creating it again
    updates it."""
    new = EntityRelation(UUID(int=0), label=body.type, **dict(body))
    call = call.with_serializer(_answer_relation)
    return send(_answer_relation(await entity.relate(caller.workspace_id, new, res, call)))


def _answer_relation(put: tuple[ShownRelation, bool]) -> StoredAnswer:
    return answer(201 if put[1] else 200, relation_response(put[0]))


@router.delete(
    "/relations",
    summary="Delete relations between two entities",
    response_model=DeletedCountResponse,
    responses=errors.document(404),
)
async def delete_entity_relation(
    caller: Writer,
    res: ResourcesOf,
    call: CallOf,
    source_id: UUID,
    target_id: UUID,
    type: Annotated[str | None, Query(min_length=1, max_length=200, description="Default: every type")] = None,
) -> Response:
    """Deletes the relations from source to target; without any, 0 are deleted."""
    call = call.with_serializer(answer_count)
    return send(answer_count(await entity.unrelate(caller.workspace_id, source_id, target_id, type, res, call)))


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
    seen: VisibleOf,
    edges: EdgeFilterOf,
    ids: Annotated[list[Comma], Query(max_length=MAX_STARTS, description=REPEATABLE)],
    depth: Annotated[int, Query(ge=1, le=3, description="Number of edges to follow, in both directions")] = 2,
    limit: Annotated[int, Query(ge=1, le=reading.MAX_NODES, description="Maximum number of nodes")] = DEFAULT_NODES,
) -> Response:
    """Follows the 50 strongest relations of each node; `truncated` says whether there are more, or more nodes than fit
    the response."""
    starts = _ids(ids)
    max_nodes = max(limit, len(starts))
    nodes, relations, more = await reading.graph(seen, starts, edges, res, depth=depth, limit=max_nodes, counts=counts)
    page, last = cursors.cut(relations, len(relations))
    body = EntityGraphResponse(
        nodes=[EntityGraphNode.of(node, depth=away) for away, node in nodes],
        relations=[relation_response(relation) for relation in page],
        truncated=more or last is not None,
    )
    return send(answer(200, body))  # validated once: a response has hundreds of rows


@router.get("/path", summary="Find a shortest path between two entities", responses=errors.document(404))
async def find_entity_path(
    caller: Reader,
    res: ResourcesOf,
    seen: VisibleOf,
    edges: EdgeFilterOf,
    source_id: UUID,
    target_id: UUID,
    max_depth: Annotated[int, Query(ge=1, le=MAX_PATH_EDGES)] = 4,
) -> EntityPathResponse:
    """Edges are followed in both directions. Without a path, `found` is false."""
    way, nodes, relations = await reading.path(seen, source_id, target_id, edges, res, max_edges=max_depth)
    return EntityPathResponse(
        found=bool(nodes),
        length=len(way.relations) if nodes else None,
        nodes=[EntityResponse.of(node) for node in nodes],
        relations=[relation_response(relation) for relation in relations],
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
