"""Route for recall: everything that helps to answer a query, in one bundle."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Response
from pydantic import ConfigDict, Field, model_validator

from service.cognition.routes.goals import GoalResponse, goal_response
from service.cognition.routes.strategies import StrategySearchHit, strategy_search_hit
from service.cognition.values import ProfileResponse
from service.conversations.models import TurnListItem, turn_item
from service.domain.moments import elapsed_ms
from service.domain.query import Detail, Narrow, TechniqueMetrics, VectorPath, Window, is_answerable
from service.domain.ranking import RecallWeights, Techniques, over
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.http import narrowing
from service.http.deps import Reader, ResourcesOf, read_scope
from service.http.json_body import JsonRoute
from service.http.reads import DETAIL, AuditReadOf, CountUseOf, in_time, send_json
from service.http.schemas import (
    Channel,
    Filled,
    Id,
    ReadScopeFields,
    RequestModel,
    ResponseModel,
    Time,
    Unit,
    Zone,
)
from service.memories.routes.memory_models import MemoryItem, memory_item
from service.runtime.pii import clean_words
from service.runtime.resources import Resources
from service.search.recall import recall
from service.search.routes.search_models import (
    MIN_PROBABILITY,
    Answerable,
    AnswerProbability,
    HitProbability,
)
from service.search.values import PARTS, Bundle, PartName, RecallPartMetrics, RecallQuery, RecallRelationItem

MAX_QUERY = 20_000
Most = Annotated[int, Field(ge=1, le=500)]
MAX_TOKENS = 200_000
MAX_HOURS = 24 * 366 * 100
PARTS_WITH_PAST: frozenset[PartName] = frozenset({"turns", "facts"})
"""The parts that can be read as of a moment."""


class RecallParts(RequestModel):
    """The parts to return; the others are not read."""

    turns: bool = Field(default=True, description="Turns of conversations")
    facts: bool = Field(default=True, description="Memories that are not turns")
    entities: bool = Field(default=True, description="Entities that the query names, with their relations")
    strategies: bool = Field(default=True, description="Strategies that worked in similar tasks")
    goals: bool = Field(default=True, description="Active goals")
    user_context: bool = Field(default=True, description="The profile of the user")


class RecallRequest(ReadScopeFields):
    """A query, its scope, and how much to return."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "Where does Alice want to live?", "user_id": "alice"},
                {
                    "query": "What did we decide about the boat?",
                    "user_id": "alice",
                    "max_tokens": 800,
                    "format": "markdown",
                    "include": {"entities": False},
                },
            ],
        }
    )

    query: Filled = Field(min_length=1, max_length=MAX_QUERY, description="The query text")
    channels: list[Channel] | None = Field(
        None, max_length=50, description="Channels to search in addition to channel and _global"
    )
    include: RecallParts = Field(default_factory=lambda: RecallParts(), description="Parts to return; default all")
    weights: RecallWeights | None = Field(
        None, description="How the parts share the token budget; default: 0.3, 0.25, 0.2, 0.15, 0.1"
    )
    limit: Most = Field(100, description="Maximum number of results in each part")
    max_tokens: int = Field(
        2_000, ge=50, le=MAX_TOKENS, description="Maximum size of the bundle as text, in estimated tokens"
    )
    per_conversation: int | None = Field(
        None, ge=1, le=500, description="Maximum number of passages from one conversation, e.g. 3; default: no limit"
    )
    around: int = Field(0, ge=0, le=10, description="Turns to add before and after each matching turn")
    time_window_hours: float | None = Field(
        None,
        gt=0,
        le=MAX_HOURS,
        allow_inf_nan=False,
        description="Only turns and facts of the last N hours; default: no limit",
    )
    min_confidence: Unit | None = Field(
        None, description="Minimum current_confidence of facts, 0..1; facts without one are kept"
    )
    min_probability: Unit = Field(0.0, description=MIN_PROBABILITY)
    valid_at: Time | None = Field(
        None, description="Facts that were valid at this moment instead of now, and turns that no memory keeps"
    )
    as_of: Time | None = Field(
        None, description="Turns and facts as recorded at this moment; the other parts are left out"
    )
    timezone: Zone | None = Field(None, description="IANA time zone for dates; default: the workspace's")
    techniques: Techniques | None = Field(
        None, description="Techniques applied to the query; the others keep their setting"
    )
    diversity: Unit | None = Field(
        None, description="0..1: how much to lower facts that repeat one ranked above; default 0"
    )
    reinforce: bool = Field(True, description="Count the results as used; false for previews")
    detail: Detail = Field("lean", description=DETAIL)
    format: Literal["json", "markdown"] = Field(
        "json", description="markdown: also return one block of text for a prompt"
    )

    @model_validator(mode="after")
    def _has_a_past(self) -> Self:
        if self.as_of is not None and not self.parts & PARTS_WITH_PAST:
            raise ValueError("as_of: applies to turns and facts only; include at least one of them")
        return self

    @property
    def is_injected(self) -> bool:
        """Whether the result goes into a prompt without a requested minimum probability."""
        return self.format == "markdown" and "min_probability" not in self.model_fields_set

    @property
    def parts(self) -> frozenset[PartName]:
        """The parts that are included and can be read."""
        included = frozenset(part for part in PARTS if getattr(self.include, part))
        return included if self.as_of is None else included & PARTS_WITH_PAST


class RecallTurnItem(TurnListItem):
    """A turn that matches the query, or is next to one that does."""

    score: float = Field(description="Ranks across all parts: share times `match`, plus the share of recency")
    match: float = Field(description="How well it matches, 0..1; 0 with `around`")
    answer_probability: HitProbability
    around: bool = Field(description="Whether it is only next to a matching turn; it has the score of that turn")


class RecallFactItem(MemoryItem):
    """A memory that matches the query."""

    score: float = Field(description="Ranks across all parts: share times `match`, plus the share of recency")
    match: float = Field(description="Its score in a search: 0..1, times the factors")
    similarity: float | None = Field(description="Calibrated cosine to the query, 0..1; null without a vector")
    answer_probability: HitProbability


class RecallEntityItem(ResponseModel):
    """An entity that the query names."""

    id: Id = Field(description="UUID")
    name: str = Field(description="Its name")
    type: str = Field(description="Lower case and singular, such as person or project")
    aliases: list[str] = Field(description="Its other names")
    description: str | None = Field(description="What it is; null when unknown")
    salience: float = Field(description="0..1; 0.5 unless set")
    score: float = Field(description="Always 1: the query names it")


class RecallMetrics(ResponseModel):
    """Size and time of the whole bundle and of its parts."""

    parts: dict[str, RecallPartMetrics] = Field(description="By part; only requested parts")
    tokens: int = Field(description="Estimated tokens of the bundle as text: bytes of UTF-8 / 4")
    max_tokens: int = Field(description="As requested")
    vector_path: VectorPath = Field(description="How the vectors of memories were searched; none: no embedder")
    techniques: dict[str, TechniqueMetrics] = Field(description="By name; only techniques that were used")
    ms: float = Field(description="Milliseconds from the request to the answer")


class RecallResponse(ResponseModel):
    """What helps to answer the query, each part best first, cut to the token budget."""

    turns: list[RecallTurnItem] = Field(description="Turns of conversations")
    facts: list[RecallFactItem] = Field(description="Memories that are not turns")
    entities: list[RecallEntityItem] = Field(description="Entities that the query names")
    graph: list[RecallRelationItem] = Field(
        description="The strongest relations of these entities, up to five in each direction, each once"
    )
    strategies: list[StrategySearchHit] = Field(description="Strategies that worked in similar tasks")
    goals: list[GoalResponse] = Field(description="Active goals of the scope, by priority")
    user_context: ProfileResponse | None = Field(description="The profile of the user; null: none, or not requested")
    answerable: Answerable = None
    answer_probability: AnswerProbability = None
    markdown: str | None = Field(None, description="All parts as one block of text, with format=markdown; else null")
    metrics: RecallMetrics = Field(description="Sizes and times")
    warnings: list[str] = Field(description="What was omitted, each as `code: sentence`", default_factory=list)


def _answer(bundle: Bundle, request: RecallRequest, *, ms: float, now: datetime) -> dict[str, Any]:
    """A RecallResponse."""
    return {
        "turns": [
            {
                **turn_item(item.turn, request.detail),
                "score": item.score,
                "match": min(1.0, item.hit.score) if item.hit else 0.0,
                "answer_probability": item.hit.answer_probability if item.hit else None,
                "around": item.hit is None,
            }
            for item in bundle.turns
        ],
        "facts": [
            {
                **memory_item(fact.hit.memory, request.detail),
                "score": fact.score,
                "match": fact.hit.score,
                "similarity": fact.hit.similarity,
                "answer_probability": fact.hit.answer_probability,
            }
            for fact in bundle.facts
        ],
        "entities": [
            RecallEntityItem.of(item.entity, aliases=list(item.entity.aliases), score=1.0) for item in bundle.entities
        ],
        "graph": list(dict.fromkeys(relation for item in bundle.entities for relation in item.relations)),
        "strategies": [strategy_search_hit(match) for match in bundle.strategies],
        "goals": [goal_response(goal, now) for goal in bundle.goals],
        "user_context": bundle.profile,
        "answerable": is_answerable(bundle.answer_probability),
        "answer_probability": bundle.answer_probability,
        "markdown": bundle.text if request.format == "markdown" else None,
        "metrics": {
            "parts": bundle.metrics,
            "tokens": bundle.tokens,
            "max_tokens": request.max_tokens,
            "vector_path": bundle.vector_path,
            "techniques": bundle.techniques,
            "ms": ms,
        },
        "warnings": bundle.warnings,
    }


INJECTED_FROM = 0.3
"""Minimum probability of an answer for turns, facts and entities to enter a prompt. Of questions about chats that have
an answer 41 of 45 are above, of those that have none 18 of 45 are below."""

router = APIRouter(prefix="/v1/recall", tags=["recall"], route_class=JsonRoute)


@router.post("", operation_id="recall", summary="Recall what helps to answer", response_model=RecallResponse)
async def recall_bundle(
    body: RecallRequest,
    caller: Reader,
    res: ResourcesOf,
    audit_read: AuditReadOf,
    count_use: CountUseOf,
) -> Response:
    """Turns and facts that answer the query, the entities it names with their relations, active goals, and the user's
    profile, read at one moment and cut to `max_tokens`. With `format=markdown` also as a block for a prompt."""
    began = time.perf_counter()
    scope = read_scope(caller, res, body, body.channel, body.channels)
    text = await clean_words(body.query, "query", res)
    narrowing.refuse_future(body.as_of, res.clock())
    query = _query(body, scope, text, res)
    async with in_time(res) as timed:
        bundle = await recall(query, timed)
    facts = [item.hit.memory for item in bundle.facts]
    if body.reinforce and body.as_of is None:
        count_use(facts, [item.entity.id for item in bundle.entities])
    channels = query.channels
    techniques = {name: {"ms": use.ms, "count": use.count} for name, use in bundle.techniques.items()} or None
    audit_read("recall", scope, facts, query=text, channels=channels, max_tokens=body.max_tokens, techniques=techniques)
    if bundle.turns:
        turns = [item.turn for item in bundle.turns]
        audit_read("recall", scope, turns, query=text, subject="episodic", channels=channels, top_k=body.limit)
    if bundle.strategies:
        strategies = [match.strategy for match in bundle.strategies]
        audit_read("recall", scope, strategies, query=text, subject="procedural", channels=channels, top_k=body.limit)
    return send_json(_answer(bundle, body, ms=elapsed_ms(began), now=res.clock()))


def _query(body: RecallRequest, scope: Scope, text: CleanText, res: Resources) -> RecallQuery:
    hours, defaults = body.time_window_hours, res.settings.ranking
    return RecallQuery(
        scope,
        text,
        channels=tuple(body.channels or ()),
        include=body.parts,
        limit=body.limit,
        max_tokens=body.max_tokens,
        per_conversation=body.per_conversation,
        context_window=body.around,
        window=Window(None if hours is None else res.clock() - timedelta(hours=hours)),
        narrow=Narrow(min_confidence=body.min_confidence, valid_at=body.valid_at),
        min_probability=body.min_probability,
        min_answer=INJECTED_FROM if body.is_injected else 0.0,
        as_of=body.as_of,
        timezone=body.timezone or res.settings.memories.timezone,
        detail=body.detail,
        shares=over(RecallWeights(), body.weights),
        ranking=replace(
            defaults,
            techniques=over(defaults.techniques, body.techniques),
            diversity=defaults.diversity if body.diversity is None else body.diversity,
            rerank=False,  # the hits are read in the snapshot of the other parts
        ),
    )
