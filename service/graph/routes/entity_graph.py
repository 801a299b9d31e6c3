"""Relations of entities over HTTP: listed, created, deleted; neighbourhoods and shortest paths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response

from service.domain.entity import EntityRelation
from service.domain.errors import InvalidInput, NotFound
from service.domain.request import StoredAnswer
from service.graph import entity
from service.graph.routes.entities import ScopeVisibleOf, VisibleOf, require_visible
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
from service.graph.statements import entities, entity_relations, entity_walks
from service.graph.statements.entities import EntityScope
from service.graph.statements.entity_relations import EdgeFilter, EdgePageKey
from service.http import cursors, errors
from service.http.deps import Changer, Reader, ResourcesOf, Writer
from service.http.json_body import JsonRoute
from service.http.narrowing import Comma
from service.http.query_parameters import REPEATABLE, split
from service.http.reads import CountsOf
from service.http.schemas import DeletedCountResponse, Time
from service.http.writes import WriteOf, answer, deleted, send
from service.language.relation_labels import normalise
from service.postgres import direct
from service.postgres.engine import Session

router = APIRouter(prefix="/v1/entities", tags=["entities"], route_class=JsonRoute)

MAX_PATH_EDGES = 6
MAX_STARTS, MAX_TYPES = 50, 20
DEFAULT_NODES = 100
MAX_EVIDENCE = 5
"""Memories that are shown per relation."""


async def _conditions(
    res: ResourcesOf,
    types: Annotated[
        list[Comma] | None,
        Query(max_length=MAX_TYPES, description=f"{REPEATABLE}; any spelling"),
    ] = None,
    valid_at: Annotated[Time | None, Query(description="Relations that are valid at this moment; default now")] = None,
    include_invalid: Annotated[bool, Query(description="Also relations that are not valid at that moment")] = False,
) -> EdgeFilter:
    found = tuple(dict.fromkeys(normalise(part) for part in split(types, "types")))
    if "" in found or len(found) > MAX_TYPES:
        raise InvalidInput(f"types: at most {MAX_TYPES}, each with a letter.", field="types")
    return EdgeFilter(None if include_invalid else valid_at or res.clock(), found)


EdgeFilterOf = Annotated[EdgeFilter, Depends(_conditions)]
"""Which relations a request follows."""


@router.get(
    "/{name:path}/relations",
    summary="The relations of an entity, by its name",
    responses=errors.documented(400, 401, 403, 404, 503),
)
async def list_entity_relations(
    name: Annotated[str, Path(min_length=1, max_length=255, description="Name, alias or id; case does not count")],
    caller: Reader,
    res: ResourcesOf,
    counts: CountsOf,
    seen: ScopeVisibleOf,
    edges: EdgeFilterOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> EntityRelationPage:
    """Both directions, strongest first. Without ids of a scope: of every entity with this name in the workspace."""
    after = cursors.unpack(cursor, _place) if cursor else None
    async with res.db.begin(caller.workspace_id) as session:
        named = await entities.by_name(session, seen, name) or await _by_id(session, seen, name)
        if not named:
            raise NotFound("There is no entity with this name.", field="name")
        ids = [each.id for each in named]
        found = await entity_relations.page(session, caller.workspace_id, ids, edges, after=after, limit=limit + 1)
        page, last = cursors.cut(found, limit)
        relations = await _shown(session, caller.workspace_id, [each for each, _ in page])
        if counts:
            await entities.count_read(session, caller.workspace_id, ids, now=res.clock())
    more = None
    if last:
        edge, direction = last
        far = edge.target_id if direction == "out" else edge.source_id
        more = cursors.pack(f"{edge.strength!r}|{far}|{edge.id}")
    return EntityRelationPage(entities=[EntityResponse.of(each) for each in named], results=relations, next_cursor=more)


@router.post(
    "/relations",
    summary="Relate an entity to another",
    status_code=201,
    response_model=EntityRelationResponse,
    responses={
        200: {"model": EntityRelationResponse, "description": "It existed and takes the new values"},
        **errors.documented(400, 401, 403, 404, 409, 413, 422, 503),
    },
)
async def create_entity_relation(
    body: CreateEntityRelationRequest, caller: Changer, res: ResourcesOf, write: WriteOf
) -> Response:
    """Read from source to target: Alice works_at Acme. There is one per pair and type; repeating it takes the new
    values."""
    both = await require_visible(res, EntityScope(caller.workspace_id, None), [body.source_id], field="source_id")
    both |= await require_visible(res, EntityScope(caller.workspace_id, None), [body.target_id], field="target_id")
    names = {each.id: each.name for each in both.values()}
    new = EntityRelation(
        UUID(int=0),
        body.source_id,
        body.type,
        body.type,
        body.target_id,
        body.strength,
        body.confidence,
        body.properties,
        body.t_valid,
        body.t_invalid,
    )
    shown = partial(_related, names=names)
    return send(shown(await entity.relate(caller.workspace_id, new, res, write.answered_by(shown))))


def _related(found: tuple[EntityRelation, bool], names: Mapping[UUID, str]) -> StoredAnswer:
    return answer(201 if found[1] else 200, relation_response(found[0], names, []))


@router.delete(
    "/relations",
    summary="Delete relations between two entities",
    response_model=DeletedCountResponse,
    responses=errors.documented(400, 401, 403, 404, 503),
)
async def delete_entity_relation(
    caller: Writer,
    res: ResourcesOf,
    write: WriteOf,
    source_id: UUID,
    target_id: UUID,
    type: Annotated[str | None, Query(min_length=1, max_length=200, description="Left out: every type")] = None,
) -> Response:
    """Relations from source to target; 0 when there is none."""
    context = write.answered_by(deleted)
    return send(deleted(await entity.unrelate(caller.workspace_id, source_id, target_id, type, res, context)))


@router.get(
    "/graph",
    summary="The neighbourhood of entities",
    response_model=EntityGraphResponse,
    responses=errors.documented(400, 401, 403, 404, 503),
)
async def get_entity_graph(
    caller: Reader,
    res: ResourcesOf,
    counts: CountsOf,
    seen: VisibleOf,
    edges: EdgeFilterOf,
    ids: Annotated[list[Comma], Query(max_length=MAX_STARTS, description=REPEATABLE)],
    depth: Annotated[int, Query(ge=1, le=3, description="Edges to walk, in both directions")] = 2,
    limit: Annotated[int | None, Query(ge=1, description="Nodes; at most graph_max_nodes")] = None,
) -> Response:
    """Follows the 50 strongest relations of each node; `truncated`: there were more, or more than fits an answer."""
    starts = _ids(ids)
    max_nodes = max(min(limit or DEFAULT_NODES, res.settings.graph_max_nodes), len(starts))
    async with res.db.begin(caller.workspace_id) as session:
        if set(starts) - (await entities.get_many(session, seen, starts)).keys():
            raise entity.missing("ids")
        found = await entity_walks.neighbourhood(
            session, caller.workspace_id, starts, edges, depth=depth, limit=max_nodes
        )
        reached = [each.entity_id for each in found.reached]
        read = partial(entities.get_many, session, EntityScope(caller.workspace_id, None))
        nodes, count = await direct.page_of_ids(reached, read)
        names = {each.id: each.name for each in nodes.values()}
        between = [each for each in found.relations if {each.source_id, each.target_id} <= names.keys()]
        page, last = cursors.cut(between, len(between))
        relations = await _shown(session, caller.workspace_id, page, names)
        if counts:
            await entities.count_read(session, caller.workspace_id, starts, now=res.clock())
    body = EntityGraphResponse(
        nodes=[
            EntityGraphNode.of(nodes[each.entity_id], depth=each.depth)
            for each in found.reached
            if each.entity_id in nodes
        ],
        relations=relations,
        truncated=found.truncated or count < len(reached) or last is not None,
    )
    return send(answer(200, body))  # validated once: an answer holds hundreds of rows


@router.get(
    "/path", summary="A shortest path from one entity to another", responses=errors.documented(400, 401, 403, 404, 503)
)
async def find_entity_path(
    caller: Reader,
    res: ResourcesOf,
    seen: VisibleOf,
    edges: EdgeFilterOf,
    source_id: UUID,
    target_id: UUID,
    max_depth: Annotated[int, Query(ge=1, le=MAX_PATH_EDGES)] = 4,
) -> EntityPathResponse:
    """Edges count in both directions. When there is no path, `found` is false."""
    await require_visible(res, seen, [source_id], field="source_id")
    await require_visible(res, seen, [target_id], field="target_id")
    async with res.db.snapshot(caller.workspace_id) as session:
        found = await entity_walks.shortest_path(
            session,
            caller.workspace_id,
            source_id,
            target_id,
            edges,
            max_edges=max_depth,
            max_nodes=res.settings.graph_max_nodes,
        )
        nodes = await entities.get_many(session, EntityScope(caller.workspace_id, None), found.entity_ids)
        relations = await _shown(
            session, caller.workspace_id, found.relations, {each.id: each.name for each in nodes.values()}
        )
    return EntityPathResponse(
        found=bool(found.entity_ids),
        length=len(found.relations) if found.entity_ids else None,
        nodes=[EntityResponse.of(nodes[each]) for each in found.entity_ids],
        relations=relations,
        truncated=found.truncated,
    )


async def _shown(
    session: Session, workspace_id: UUID, found: Iterable[EntityRelation], names: Mapping[UUID, str] | None = None
) -> list[EntityRelationResponse]:
    """Relations with the names of their ends and the memories that state them."""
    edges = list(found)
    if not edges:
        return []
    if names is None:
        ends = {end for each in edges for end in (each.source_id, each.target_id)}
        names = await entities.names(session, workspace_id, ends)
    evidence = await entity_relations.evidence(session, workspace_id, [each.id for each in edges], each=MAX_EVIDENCE)
    return [
        relation_response(each, names, evidence.get(each.id, []))
        for each in edges
        if each.source_id in names and each.target_id in names
    ]


async def _by_id(session: Session, seen: EntityScope, name: str) -> list[Any]:
    try:
        found = await entities.get(session, seen, UUID(name))
    except ValueError:
        return []
    return [found] if found else []


def _ids(given: list[str]) -> list[UUID]:
    parts = [part.strip() for each in given for part in each.split(",") if part.strip()]
    if not parts:
        raise InvalidInput("ids: name at least one entity.", field="ids")
    if len(parts) > MAX_STARTS:
        raise InvalidInput(f"ids: at most {MAX_STARTS}.", field="ids")
    try:
        return list(dict.fromkeys(UUID(part) for part in parts))
    except ValueError:
        raise entity.missing("ids") from None


def _place(text: str) -> EdgePageKey:
    strength, far, last = text.split("|")
    found = EdgePageKey(float(strength), UUID(far), UUID(last))
    if not math.isfinite(found.strength):
        raise ValueError
    return found
