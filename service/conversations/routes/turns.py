"""Routes for turns across the conversations of a scope: the latest, and search."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from service.conversations import reading
from service.conversations.routes.conversation_models import TurnList, TurnSearchResponse
from service.domain.query import is_answerable, is_probable
from service.episodes.turn_models import turn_item
from service.http import cursors, errors
from service.http.deps import ListScopeOf, Reader, ResourcesOf, ScopeOf
from service.http.json_body import JsonRoute
from service.http.reads import AuditReadOf, DetailOf, ReadOn, in_time, send_json
from service.http.schemas import Channel, Filled
from service.runtime.pii import clean_words
from service.search import turn_search
from service.search.routes.search_models import MIN_PROBABILITY

router = APIRouter(prefix="/v1/turns", tags=["conversations"], route_class=JsonRoute)

MAX_QUERY = 20_000
MAX_HOURS = 24 * 366 * 100

Hours = Annotated[
    float | None, Query(gt=0, le=MAX_HOURS, description="Only turns of the last N hours; default: no limit")
]
Channels = Annotated[
    list[Channel] | None,
    Query(max_length=50, description="Repeatable; channels to search in addition to channel and _global"),
]


@router.get("/recent", summary="List the latest turns of a scope", response_model=TurnList)
async def list_recent_turns(
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    scope: ListScopeOf,
    channels: Channels = None,
    hours: Hours = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
    cursor: ReadOn = None,
    detail: DetailOf = "lean",
) -> Response:
    """Newest first by the time they were said, without turns of archived conversations."""
    since = None if hours is None else res.clock() - timedelta(hours=hours)
    before = cursors.counts(cursor)
    read = await reading.recent_turns(scope, res, since=since, channels=channels or (), skip=before[0], limit=limit + 1)
    (page,), more = cursors.cut_each(before, limit, read)
    note("turns/recent", scope, page, subject="episodic", channels=channels or (), hours=hours, limit=limit)
    return send_json({"results": [turn_item(each, detail) for each in page], "next_cursor": more})


@router.get(
    "/search",
    summary="Search turns by meaning and words",
    response_model=TurnSearchResponse,
    responses=errors.document(404),
)
async def search_turns(
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    scope: ScopeOf,
    query: Annotated[Filled, Query(min_length=1, max_length=MAX_QUERY, description="The query text")],
    channels: Channels = None,
    time_window_hours: Hours = None,
    conversation_id: Annotated[
        str | None, Query(min_length=1, max_length=255, description="Only this conversation, by id or name")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
    min_probability: Annotated[float, Query(ge=0, le=1, description=MIN_PROBABILITY)] = 0.0,
    cursor: ReadOn = None,
    detail: DetailOf = "lean",
) -> Response:
    """Ranks by meaning and words of a turn and those before it, by speaker and by time. A turn can be found as soon as
    the request that stored it has returned."""
    text = await clean_words(query, "query", res)
    only = None if conversation_id is None else (await reading.get(scope, conversation_id, res)).id
    async with in_time(res) as timed:
        ranked = await turn_search.search(
            scope,
            text,
            timed,
            since=None if time_window_hours is None else res.clock() - timedelta(hours=time_window_hours),
            channels=channels or (),
            conversation_id=only,
            skip=cursors.counts(cursor)[0],
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
            "next_cursor": None if ranked.next_skip is None else cursors.pack(ranked.next_skip),
            "answerable": is_answerable(ranked.answer_probability),
            "answer_probability": ranked.answer_probability,
            "warnings": ranked.warnings,
        }
    )
