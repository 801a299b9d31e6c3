"""Search over HTTP: GET for simple cases, POST for all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self
from uuid import UUID

import fastapi
from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field, model_validator

from service.api import errors, narrowing, ranking
from service.api.connected import ConnectedMemoryItem, connected_to_hits
from service.api.deps import AgentId, ChannelName, Reader, ResourcesOf, RunId, UserId, scope_of
from service.api.memory_models import MemoryResponse, memory_fields
from service.api.narrowing import Comma, NarrowingFields, Parameters, Several, Words, body_of, split
from service.api.ranking import RankingFields, RankingParameters, SearchMetrics
from service.api.reads import LIMITED, AuditRead, NoteOf, Reinforce, ReinforceOf, in_time, of_page
from service.api.schemas import SCOPE_SCHEMA, Id, ResponseModel, Time, Unit
from service.domain.access import Caller
from service.domain.memory import Hit, ScoreTerm
from service.domain.query import Explanation, Query, SearchResult, VectorPath, Window
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.errors import InvalidInput
from service.language.tags import normalise
from service.pipeline.pii import clean_words
from service.resources import Resources
from service.retrieval.search import most_important, search

router = APIRouter(prefix="/v1/memories", tags=["memories"])

MAX_QUERY = 100_000
MAX_ADDRESS = 20_000
"""Characters of a query in an address: servers take addresses of 64 kB, in which a letter can be twelve bytes."""

NOTHING_LEFT = "nothing_asked: nothing else than time_query was asked for, so nothing is listed."
Validity = Literal["exclude", "demote", "ignore"]
Limit = Annotated[int, Field(ge=1, le=1_000)]

LIMIT = "At most so many hits; fewer only when fewer match"
MIN_SCORE = "Leaves out hits that score lower"
VALIDITY = "What is over, or not valid yet: exclude leaves it out, demote ranks what is over lower, ignore shows all"
CONNECTED = "Show with each hit the memories it is tied to, 5 by default"


class SearchRequest(NarrowingFields, RankingFields):
    """A query in a scope. Without one, but with tags, filters or whatever else narrows, the most important memories
    are listed."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": SCOPE_SCHEMA,
            "examples": [
                {"query": "What does Alice drink in the morning?", "user_id": "alice", "limit": 5},
                {
                    "query": "Where did we leave the boat?",
                    "user_id": "alice",
                    "tags": ["travel"],
                    "exclude_tags": ["draft"],
                    "time_query": "in May 2023",
                    "filters": {
                        "OR": [
                            {"field": "metadata.priority", "operator": "gte", "value": 3},
                            {"field": "memory", "operator": "icontains", "value": "harbour"},
                        ]
                    },
                },
                {"user_id": "alice", "tags": ["project:atlas"], "limit": 20},
            ],
        }
    )

    query: str | None = Field(
        None, max_length=MAX_QUERY, description="The query; `q` is accepted too", examples=["Where is the boat?"]
    )
    q: str | None = Field(None, max_length=MAX_QUERY, description="The same as query", examples=["Where is the boat?"])
    limit: Limit = Field(100, description=LIMIT)
    top_k: Limit | None = Field(None, description="The same as limit")
    prefer_tags: Words | Comma = Field(default_factory=list, description="Hits with one of these rank higher")
    min_score: Unit = Field(0.0, description=MIN_SCORE)
    validity: Validity = Field("exclude", description=VALIDITY)
    connected: bool = Field(False, description=CONNECTED)

    @model_validator(mode="after")
    def _one_query(self) -> Self:
        if self.query is not None and self.q is not None:
            raise ValueError("query: give query or q, not both")
        if self.top_k is not None and "limit" in self.model_fields_set:
            raise ValueError("limit: give limit or top_k, not both")
        if self.valid_at is not None and self.validity != "exclude":
            raise ValueError("validity: is about now, where valid_at names the moment: give one of them")
        return self

    @property
    def query_text(self) -> str:
        """Text of `query` or `q` without outer spaces; empty when neither is given."""
        return (self.query or self.q or "").strip()


class SignalTerm(ResponseModel):
    """A signal of a hit."""

    raw: float | None = Field(description="What was measured; null: nothing", examples=[0.83])
    value: float = Field(description="0..1, among the candidates", examples=[0.91])
    weight: float = Field(description="Its share of the score, 0..1; the weights of a hit sum to 1", examples=[0.24])


class ScoreExplanation(ResponseModel):
    """The score is the sum of value times weight over `terms`, times each of `factors`."""

    terms: dict[str, SignalTerm] = Field(description="By signal; what has no weight is left out")
    factors: dict[str, float] = Field(description="By name", examples=[{"validity": 1.0, "temporal_tag": 1.2}])


class MemoryExplanation(ResponseModel):
    """`reasons`, none when it was found: unknown (no such memory in the scope), archived, expired, awaits_review,
    not_yet_valid, no_longer_valid, before_window, after_window, filtered_out (by tags, filters or what else narrows),
    not_a_candidate (no arm brought it), below_min_score, below_limit, moved_down (by diversity or the reranker), and
    no_vector_yet beside them."""

    id: Id = Field(description="As it was asked for")
    found: bool = Field(description="Whether it is among the results")
    place: int | None = Field(description="Its rank among all candidates, from 1; null: it was none", examples=[7])
    reasons: list[str] = Field(description="Codes of what keeps it out", examples=[["below_limit"]])
    score: float | None = Field(None, description="null when it was not ranked", examples=[0.41])
    explain: ScoreExplanation | None = Field(None, description="How that score came about; null when it was not ranked")


class MemorySearchHit(MemoryResponse):
    """A memory that answers."""

    score: float = Field(description="Ranks: 0..1, times the factors, which may lift it above 1", examples=[0.72])
    similarity: float | None = Field(
        description="The calibrated cosine to the query, 0..1; null without a vector", examples=[0.64]
    )
    explain: ScoreExplanation | None = Field(None, description="With explain: how the score came about; else null")
    connected: list[ConnectedMemoryItem] | None = Field(
        None, description="With connected: what it is tied to most strongly; else null"
    )


class TimeInterval(ResponseModel):
    """A half-open interval."""

    start: Time | None = Field(description="Its first moment; null: open", examples=["2026-02-23T00:00:00+00:00"])
    end: Time | None = Field(
        description="The moment after its last; null: open", examples=["2026-03-02T00:00:00+00:00"]
    )


class SearchResponse(ResponseModel):
    """What was found, and how."""

    results: list[MemorySearchHit] = Field(description="Best first, as many as `limit` or as match")
    vector_path: VectorPath = Field(
        description="How vectors were searched; none without an embedder or a query", examples=["exact"]
    )
    warnings: list[str] = Field(
        default_factory=list, description="What was left out, each as `code: sentence`", examples=[[]]
    )
    window: TimeInterval | None = Field(
        None, description="The time asked for, by start and end or by time_query; null: none"
    )
    why: MemoryExplanation | None = Field(
        None, description="With explain_id: why this memory was found or not; else null"
    )
    candidates: dict[str, int] | None = Field(
        None,
        description="With explain: how many each arm gave; else null",
        examples=[{"text_lexical": 12, "text_vector": 100}],
    )
    metrics: SearchMetrics = Field(description="What each technique took and gave")
    timings_ms: dict[str, float] = Field(
        description="The total, with explain every stage; in_vain: a search with filters that self_query read out of "
        "the query, which matched nothing",
        examples=[{"total": 14.2, "embed": 4.1}],
    )


Connected = Mapping[UUID, list[ConnectedMemoryItem]] | None
"""By hit; None where they were not asked for."""

RESPONSES = errors.documented(400, 401, 403, 413, 422, 429, 503)


@router.post(
    "/search",
    operation_id="search_memories",
    summary="Search",
    response_model=SearchResponse,
    responses=RESPONSES,
    dependencies=LIMITED,
)
async def search_memories(
    request: Request, body: SearchRequest, caller: Reader, res: ResourcesOf, note: NoteOf, reinforce: ReinforceOf
) -> SearchResponse:
    """The memories of a scope that answer a query. At least one of user_id, agent_id, run_id is needed."""
    return await _search(request, body, caller, res, note, reinforce)


@router.get(
    "/search",
    operation_id="search_memories_simple",
    summary="Search, simple form",
    response_model=SearchResponse,
    responses=RESPONSES,
    dependencies=LIMITED,
)
async def search_memories_simple(
    request: Request,
    caller: Reader,
    res: ResourcesOf,
    note: NoteOf,
    used: ReinforceOf,
    narrowed: Parameters,
    ranked: RankingParameters,
    q: Annotated[
        str | None,
        fastapi.Query(
            max_length=MAX_ADDRESS, description="The query; longer ones by POST", examples=["Where is the boat?"]
        ),
    ] = None,
    query: Annotated[str | None, fastapi.Query(max_length=MAX_ADDRESS, description="The same as q")] = None,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
    limit: Annotated[int, fastapi.Query(ge=1, le=1_000, description=LIMIT)] = 100,
    top_k: Annotated[int | None, fastapi.Query(ge=1, le=1_000, description="The same as limit")] = None,
    prefer_tags: Several = None,
    min_score: Annotated[float, fastapi.Query(ge=0, le=1, description=MIN_SCORE)] = 0.0,
    validity: Annotated[Validity, fastapi.Query(description=VALIDITY)] = "exclude",
    connected: Annotated[bool, fastapi.Query(description=CONNECTED)] = False,
) -> SearchResponse:
    """The same for a link or a shell; `filters` is JSON there, techniques are switches, weights and factors are for
    POST."""
    given = {
        **narrowed,
        **ranked,
        "q": q,
        "query": query,
        "user_id": user_id,
        "agent_id": agent_id,
        "run_id": run_id,
        "channel": channel,
        **({"limit": limit} if "limit" in request.query_params else {}),
        **({"top_k": top_k} if top_k is not None else {}),
        "prefer_tags": split(prefer_tags, "prefer_tags"),
        "min_score": min_score,
        "validity": validity,
        "connected": connected,
    }
    return await _search(request, body_of(SearchRequest, given), caller, res, note, used)


async def _search(
    request: Request, body: SearchRequest, caller: Caller, res: Resources, note: AuditRead, reinforce: Reinforce
) -> SearchResponse:
    began = time.perf_counter()
    limit = of_page(body.top_k or body.limit, res, given=body.top_k is not None or "limit" in body.model_fields_set)
    scope = scope_of(
        caller, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.active_channel
    )
    if not body.query_text and not body.is_narrow:
        raise InvalidInput("query: give a query (`query` or `q`), or tags, filters or a time.", field="query")
    if not body.query_text and body.explain_id is not None:
        raise InvalidInput("explain_id: explains the results of a query, and there is none.", field="explain_id")
    async with in_time(res, request):
        text = await clean_words(body.query_text, "query", res) if body.query_text else CleanText("")
        window, warnings = await narrowing.window(body, res)
        query = _query(body, scope, text, limit, window, res)
        if not text and window.is_open and not body.is_narrow_without_words_of_time:
            found = SearchResult((), "none", (NOTHING_LEFT,))  # the whole scope is no answer to "since my birthday"
        else:
            found = await (search(query, res) if text else most_important(query, res))
        connected = await connected_to_hits(query, found.hits, res) if body.connected else None
    memories = [hit.memory for hit in found.hits]
    note(
        "search",
        scope,
        memories,
        query=text or None,
        channels=body.channels or (),
        limit=limit,
        validity=body.validity,
        narrowed_by=body.narrowed_by,
        techniques={name: {"ms": each.ms, "count": each.count} for name, each in found.techniques.items()} or None,
    )
    if body.reinforce:
        reinforce(memories, found.entities)
    return _response(body, window, found, connected, warnings, began)


def _query(body: SearchRequest, scope: Scope, text: CleanText, limit: int, window: Window, res: Resources) -> Query:
    return Query(
        scope,
        text,
        limit,
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
        ranking=body.ranking(res.settings.ranking),
        explain_id=body.explain_id,
    )


def _response(
    body: SearchRequest,
    window: Window,
    found: SearchResult,
    connected: Connected,
    warnings: Sequence[str],
    began: float,
) -> SearchResponse:
    """`began`: the moment of time.perf_counter() from which the total counts."""
    stages = found.explained.timings_ms if found.explained else {}
    return SearchResponse(
        results=[_hit(hit, connected, explain=body.explain) for hit in found.hits],
        vector_path=found.vector_path,
        warnings=[*warnings, *found.warnings],
        window=None if window.is_open else TimeInterval(start=window.start, end=window.end),
        why=_why(found.why) if found.why else None,
        candidates=dict(found.explained.candidates) if found.explained else None,
        metrics=ranking.metrics(found),
        timings_ms={"total": round((time.perf_counter() - began) * 1000, 3), **stages},
    )


def _hit(hit: Hit, connected: Connected, *, explain: bool) -> MemorySearchHit:
    return MemorySearchHit(
        **memory_fields(hit.memory),
        score=hit.score,
        similarity=hit.similarity,
        explain=_explained(hit.terms, hit.factors) if explain else None,
        connected=None if connected is None else connected.get(hit.memory.id, []),
    )


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
