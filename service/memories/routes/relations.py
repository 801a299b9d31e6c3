"""Routes for relations between memories: create, list, delete, traverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import Field, model_validator

from service.domain.errors import InvalidInput
from service.domain.relation import Relation, RelationType, WalkOptions, WalkStep
from service.http.deps import CursorOf, Reader, ResourcesOf, Writer
from service.http.free_json import JsonObject
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.query_parameters import Several, split
from service.http.reads import AuditReadOf, DetailOf, send_json
from service.http.schemas import Id, NextCursor, RequestModel, ResponseModel, Time, Unit, check_period, example
from service.http.writes import CallOf, count_response, sends, sends_new
from service.memories import reading
from service.memories.associate import associate, dissociate
from service.memories.routes.memories import IN_SCOPE
from service.memories.routes.memory_models import MemoryItem, memory_item

router = APIRouter(prefix="/v1/memories/{id}", tags=["relations"], dependencies=IN_SCOPE, route_class=JsonRoute)


if TYPE_CHECKING:
    RelationName = str
else:  # a strict model refuses the name of an enum's member
    RelationName = Literal[tuple(map(str, RelationType))]


class CreateRelationRequest(RequestModel):
    """A relation from the memory in the path to `target_id`."""

    model_config = example(target_id="0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c", type="DERIVED_FROM")

    target_id: Id = Field(examples=["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"], description="UUID of the target memory")
    type: RelationName = Field(
        examples=["DERIVED_FROM"],
        description="Reads from source to target: the memory in the path is DERIVED_FROM the target",
    )
    strength: Unit = Field(1.0, description="0..1")
    properties: JsonObject = Field(default_factory=dict, description="Your own data about the relation")
    t_valid: Time | None = Field(None, description="Valid from this moment on; default: no start")
    t_invalid: Time | None = Field(None, description="Valid until this moment; default: no end")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        check_period(self.t_valid, self.t_invalid)
        return self


class RelationResponse(ResponseModel):
    """A relation between two memories, seen from the memory in the path."""

    source_id: Id = Field(description="UUID of the source memory")
    target_id: Id = Field(description="UUID of the target memory")
    type: RelationType = Field(description="Reads from source to target")
    strength: float = Field(description="0..1")
    properties: dict[str, Any] = Field(description="Your own data; for relations created by the service, the reason")
    t_valid: Time | None = Field(description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(description="Valid until this moment; null: no end")
    created_at: Time | None = Field(description="When it was created; null: unknown")
    direction: Literal["out", "in"] = Field(description="out: away from the memory in the path; in: towards it")


class RelationPage(ResponseModel):
    """Strongest first."""

    results: list[RelationResponse] = Field(description="At most `limit` relations")
    next_cursor: NextCursor = None


class RelatedMemoryItem(MemoryItem):
    """A memory connected to the one in the path."""

    depth: int = Field(description="Number of edges to the memory in the path, 1..3")
    relation: RelationResponse = Field(description="The last edge on the way, seen from the memory before it")


class RelatedMemoryPage(ResponseModel):
    """Nearest first, then strongest."""

    results: list[RelatedMemoryItem] = Field(description="At most `limit` memories, each once")
    truncated: bool = Field(
        description="Whether a memory has more than 50 edges or there are more memories than `limit`"
    )
    next_cursor: NextCursor = None


@router.get("/related", summary="List the memories around a memory", response_model=RelatedMemoryPage)
async def get_related_memories(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    cursor: CursorOf,
    depth: Annotated[int, Query(ge=1, le=3, description="Number of edges to follow, in both directions")] = 2,
    types: Several = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    include_archived: bool = False,
    detail: DetailOf = "lean",
) -> Response:
    """Nearest first, then by strength of the edge; each memory once. Follows at most the 50 strongest edges of each
    memory; `truncated` says whether there are more."""
    (skip,) = cursor.counts()
    options = WalkOptions(depth, limit, types=_types(types), include_archived=include_archived)
    start, walk, memories, count = await reading.walk(
        caller.workspace_id, uuid_of(id), options, res, skip=skip, detail=detail
    )
    note("related", start.scope, list(memories.values()), start=str(start.id), depth=depth, limit=limit)
    results = [
        {
            **memory_item(memories[step.memory_id], detail),
            "depth": step.depth,
            "relation": _relation(step.by, _other_end(step)),
        }
        for step in walk.steps[skip:][:count]
    ]
    more = cursor.pack(skip + count) if skip + count < len(walk.steps) else None
    return send_json({"results": results, "truncated": walk.truncated, "next_cursor": more})


@router.get("/relations", summary="List the relations of a memory")
async def list_relations(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    cursor: CursorOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> RelationPage:
    """Strongest first, including relations that are not valid now."""
    before, start = cursor.counts(), uuid_of(id)
    relations = await reading.relations(caller.workspace_id, start, res, skip=before[0], limit=limit + 1)
    (page,), more = cursor.cut_each(limit, relations)
    return RelationPage(results=[_relation(each, start) for each in page], next_cursor=more)


def relation_response(relation: Relation) -> RelationResponse:
    return _relation(relation, relation.source_id)


@router.post(
    "/relations",
    summary="Create a relation between two memories",
    status_code=201,
    responses={200: {"model": RelationResponse, "description": "The relation existed and was updated"}},
)
@sends_new(relation_response)
async def create_relation(
    id: str, body: CreateRelationRequest, caller: Writer, res: ResourcesOf, call: CallOf
) -> tuple[Relation, bool]:
    """Reads from source to target: this memory is DERIVED_FROM the target, PREFERS_OVER it, is INVALIDATED_BY it.
    Sent again, it keeps `strength` and `properties` where they are left out."""
    wanted = Relation(uuid_of(id), **{**dict(body), "type": RelationType(body.type)})
    kept = {"strength", "properties"} - body.model_fields_set
    return await associate(caller.workspace_id, wanted, res, call, kept=kept)


@router.delete("/relations", summary="Delete the relations between two memories")
@sends(count_response)
async def delete_relation(
    id: str,
    caller: Writer,
    res: ResourcesOf,
    call: CallOf,
    target_id: Annotated[str, Query(min_length=1, max_length=100)],
    type: Annotated[RelationName | None, Query(description="Default: every type")] = None,
) -> int:
    """Deletes the relations from this memory to the target; without any, 0 are deleted."""
    source, target = uuid_of(id), uuid_of(target_id)
    relation_type = RelationType(type) if type else None
    return await dissociate(caller.workspace_id, source, target, relation_type, res, call)


def _other_end(step: WalkStep) -> UUID:
    return step.by.source_id if step.by.target_id == step.memory_id else step.by.target_id


def _types(given: list[str] | None) -> tuple[RelationType, ...]:
    named = [part.upper() for part in split(given, "types")]
    for name in named:
        if name not in set(RelationType):
            raise InvalidInput(f"types: must be one of {', '.join(RelationType)}.", field="types")
    return tuple(dict.fromkeys(RelationType(name) for name in named))


def _relation(relation: Relation, seen_from: UUID) -> RelationResponse:
    return RelationResponse.of(relation, direction="in" if relation.target_id == seen_from else "out")
