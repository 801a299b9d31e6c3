"""Routes for search: GET for simple cases, POST for all of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from service.domain.access import Caller
from service.domain.errors import InvalidInput
from service.domain.memory import Hit
from service.domain.moments import elapsed_ms
from service.domain.query import Explanation, Query, SearchResult, Window, is_answerable
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.http import errors, narrowing
from service.http.cursors import Cursor
from service.http.deps import Reader, ResourcesOf, read_scope
from service.http.json_body import JsonRoute
from service.http.query_parameters import fields_of
from service.http.reads import AuditRead, CountUse, in_time, send_json
from service.http.schemas import iso
from service.language.tags import normalise
from service.memories.routes.memory_models import memory_item
from service.runtime.pii import clean_words
from service.runtime.resources import Resources
from service.search.routes.search_models import (
    MemoryExplanation,
    ScoreExplanation,
    SearchRequest,
    SearchResponse,
    TimeInterval,
)
from service.search.search import search

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)

NOTHING_ASKED = "nothing_asked: the request has nothing but a time_query that was not understood."


@router.post("/search", summary="Search", response_model=SearchResponse)
async def search_memories(
    request: Request,
    body: SearchRequest,
    caller: Reader,
    res: ResourcesOf,
) -> Response:
    """Returns memories that match a query, and turns whose content is in no memory. At least one of user_id, agent_id
    and run_id is required."""
    began = time.perf_counter()
    query, result = await run_search(request, body, caller, res)
    return _response(body, query, result, began)


@router.get("/search", summary="Search, simple form", response_model=SearchResponse, responses=errors.document(413))
async def search_memories_simple(
    request: Request,
    caller: Reader,
    res: ResourcesOf,
    body: Annotated[SearchRequest, fields_of(SearchRequest)],
) -> Response:
    """Takes the fields of the POST body as query parameters; `filters` and `tuning` are JSON."""
    return await search_memories(request, body, caller, res)


async def run_search(
    request: Request, body: SearchRequest, caller: Caller, res: Resources, *, may_list: bool = False
) -> tuple[Query, SearchResult]:
    """Searches, audits, and counts the hits as used; returns the query as it was understood, too. `may_list`: a request
    without a query and conditions returns the most important memories of the scope."""
    audit_read, count_use = AuditRead(request), CountUse(request)
    scope = read_scope(caller, res, body, body.active_channel, body.channels)
    if not may_list:
        _check(body)
    narrowing.refuse_future(body.as_of, res.clock())
    async with in_time(res) as res:
        text = await clean_words(body.query_text, "query", res) if body.query_text else CleanText("")
        window, warnings = await narrowing.window(body, res)
        query = _query(body, scope, text, window, res)
        if text or may_list or body.is_narrow_without_time_query or not window.is_open:
            result = await search(query, res)
        else:
            result = SearchResult((), "none", (NOTHING_ASKED,))  # the whole scope would not answer "since my birthday"
    _audit(body, query, result, audit_read)
    if body.reinforce and body.as_of is None:
        count_use([hit.memory for hit in result.hits if hit.memory.source == "memory"], result.entities)
    return query, replace(result, warnings=(*warnings, *result.warnings))


def _check(body: SearchRequest) -> None:
    if body.query_text:
        return
    if not body.is_narrow:
        raise InvalidInput("query: give a query, or tags, filters or a time.", field="query")
    if body.explain_id is not None:
        raise InvalidInput("explain_id: needs a query.", field="explain_id")


def _audit(body: SearchRequest, query: Query, result: SearchResult, audit_read: AuditRead) -> None:
    audit_read(
        "search",
        query.scope,
        [hit.memory for hit in result.hits],
        query=query.text or None,
        channels=query.channels,
        limit=query.limit,
        validity=body.validity,
        narrowed_by=body.narrowed_by,
        techniques={name: {"ms": use.ms, "count": use.count} for name, use in result.techniques.items()} or None,
    )


def _query(body: SearchRequest, scope: Scope, text: CleanText, window: Window, res: Resources) -> Query:
    return Query(
        scope,
        text,
        body.limit,
        window,
        body.validity,
        body.include_archived,
        body.explain,
        tags=normalise(body.prefer_tags),
        reference=body.timestamp,
        timezone=body.timezone,
        narrow=narrowing.narrow(body, scope),
        channels=tuple(body.channels or ()),
        min_score=body.min_score,
        min_probability=body.min_probability,
        ranking=body.tuning.merged_into(res.settings.ranking),
        explain_id=body.explain_id,
        as_of=body.as_of,
        skip=Cursor("search", body.cursor).counts()[0],
        detail=body.detail,
        turns=body.turns,
        connected=body.connected,
    )


def _response(body: SearchRequest, query: Query, result: SearchResult, began: float) -> Response:
    """A SearchResponse. `began`: time.perf_counter() at the start of the request."""
    window, why = query.window, result.why
    content = {
        "results": [_hit(hit, body, result) for hit in result.hits],
        "next_cursor": None if result.next_skip is None else Cursor("search").pack(result.next_skip),
        "answerable": is_answerable(result.answer_probability),
        "answer_probability": result.answer_probability,
        "vector_path": result.vector_path,
        "warnings": result.warnings,
        "window": None if window.is_open else TimeInterval(start=window.start, end=window.end),
        "why": MemoryExplanation.of(why, explain=_explain(why) if why.terms else None) if why else None,
        "candidates": result.candidates,
        "metrics": {"techniques": result.techniques},
        "timings_ms": {"total": elapsed_ms(began), **result.timings_ms},
    }
    return send_json(content)


def _hit(hit: Hit, body: SearchRequest, result: SearchResult) -> dict[str, Any]:
    """The fields of a MemorySearchHit; `explain` and `connected` only if the request asks for them."""
    item = {
        **memory_item(hit.memory, body.detail),
        "source": hit.memory.source,
        "score": hit.score,
        "similarity": hit.similarity,
        "answer_probability": hit.answer_probability,
        "later": [{"id": str(later.id), "timestamp": iso(later.timestamp)} for later in hit.later],
    }
    if hit.memory.source == "turn":
        item["turn_index"] = hit.memory.turn_index
    if body.explain:
        item["explain"] = _explain(hit)
    if body.connected:
        item["connected"] = result.connected.get(hit.memory.id, [])
    return item


def _explain(scored: Hit | Explanation) -> ScoreExplanation:
    terms = {name: term for name, term in scored.terms.items() if term.weight > 0}
    return ScoreExplanation(terms=terms, factors=dict(scored.factors))
