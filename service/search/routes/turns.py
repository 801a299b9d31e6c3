"""Routes for turns across the conversations of a scope: the latest, search; and for the context of a conversation."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from service.conversations import conversations
from service.conversations.models import TurnListItem, turn_item
from service.conversations.routes.conversations import ConversationId, OwnerOf
from service.domain.query import is_answerable, is_probable
from service.http import errors
from service.http.deps import CursorOf, IncludeShared, ListScopeOf, Reader, ResourcesOf, ScopeOf
from service.http.json_body import JsonRoute
from service.http.reads import AuditReadOf, CountUseOf, DetailOf, in_time, send_json, with_budget
from service.http.schemas import Channel, Filled, Id, NextCursor, ResponseModel
from service.memories.routes.memory_models import MemoryItem, memory_item
from service.runtime.pii import clean_words
from service.search import turn_search
from service.search.conversation_context import context
from service.search.routes.search_models import MIN_PROBABILITY, Answerable, AnswerProbability, HitProbability

router = APIRouter(prefix="/v1", tags=["conversations"], route_class=JsonRoute)

MAX_QUERY = 20_000
MAX_HOURS = 24 * 366 * 100

Hours = Annotated[
    float | None, Query(gt=0, le=MAX_HOURS, description="Only turns of the last N hours; default: no limit")
]
Channels = Annotated[
    list[Channel] | None,
    Query(max_length=50, description="Repeatable; channels to search in addition to channel and _global"),
]


class TurnList(ResponseModel):
    """Newest first."""

    results: list[TurnListItem] = Field(description="At most `limit` turns")
    next_cursor: NextCursor = None


class TurnSearchHit(TurnListItem):
    """A turn found by a search."""

    score: float = Field(description="The value that hits are ranked by; comparable within this response only")
    similarity: float | None = Field(
        description="Calibrated cosine to the query, 0..1; null for a hit found by its words only"
    )
    answer_probability: HitProbability


class TurnSearchResponse(ResponseModel):
    """Best first."""

    results: list[TurnSearchHit] = Field(description="At most `limit` turns")
    next_cursor: NextCursor = None
    answerable: Answerable = None
    answer_probability: AnswerProbability = None
    warnings: list[str] = Field(description="What was skipped, each as `code: sentence`", default_factory=list)


class ContextMemoryItem(MemoryItem):
    """A memory that is relevant to the conversation."""

    score: float = Field(description="Its score in a search: 0..1, times the factors")
    similarity: float | None = Field(description="Calibrated cosine to the query, 0..1; null without a vector")


class ConversationContextResponse(ResponseModel):
    """Turns and memories for a prompt, as lists and as text."""

    conversation_id: Id = Field(description="UUID")
    turns: list[TurnListItem] = Field(description="The latest turns that fit, without gaps")
    memories: list[ContextMemoryItem] = Field(
        description="Relevant memories of the same user or agent, without its own turns"
    )
    context: str = Field(description="Turns and memories as text for a prompt")
    tokens: int = Field(description="Estimated tokens of `context`: bytes of UTF-8 / 4")
    max_tokens: int = Field(description="As requested")
    warnings: list[str] = Field(description="What was skipped, each as `code: sentence`", default_factory=list)


@router.get("/turns/recent", summary="List the latest turns of a scope", response_model=TurnList)
async def list_recent_turns(
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    scope: ListScopeOf,
    cursor: CursorOf,
    channels: Channels = None,
    hours: Hours = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
    detail: DetailOf = "lean",
) -> Response:
    """Newest first by the time they were said, without turns of archived conversations."""
    caller.check_channels(channels or ())
    since = None if hours is None else res.clock() - timedelta(hours=hours)
    before = cursor.counts()
    read = await conversations.recent_turns(
        scope, res, since=since, channels=channels or (), skip=before[0], limit=limit + 1
    )
    (page,), more = cursor.cut_each(limit, read)
    note("turns/recent", scope, page, subject="episodic", channels=channels or (), hours=hours, limit=limit)
    return send_json({"results": [turn_item(each, detail) for each in page], "next_cursor": more})


@router.get(
    "/turns/search",
    summary="Search turns by meaning and words",
    response_model=TurnSearchResponse,
    responses=errors.document(404),
)
async def search_turns(
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    scope: ScopeOf,
    cursor: CursorOf,
    query: Annotated[Filled, Query(min_length=1, max_length=MAX_QUERY, description="The query text")],
    channels: Channels = None,
    time_window_hours: Hours = None,
    conversation_id: Annotated[
        str | None, Query(min_length=1, max_length=255, description="Only this conversation, by id or name")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
    min_probability: Annotated[float, Query(ge=0, le=1, description=MIN_PROBABILITY)] = 0.0,
    detail: DetailOf = "lean",
) -> Response:
    """Ranks by meaning and words of a turn and those before it, by speaker and by time. A turn can be found as soon as
    the request that stored it has returned."""
    caller.check_channels(channels or ())
    text = await clean_words(query, "query", res)
    only = None if conversation_id is None else (await conversations.get(scope, conversation_id, res)).id
    async with in_time(res) as timed:
        ranked = await turn_search.search(
            scope,
            text,
            timed,
            since=None if time_window_hours is None else res.clock() - timedelta(hours=time_window_hours),
            channels=channels or (),
            conversation_id=only,
            skip=cursor.counts()[0],
            limit=limit,
        )
    hits = [hit for hit in ranked.hits if is_probable(hit.answer_probability, min_probability)]
    turns = [hit.turn for hit in hits]
    note("turns/search", scope, turns, query=text, subject="episodic", channels=channels or (), limit=limit)
    results = [
        {
            **turn_item(turn_hit.turn, detail),
            "score": turn_hit.score,
            "similarity": turn_hit.similarity,
            "answer_probability": turn_hit.answer_probability,
        }
        for turn_hit in hits
    ]
    return send_json(
        {
            "results": results,
            "next_cursor": None if ranked.next_skip is None else cursor.pack(ranked.next_skip),
            "answerable": is_answerable(ranked.answer_probability),
            "answer_probability": ranked.answer_probability,
            "warnings": ranked.warnings,
        }
    )


@router.get(
    "/conversations/{id}/context",
    summary="Get turns and memories for the next prompt",
    response_model=ConversationContextResponse,
    responses=errors.document(404),
)
async def get_conversation_context(
    id: ConversationId,
    caller: Reader,
    res: ResourcesOf,
    owner: OwnerOf,
    note: AuditReadOf,
    used: CountUseOf,
    max_tokens: Annotated[
        int, Query(ge=50, le=200_000, description="Maximum size of `context`, in estimated tokens")
    ] = 2_000,
    query: Annotated[
        Filled | None, Query(min_length=1, max_length=20_000, description="Default: the last turn of the user")
    ] = None,
    include_shared: IncludeShared = None,
    reinforce: Annotated[bool, Query(description="Count the memories as used; false for previews")] = True,
    detail: DetailOf = "lean",
) -> Response:
    """The last turns and relevant memories of the same user or agent, as many as fit; `context` has them as text."""
    text = None if query is None else await clean_words(query, "query", res)
    conversation = await conversations.get(owner, id, res)
    shared = res.settings.search.include_shared if include_shared is None else include_shared
    conversation_context = await context(
        conversation, text, max_tokens, with_budget(res), include_shared=shared, detail=detail
    )
    memories = [hit.memory for hit in conversation_context.memories]
    note("context", conversation.scope, memories, query=text, max_tokens=max_tokens)
    if reinforce:
        used(memories)
    return send_json(
        {
            "conversation_id": conversation.id,
            "turns": [turn_item(turn, detail) for turn in conversation_context.turns],
            "memories": [
                {**memory_item(hit.memory, detail), "score": hit.score, "similarity": hit.similarity}
                for hit in conversation_context.memories
            ],
            "context": conversation_context.text,
            "tokens": conversation_context.tokens,
            "max_tokens": max_tokens,
            "warnings": conversation_context.warnings,
        }
    )
