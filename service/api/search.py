"""Search over HTTP: GET for simple cases, POST for all of them."""

from __future__ import annotations

import time
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field, model_validator

from service.api import errors, shapes
from service.api.auth import Reader
from service.api.deps import AgentId, ChannelName, ResourcesOf, RunId, UserId, scope_of
from service.api.memory_models import SCOPE_SCHEMA, MemoryOut, ScopedBody
from service.api.reads import Note, NoteOf
from service.api.wire import Filled, Reply, Time
from service.domain.access import Caller
from service.domain.memory import Hit
from service.domain.query import Query as Asked
from service.domain.query import Window
from service.errors import InvalidInput
from service.pipeline.pii import clean_words
from service.resources import Resources
from service.retrieval.search import search

router = APIRouter(prefix="/v1/memories", tags=["memories"])

MAX_QUERY = 20_000
Validity = Literal["exclude", "demote", "ignore"]
Limit = Annotated[int, Field(ge=1, le=1_000)]


class SearchIn(ScopedBody):
    """A question in a scope."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": SCOPE_SCHEMA,
            "examples": [{"query": "What does Alice drink in the morning?", "user_id": "alice", "limit": 5}],
        }
    )

    query: Filled | None = Field(None, min_length=1, max_length=MAX_QUERY, description="`q` is accepted too")
    q: Filled | None = Field(None, min_length=1, max_length=MAX_QUERY)
    limit: Limit = 100
    start: Time | None = Field(None, description="Only what happened from here on")
    end: Time | None = Field(None, description="Only what happened before")
    validity: Validity = Field("exclude", description="What happens to memories outside [t_valid, t_invalid)")
    include_archived: bool = False
    explain: bool = False

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.query is None) == (self.q is None):
            raise ValueError("give the question as query (or as q)")
        if self.start and self.end and self.start >= self.end:
            raise ValueError("start must lie before end")
        return self


class TermOut(Reply):
    """A signal: what was measured (null: nothing), its value 0..1 among the candidates, and its weight."""

    raw: float | None
    value: float
    weight: float


class ExplainOut(Reply):
    """The score is the sum of value times weight over `terms`, times each of `factors`."""

    terms: dict[str, TermOut]
    factors: dict[str, float]


class HitOut(MemoryOut):
    """`score` ranks; `similarity` is the calibrated cosine 0..1, null for a hit by words alone."""

    score: float
    similarity: float | None
    explain: ExplainOut | None = None


class SearchOut(Reply):
    """Best first. `vector_path`: exact, hnsw, fallback, or none without an embedder."""

    results: list[HitOut]
    vector_path: Literal["exact", "hnsw", "fallback", "none"]
    warnings: list[str] = Field(default_factory=list)
    candidates: dict[str, int] | None = Field(None, description="With explain: how many each arm gave")
    timings_ms: dict[str, float]


RESPONSES = errors.documented(400, 401, 403, 413, 422, 503)


@router.post("/search", operation_id="search_memories", summary="Search", response_model=SearchOut, responses=RESPONSES)
async def search_memories(body: SearchIn, who: Reader, res: ResourcesOf, note: NoteOf) -> SearchOut:
    """The memories of a scope that answer a question. At least one of user_id, agent_id, run_id is needed."""
    return await _search(body, who, res, note)


@router.get(
    "/search",
    operation_id="search_memories_simple",
    summary="Search, simple form",
    response_model=SearchOut,
    responses=RESPONSES,
)
async def search_memories_simple(
    who: Reader,
    res: ResourcesOf,
    note: NoteOf,
    q: Annotated[str | None, Query(min_length=1, max_length=MAX_QUERY)] = None,
    query: Annotated[str | None, Query(min_length=1, max_length=MAX_QUERY)] = None,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    start: Annotated[Time | None, Query()] = None,
    end: Annotated[Time | None, Query()] = None,
    validity: Validity = "exclude",
    include_archived: bool = False,
    explain: bool = False,
) -> SearchOut:
    try:
        body = SearchIn(
            q=q,
            query=query,
            user_id=user_id,
            agent_id=agent_id,
            run_id=run_id,
            channel=channel,
            limit=limit,
            start=start,
            end=end,
            validity=validity,
            include_archived=include_archived,
            explain=explain,
        )
    except ValueError as exc:
        raise InvalidInput(_first(exc), field="q") from None
    return await _search(body, who, res, note)


async def _search(body: SearchIn, who: Caller, res: Resources, note: Note) -> SearchOut:
    began = time.perf_counter()
    if body.limit > res.settings.max_page_size:
        raise InvalidInput(f"limit: at most {res.settings.max_page_size} hits are given at once.", field="limit")
    scope = scope_of(who, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.channel)
    text = await clean_words(body.query or body.q or "", "query", res)
    asked = Asked(
        scope, text, body.limit, Window(body.start, body.end), body.validity, body.include_archived, body.explain
    )
    found = await search(asked, res)
    note("search", scope, [hit.memory for hit in found.hits], query=text, limit=body.limit, validity=body.validity)
    took_ms = round((time.perf_counter() - began) * 1000, 3)
    return SearchOut(
        results=[_hit(hit, explain=body.explain) for hit in found.hits],
        vector_path=found.vector_path,
        warnings=list(found.warnings),
        candidates=dict(found.explained.candidates) if found.explained else None,
        timings_ms={"total": took_ms},
    )


def _hit(hit: Hit, *, explain: bool) -> HitOut:
    shown = _explained(hit) if explain else None
    return HitOut(**shapes.fields(hit.memory), score=hit.score, similarity=hit.similarity, explain=shown)


def _explained(hit: Hit) -> ExplainOut:
    terms = {
        name: TermOut(raw=term.raw, value=term.value, weight=term.weight)
        for name, term in hit.terms.items()
        if term.weight > 0
    }
    return ExplainOut(terms=terms, factors=dict(hit.factors))


def _first(exc: ValueError) -> str:
    listed = getattr(exc, "errors", None)
    return str(listed()[0]["msg"]).removeprefix("Value error, ") if listed else str(exc)
