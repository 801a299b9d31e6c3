"""What leads from a memory to others, over HTTP: edges made on request, and walks along all of them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from service.api import errors
from service.api.change_models import (
    CreateRelationRequest,
    RelatedMemoryItem,
    RelatedMemoryPage,
    RelationName,
    RelationPage,
    RelationResponse,
)
from service.api.deps import Reader, ResourcesOf, Writer
from service.api.memory_models import memory_fields
from service.api.narrowing import split
from service.api.preconditions import OWN, ExpectedOf
from service.api.reads import NoteOf
from service.api.schemas import DeletedCountResponse
from service.api.writes import WriteOf, answer, send
from service.db.engine import Session
from service.db.graph import edges
from service.db.memories import memories
from service.domain.memory import Memory
from service.domain.relation import Relation, RelationType, WalkStep
from service.domain.request import StoredAnswer
from service.errors import InvalidInput
from service.memory.associate import associate, dissociate
from service.memory.transactions import memory_id, missing
from service.resources import Resources

router = APIRouter(prefix="/v1/memories/{id}", tags=["relations"], dependencies=OWN)


@router.get(
    "/related",
    operation_id="get_related_memories",
    summary="The memories around a memory",
    response_model=RelatedMemoryPage,
    responses=errors.documented(400, 401, 403, 404, 503),
)
async def get_related_memories(
    id: str,
    who: Reader,
    res: ResourcesOf,
    note: NoteOf,
    depth: Annotated[int, Query(ge=1, le=3, description="Edges to walk, whatever their direction")] = 2,
    types: Annotated[list[str] | None, Query(description="Repeatable, or one comma-separated list")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    include_archived: bool = False,
) -> RelatedMemoryPage:
    """The nearest first, then by the strength of the edge; each once. At most the 50 strongest edges of a memory are
    walked; `truncated` says when there was more."""
    way = edges.WalkOptions(depth, limit, types=_types(types), include_archived=include_archived)
    now = res.clock()
    async with res.db.snapshot(who.workspace_id) as session:
        start = await _start(session, who.workspace_id, memory_id(id), res)
        walk = await edges.walk(session, who.workspace_id, start.id, way, now=now)
        found = await memories.get_many(session, who.workspace_id, [step.memory_id for step in walk.steps])
    note("related", start.scope, list(found.values()), start=str(start.id), depth=depth, limit=limit)
    results = [
        RelatedMemoryItem(
            **memory_fields(found[step.memory_id]), depth=step.depth, relation=_relation(step.by, _near(step))
        )
        for step in walk.steps
    ]
    return RelatedMemoryPage(results=results, truncated=walk.truncated)


@router.get(
    "/relations",
    operation_id="list_relations",
    summary="The edges of a memory, in both directions",
    response_model=RelationPage,
    responses=errors.documented(400, 401, 403, 404, 503),
)
async def list_relations(
    id: str, who: Reader, res: ResourcesOf, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> RelationPage:
    """The strongest first, whether they hold now or not."""
    async with res.db.snapshot(who.workspace_id) as session:
        start = await _start(session, who.workspace_id, memory_id(id), res)
        found = await edges.of_memory(session, who.workspace_id, start.id, limit=limit)
    return RelationPage(results=[_relation(each, start.id) for each in found])


@router.post(
    "/relations",
    operation_id="create_relation",
    summary="Tie a memory to another",
    status_code=201,
    response_model=RelationResponse,
    responses={
        200: {"model": RelationResponse, "description": "The edge was there and has the new values"},
        **errors.documented(400, 401, 403, 404, 409, 412, 413, 422, 503),
    },
)
async def create_relation(
    id: str,
    body: CreateRelationRequest,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
) -> Response:
    """Read from here to there: this memory DERIVED_FROM the target, PREFERS_OVER it, is INVALIDATED_BY it. If-Match
    holds this memory to the version that was read."""
    source = memory_id(id)
    asked = Relation(
        source,
        RelationType(body.type),
        body.target_id,
        body.strength,
        body.properties,
        body.t_valid,
        body.t_invalid,
    )
    context = write.answered_by(created)
    result = await associate(who.workspace_id, asked, res, context, expected=expected)
    return send(created(result))


@router.delete(
    "/relations",
    operation_id="delete_relation",
    summary="Untie a memory from another",
    response_model=DeletedCountResponse,
    responses=errors.documented(400, 401, 403, 404, 412, 503),
)
async def delete_relation(
    id: str,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
    target_id: Annotated[str, Query(min_length=1, max_length=100)],
    type: Annotated[RelationName | None, Query(description="Left out: every type")] = None,
) -> Response:
    """Edges from here to the target; when there is none, that is fine."""
    source, target = memory_id(id), memory_id(target_id)
    kind = RelationType(type) if type else None
    context = write.answered_by(deleted)
    count = await dissociate(who.workspace_id, source, target, kind, res, context, expected=expected)
    return send(deleted(count))


def created(result: tuple[Relation, bool]) -> StoredAnswer:
    relation, is_new = result
    return answer(201 if is_new else 200, _relation(relation, relation.source_id))


def deleted(count: int) -> StoredAnswer:
    return answer(200, DeletedCountResponse(deleted=count))


async def _start(session: Session, workspace_id: UUID, wanted: UUID, res: Resources) -> Memory:
    found = await memories.get(session, workspace_id, wanted, alive_at=res.clock())
    if found is None:
        raise missing()
    return found


def _near(step: WalkStep) -> UUID:
    """The end of the edge that the walk came from."""
    return step.by.source_id if step.by.target_id == step.memory_id else step.by.target_id


def _types(given: list[str] | None) -> tuple[RelationType, ...]:
    named = [part.upper() for part in split(given, "types")]
    for name in named:
        if name not in set(RelationType):
            raise InvalidInput(f"types: must be among {', '.join(RelationType)}.", field="types")
    return tuple(dict.fromkeys(RelationType(name) for name in named))


def _relation(found: Relation, seen_from: UUID) -> RelationResponse:
    return RelationResponse(
        source_id=found.source_id,
        target_id=found.target_id,
        type=found.type,
        strength=found.strength,
        properties=dict(found.properties),
        t_valid=found.t_valid,
        t_invalid=found.t_invalid,
        created_at=found.created_at,
        direction="in" if found.target_id == seen_from else "out",
    )
