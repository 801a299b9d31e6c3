"""Request and response models for search."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from service.domain.memory import HitSource, LaterStatementItem, SignalTerm
from service.domain.query import Detail, TechniqueMetrics, Validity, VectorPath
from service.domain.ranking import Factors, Fusion, Ranking, Techniques, Weights, over
from service.domain.relation import ConnectedMemoryItem
from service.http.narrowing import NarrowingFields, WordList
from service.http.reads import DETAIL
from service.http.schemas import Id, RequestModel, ResponseModel, Time, Unit
from service.memories.routes.memory_models import MemoryItem

MIN_PROBABILITY = "Minimum answer_probability, 0..1; results without one are kept"

HitProbability = Annotated[
    float | None,
    Field(
        description="Probability that it is the answer, 0..1; null without a query or a vector, and for a request",
        examples=[0.58],
    ),
]
Answerable = Annotated[
    bool | None,
    Field(
        description="Whether answer_probability is 0.5 or more; null if that is null. The estimate is too low if "
        "question and answer share no word, so look at the hits before refusing to answer",
        examples=[True],
    ),
]
AnswerProbability = Annotated[
    float | None,
    Field(
        description="Probability that the searched scope contains the answer at all, 0..1; null without a query or "
        "any vector, and for a request, which asks nothing",
        examples=[0.87],
    ),
]


MAX_QUERY = 100_000
Limit = Annotated[int, Field(ge=1, le=1_000)]


class RankingTuning(RequestModel):
    """Ranking options for this request; the defaults are the workspace's settings."""

    fusion: Fusion | None = Field(
        default=None,
        description="Sum signals by value (weighted) or by rank (rrf); default weighted",
    )
    weights: Weights | None = Field(
        default=None, description="Weight of each signal; the others keep theirs", examples=[{"text_vector": 2.0}]
    )
    factors: Factors | None = Field(
        default=None,
        description="Factors of the score; the others keep theirs",
        examples=[{"importance": 0.2}],
    )
    techniques: Techniques | None = Field(
        default=None,
        description="Techniques applied to the query; the others keep their setting",
        examples=[{"query_expansion": True}],
    )
    diversity: Unit | None = Field(
        default=None, description="0..1: how much to lower hits that repeat one ranked above; default 0"
    )
    rerank: bool | None = Field(
        default=None, description="Let the reranker reorder the first hits; default: if there is one"
    )

    def merged_into(self, base: Ranking) -> Ranking:
        """The workspace's ranking with the options of the request."""
        return replace(
            base,
            fusion=self.fusion or base.fusion,
            weights=over(base.weights, self.weights),
            factors=over(base.factors, self.factors),
            techniques=over(base.techniques, self.techniques),
            diversity=base.diversity if self.diversity is None else self.diversity,
            rerank=base.rerank if self.rerank is None else self.rerank,
        )


class RankingFields(RequestModel):
    """How to rank, and how much to explain."""

    tuning: RankingTuning = Field(
        default_factory=lambda: RankingTuning(),
        description="How to rank; default: the workspace's settings",
        examples=[{"diversity": 0.3}],
    )
    reinforce: bool = Field(True, description="Count the hits as used; false for previews")
    explain: bool = Field(False, description="Include the terms of each hit's score")
    explain_id: Id | None = Field(
        None, description="UUID of a memory: `why` in the response says whether it was found, or why not"
    )


class SearchRequest(NarrowingFields, RankingFields):
    """A query in a scope. Without a query, but with tags, filters or other conditions, the most important matching
    memories are listed."""

    model_config = ConfigDict(
        json_schema_extra={
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

    query: str | None = Field(None, max_length=MAX_QUERY, description="The query", examples=["Where is the boat?"])
    limit: Limit = Field(100, description="Maximum number of hits; fewer only if fewer match")
    prefer_tags: WordList = Field(default_factory=list, description="Hits with one of these tags rank higher")
    min_score: Unit = Field(0.0, description="Minimum score of a hit")
    min_probability: Unit = Field(0.0, description=MIN_PROBABILITY)
    validity: Validity = Field(
        "exclude",
        description="Memories not valid now: exclude omits them, demote ranks past ones lower and omits future ones, "
        "ignore keeps all",
    )
    connected: bool = Field(False, description="Include the memories that each hit is connected to, 5 by default")
    turns: bool = Field(
        True,
        description="Also return turns whose content is in no memory, unless tags, filters or another condition that "
        "only memories can meet is given",
    )
    detail: Detail = Field("lean", description=DETAIL)
    cursor: str | None = Field(
        None, max_length=100, description="next_cursor of the previous page, with an otherwise identical request"
    )

    @model_validator(mode="after")
    def _agreeing(self) -> Self:
        if self.valid_at is not None and self.validity != "exclude":
            raise ValueError("validity: is about now; give validity or valid_at, not both")
        for name in ("connected", "explain_id"):
            if self.as_of is not None and getattr(self, name):
                raise ValueError(f"{name}: cannot be combined with as_of")
        return self

    @property
    def query_text(self) -> str:
        """The query without outer spaces; empty without one."""
        return (self.query or "").strip()


class ScoreExplanation(ResponseModel):
    """The score is the sum of value times weight over `terms`, multiplied by each of `factors`."""

    terms: dict[str, SignalTerm] = Field(description="By signal; only signals with a weight")
    factors: dict[str, float] = Field(description="By name", examples=[{"validity": 1.0, "temporal_tag": 1.2}])


class MemoryExplanation(ResponseModel):
    """Why a memory was not found: unknown (no such memory in the scope), archived, expired, awaits_review,
    not_yet_valid, no_longer_valid, before_window, after_window, filtered_out (by tags, filters or other conditions),
    not_a_candidate (no search arm returned it), below_min_score, below_min_probability, below_limit, moved_down (by
    diversity or the reranker), and in addition no_vector_yet."""

    id: Id = Field(description="As requested")
    found: bool = Field(description="Whether it is among the results")
    place: int | None = Field(description="Its rank among all candidates, from 1; null: not a candidate", examples=[7])
    reasons: list[str] = Field(description="Codes of the reasons; empty when it was found", examples=[["below_limit"]])
    score: float | None = Field(None, description="Its score; null: not ranked", examples=[0.41])
    explain: ScoreExplanation | None = Field(None, description="The terms of the score; null: not ranked")


class MemorySearchHit(MemoryItem):
    """A memory that matches, or a turn whose content is in no memory."""

    source: HitSource = Field(
        description="turn: `id` and `memory` are those of a turn; fields that turns lack are null, empty or default"
    )
    score: float = Field(
        description="The value that hits are ranked by: 0..1, times the factors, so it may exceed 1", examples=[0.72]
    )
    similarity: float | None = Field(
        description="Calibrated cosine to the query, 0..1; null without a vector", examples=[0.64]
    )
    answer_probability: HitProbability
    later: list[LaterStatementItem] = Field(
        description="Later memories about the same thing, latest first, at most 3; the hit may still be valid",
    )
    turn_index: int | SkipJsonSchema[None] = Field(
        None, description="Place in its conversation; only turns have it, and memories with detail=full"
    )
    explain: ScoreExplanation | SkipJsonSchema[None] = Field(
        None, description="The terms of the score; only with explain"
    )
    connected: list[ConnectedMemoryItem] | SkipJsonSchema[None] = Field(
        None, description="The memories it is most strongly connected to; only with connected"
    )


class TimeInterval(ResponseModel):
    """A half-open interval of time."""

    start: Time | None = Field(description="Start, inclusive; null: open", examples=["2026-02-23T00:00:00+00:00"])
    end: Time | None = Field(description="End, exclusive; null: open", examples=["2026-03-02T00:00:00+00:00"])


class SearchMetrics(ResponseModel):
    """Techniques that a search used."""

    techniques: dict[str, TechniqueMetrics] = Field(description="By name; only techniques that were on")


class SearchResponse(ResponseModel):
    """Hits, and how they were found."""

    results: list[MemorySearchHit] = Field(description="Best first; at most `limit`")
    next_cursor: str | None = Field(
        None, description="Pass it as `cursor` for the hits that did not fit the response; null: all did"
    )
    answerable: Answerable = None
    answer_probability: AnswerProbability = None
    vector_path: VectorPath = Field(
        description="How vectors were searched; none: no embedder or no query", examples=["exact"]
    )
    warnings: list[str] = Field(
        default_factory=list, description="What was omitted, each as `code: sentence`", examples=[[]]
    )
    window: TimeInterval | None = Field(
        None, description="The requested time, from start and end or time_query; null: none"
    )
    why: MemoryExplanation | None = Field(
        None, description="Whether this memory was found and why, with explain_id; else null"
    )
    candidates: dict[str, int] | None = Field(
        None,
        description="Number of candidates of each search arm, with explain; else null",
        examples=[{"text_lexical": 12, "text_vector": 100}],
    )
    metrics: SearchMetrics = Field(description="Time and yield of each technique")
    timings_ms: dict[str, float] = Field(
        description="Milliseconds in total, with explain per stage; self_query_retry: a first search whose filters, "
        "derived from the query by self_query, matched nothing",
        examples=[{"total": 14.2, "embed": 4.1}],
    )
