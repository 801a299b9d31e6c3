"""Routes for search: GET for simple cases, POST for all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from service.domain.access import Caller
from service.domain.errors import InvalidInput
from service.domain.memory import Hit, ScoreTerm
from service.domain.moments import elapsed_ms
from service.domain.query import Explanation, Query, SearchResult, Window, is_answerable
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.http import cursors, errors, narrowing
from service.http.deps import Reader, ResourcesOf, read_scope
from service.http.json_body import JsonRoute
from service.http.query_parameters import body_of
from service.http.reads import AuditRead, in_time, send_json, use_counter
from service.http.schemas import iso
from service.language.tags import normalise
from service.memories.routes.connected import ConnectedMemoryItem, connected_to_hits
from service.memories.routes.memory_models import memory_item
from service.runtime.pii import clean_words
from service.runtime.resources import Resources
from service.search.routes.search_models import (
    MemoryExplanation,
    ScoreExplanation,
    SearchMetrics,
    SearchRequest,
    SearchResponse,
    SignalTerm,
    TechniqueMetrics,
    TimeInterval,
)
from service.search.routes.search_parameters import SearchParameters
from service.search.search import most_important, search

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)

NOTHING_ASKED = "nothing_asked: the request has nothing but a time_query that was not understood."

Connected = Mapping[UUID, list[ConnectedMemoryItem]] | None
"""The connected memories of each hit; None unless requested."""

RESPONSES = errors.keyed(400, 413, 422, 429)


@router.post("/search", summary="Search", response_model=SearchResponse, responses=RESPONSES)
async def search_memories(
    request: Request,
    body: SearchRequest,
    caller: Reader,
    res: ResourcesOf,
) -> Response:
    """Returns memories that match a query, and turns whose content is in no memory. At least one of user_id, agent_id
    and run_id is required."""
    return await _search(request, body, caller, res)


@router.get(
    "/search",
    summary="Search, simple form",
    response_model=SearchResponse,
    responses=RESPONSES,
)
async def search_memories_simple(
    request: Request,
    caller: Reader,
    res: ResourcesOf,
    given: SearchParameters,
) -> Response:
    """Takes the fields of the POST body as query parameters; `filters` and `tuning` are JSON."""
    return await _search(request, body_of(SearchRequest, given), caller, res)


async def _search(request: Request, body: SearchRequest, caller: Caller, res: Resources) -> Response:
    began = time.perf_counter()
    return _response(body, await carried_out(request, body, caller, res), began)


@dataclass(frozen=True, slots=True)
class FinishedSearch:
    """The result of a search request. `warnings` are about the request; `found` has those of the search."""

    found: SearchResult
    window: Window
    connected: Connected
    warnings: Sequence[str]


async def carried_out(
    request: Request, body: SearchRequest, caller: Caller, res: Resources, *, may_list: bool = False
) -> FinishedSearch:
    """Searches, audits, and counts the hits as used. `may_list`: a request without a query and conditions returns the
    most important memories of the scope."""
    audit_read, count_use = AuditRead(request), use_counter(request)
    scope = read_scope(caller, res, body, body.active_channel)
    if not may_list:
        _check(body)
    narrowing.refuse_future(body.as_of, res.clock())
    async with in_time(res, request) as res:
        text = await clean_words(body.query_text, "query", res) if body.query_text else CleanText("")
        window, warnings = await narrowing.window(body, res)
        query = _query(body, scope, text, window, res)
        if text:
            found = await search(query, res)
        elif window.is_open and not body.is_narrow_without_time_query and not may_list:
            found = SearchResult((), "none", (NOTHING_ASKED,))  # the whole scope would not answer "since my birthday"
        else:
            found = await most_important(query, res)
        connected = await connected_to_hits(query, found.hits, res) if body.connected else None
    _audit(body, query, found, audit_read)
    if body.reinforce and body.as_of is None:
        count_use([hit.memory for hit in found.hits if hit.memory.source == "memory"], found.entities)
    return FinishedSearch(found, window, connected, warnings)


def _check(body: SearchRequest) -> None:
    if body.query_text:
        return
    if not body.is_narrow:
        raise InvalidInput("query: give a query, or tags, filters or a time.", field="query")
    if body.explain_id is not None:
        raise InvalidInput("explain_id: needs a query.", field="explain_id")


def _audit(body: SearchRequest, query: Query, found: SearchResult, audit_read: AuditRead) -> None:
    audit_read(
        "search",
        query.scope,
        [hit.memory for hit in found.hits],
        query=query.text or None,
        channels=query.channels,
        limit=query.limit,
        validity=body.validity,
        narrowed_by=body.narrowed_by,
        techniques={name: {"ms": each.ms, "count": each.count} for name, each in found.techniques.items()} or None,
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
        skip=cursors.counts(body.cursor)[0],
        detail=body.detail,
        turns=body.turns,
    )


def _response(body: SearchRequest, done: FinishedSearch, began: float) -> Response:
    """A SearchResponse. `began`: time.perf_counter() at the start of the request."""
    found, window = done.found, done.window
    stages = found.explained.timings_ms if found.explained else {}
    content = {
        "results": [_hit(hit, body, done.connected) for hit in found.hits],
        "next_cursor": None if found.read_on is None else cursors.after_counts(found.read_on),
        "answerable": is_answerable(found.answer_probability),
        "answer_probability": found.answer_probability,
        "vector_path": found.vector_path,
        "warnings": [*done.warnings, *found.warnings],
        "window": None if window.is_open else TimeInterval(start=window.start, end=window.end),
        "why": _why(found.why) if found.why else None,
        "candidates": dict(found.explained.candidates) if found.explained else None,
        "metrics": _metrics(found),
        "timings_ms": {"total": elapsed_ms(began), **stages},
    }
    return send_json(content)


def _metrics(found: SearchResult) -> SearchMetrics:
    uses = found.techniques.items()
    return SearchMetrics(
        techniques={name: TechniqueMetrics(ms=use.ms, count=use.count, note=use.note) for name, use in uses}
    )


def _hit(hit: Hit, body: SearchRequest, connected: Connected) -> dict[str, Any]:
    """A MemorySearchHit."""
    shown = {
        **memory_item(hit.memory, body.detail),
        "source": hit.memory.source,
        "score": hit.score,
        "similarity": hit.similarity,
        "answer_probability": hit.answer_probability,
        "later": [{"id": each.id, "timestamp": iso(each.timestamp)} for each in hit.later],
    }
    if hit.memory.source == "turn":
        shown["turn_index"] = hit.memory.turn_index
    if body.explain:
        shown["explain"] = _explained(hit.terms, hit.factors)
    if connected is not None:
        shown["connected"] = connected.get(hit.memory.id, [])
    return shown


def _why(why: Explanation) -> MemoryExplanation:
    shown = _explained(why.terms, why.factors) if why.terms else None
    return MemoryExplanation(
        id=why.id, found=why.found, place=why.place, reasons=list(why.reasons), score=why.score, explain=shown
    )


def _explained(terms: Mapping[str, ScoreTerm], factors: Mapping[str, float]) -> ScoreExplanation:
    counting = {
        name: SignalTerm(raw=term.raw, value=term.value, weight=term.weight)
        for name, term in terms.items()
        if term.weight > 0
    }
    return ScoreExplanation(terms=counting, factors=dict(factors))
