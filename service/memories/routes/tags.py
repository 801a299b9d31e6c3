"""Route for memories by tag."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from service.domain.errors import InvalidInput
from service.domain.query import Narrow, TagMatch, TagMode, Validity
from service.domain.relation import RelationType
from service.http import cursors, errors
from service.http.deps import Reader, ReadScopeOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.narrowing import MAX_WORDS, Comma
from service.http.query_parameters import REPEATABLE
from service.http.reads import AuditReadOf, CountsOf, CountUseOf, DetailOf, ReadOn, send_json
from service.http.schemas import Id, NextCursor, ResponseModel
from service.language.tags import normalise
from service.memories import reading
from service.memories.routes.memory_models import MemoryItem, memory_item
from service.runtime import pii

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)


class ConnectedMemoryItem(ResponseModel):
    """A memory that a hit is connected to."""

    id: Id = Field(description="UUID of the connected memory")
    memory: str = Field(description="Its text", examples=["Buys tea by the kilo"])
    type: RelationType = Field(description="How the two are related", examples=["SIMILAR_TO"])
    strength: float = Field(description="0..1", examples=[0.83])


class TaggedMemoryItem(MemoryItem):
    """A memory that has the tag."""

    score: float = Field(description="Its importance, 0..1, which the list is ordered by", examples=[0.6])
    similarity: float | None = Field(description="Always null, as there is no query")
    connected: list[ConnectedMemoryItem] = Field(description="The memories it is most strongly connected to")


class TaggedMemoryPage(ResponseModel):
    """Most important first, then latest."""

    results: list[TaggedMemoryItem] = Field(description="At most `limit` memories")
    next_cursor: NextCursor = None


@router.get(
    "/by-tag",
    summary="List the memories of a scope with a tag",
    response_model=TaggedMemoryPage,
    responses=errors.keyed(400),
)
async def list_memories_by_tag(
    caller: Reader,
    scope: ReadScopeOf,
    res: ResourcesOf,
    note: AuditReadOf,
    used: CountUseOf,
    counts: CountsOf,
    tags_wanted: Annotated[list[Comma], Query(alias="tags", max_length=MAX_WORDS, description=REPEATABLE)],
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of results")] = 50,
    tag_match: Annotated[TagMatch, Query(description="prefix: slack matches slack:channel:general")] = "prefix",
    tag_mode: Annotated[TagMode, Query(description="Whether one of the tags is enough or all are required")] = "any",
    include_archived: Annotated[bool, Query(description="Include archived memories")] = False,
    validity: Annotated[
        Validity, Query(description="demote includes memories no longer valid; ignore also those not valid yet")
    ] = "exclude",
    cursor: ReadOn = None,
    detail: DetailOf = "lean",
) -> Response:
    """Memories valid now, most important first, then latest."""
    parts = [part for each in tags_wanted for part in each.split(",")]
    wanted = normalise(parts)
    if not wanted:
        raise InvalidInput("tags: name at least one tag.", field="tags")
    if len(wanted) > MAX_WORDS:
        raise InvalidInput(f"tags: at most {MAX_WORDS} tags.", field="tags")
    tagged = Narrow(tags=wanted, tag_match=tag_match, tag_mode=tag_mode)
    (skip,) = cursors.counts(cursor)
    tagged_list = await reading.list_tagged(
        scope, tagged, res, validity=validity, include_archived=include_archived, skip=skip, limit=limit, detail=detail
    )
    results = [
        {
            **memory_item(memory, detail),
            "score": memory.importance.value,
            "similarity": None,
            "connected": tagged_list.connected.get(memory.id, []),
        }
        for memory in tagged_list.memories
    ]
    page, more = cursors.cut(results, limit)
    listed = tagged_list.memories[: len(page)]
    shown = list(normalise([pii.of_words("tags", part) for part in parts]))
    note("by-tag", scope, listed, tags=shown, tag_match=tag_match, tag_mode=tag_mode, limit=limit)
    if counts:
        used(listed)
    next_cursor = cursors.after_counts(skip + len(page)) if more or tagged_list.has_more else None
    return send_json({"results": page, "next_cursor": next_cursor})
