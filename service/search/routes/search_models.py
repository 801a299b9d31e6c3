"""Request and response models of search."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from service.domain.memory import HitSource
from service.domain.query import Validity, VectorPath
from service.domain.ranking import Factors, Fusion, Ranking, Techniques, Weights, over
from service.http.narrowing import NarrowingFields, WordList
from service.http.schemas import Id, RequestModel, ResponseModel, Time, Unit, Unlisted
from service.memories.routes.connected import ConnectedMemoryItem
from service.memories.routes.memory_models import MemoryResponse
from service.search.routes.answers import MIN_PROBABILITY, Answerable, AnswerProbability, HitProbability

MAX_QUERY = 100_000
Limit = Annotated[int, Field(ge=1, le=1_000)]

LIMIT = "At most so many hits; fewer only when fewer match"
MIN_SCORE = "Leaves out hits that score lower"
VALIDITY = "What is over, or not valid yet: exclude leaves it out, demote ranks what is over lower, ignore shows all"
TURNS = (
    "false: memories alone; else what was said and no memory says answers as well, unless tags, filters or another "
    "condition that only memories meet narrows the search"
)
CONNECTED = "Show with each hit the memories it is connected to, 5 by default"


class RankingTuning(RequestModel):
    """What ranks, for this request; what it leaves out is the workspace's, which nobody needs to change."""

    fusion: Fusion | None = Field(
        default=None,
        description="Sum signals by value (weighted, zscore) or by rank (rrf); default weighted",
    )
    weights: Weights | None = Field(
        default=None, description="What each signal counts; the others keep theirs", examples=[{"text_vector": 2.0}]
    )
    factors: Factors | None = Field(
        default=None,
        description="What the sum is multiplied by; the others keep theirs",
        examples=[{"importance": 0.2}],
    )
    techniques: Techniques | None = Field(
        default=None,
        description="What is done with the query; the others keep theirs",
        examples=[{"query_expansion": True}],
    )
    diversity: Unit | None = Field(
        default=None, description="0..1: how much a hit loses for repeating one above it; default 0"
    )
    rerank: bool | None = Field(default=None, description="Let the reranker, if there is one, look at the first hits")

    def merged_into(self, base: Ranking) -> Ranking:
        """The workspace's ranking with what the request says."""
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
    """How a search ranks, and how much it tells of that. What `tuning` holds may also stand beside it."""

    tuning: RankingTuning = Field(
        default_factory=lambda: RankingTuning(), description="How hits are ranked; left out: as the workspace does"
    )
    fusion: Unlisted[Fusion | None] = Field(None, description="The same in tuning")
    weights: Unlisted[Weights | None] = Field(None, description="The same in tuning")
    factors: Unlisted[Factors | None] = Field(None, description="The same in tuning")
    techniques: Unlisted[Techniques | None] = Field(None, description="The same in tuning")
    diversity: Unlisted[Unit | None] = Field(None, description="The same in tuning")
    rerank: Unlisted[bool | None] = Field(None, description="The same in tuning")
    reinforce: bool = Field(True, description="Count the hits as used; false for previews")
    explain: bool = Field(False, description="Show with each hit the terms that its score is made of")
    explain_id: Id | None = Field(
        None, description="UUID of a memory: the answer says in `why` if it was found or why not"
    )

    @model_validator(mode="after")
    def _tuned_once(self) -> Self:
        if twice := sorted(self.tuning.model_fields_set & self.model_fields_set):
            raise ValueError(f"{twice[0]}: give it in tuning or beside it, not both")
        return self

    def merged_into(self, base: Ranking) -> Ranking:
        """The workspace's ranking with what the request says."""
        beside = {name: getattr(self, name) for name in RankingTuning.model_fields if getattr(self, name) is not None}
        return self.tuning.model_copy(update=beside).merged_into(base)


class SearchRequest(NarrowingFields, RankingFields):
    """A query in a scope. Without one, but with tags, filters or whatever else narrows, the most important memories
    are listed."""

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
    q: Unlisted[str | None] = Field(
        None, max_length=MAX_QUERY, description="The same as query", examples=["Where is the boat?"]
    )
    limit: Limit = Field(100, description=LIMIT)
    top_k: Unlisted[Limit | None] = Field(None, description="The same as limit")
    prefer_tags: WordList = Field(default_factory=list, description="Hits with one of these rank higher")
    min_score: Unit = Field(0.0, description=MIN_SCORE)
    min_probability: Unit = Field(0.0, description=MIN_PROBABILITY)
    validity: Validity = Field("exclude", description=VALIDITY)
    connected: bool = Field(False, description=CONNECTED)
    turns: bool = Field(True, description=TURNS)
    cursor: str | None = Field(None, max_length=100, description="next_cursor of the answer before, else as before")

    @model_validator(mode="after")
    def _one_query(self) -> Self:
        if self.query is not None and self.q is not None:
            raise ValueError("query: give query or q, not both")
        if self.top_k is not None and "limit" in self.model_fields_set:
            raise ValueError("limit: give limit or top_k, not both")
        if self.valid_at is not None and self.validity != "exclude":
            raise ValueError("validity: is about now, where valid_at names the moment: give one of them")
        for name in ("connected", "explain_id"):
            if self.as_of is not None and getattr(self, name):
                raise ValueError(f"{name}: shows what is there now, as_of what was there then: give one of them")
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
    not_a_candidate (no arm brought it), below_min_score, below_min_probability, below_limit, moved_down (by diversity
    or the reranker), and no_vector_yet beside them."""

    id: Id = Field(description="As it was asked for")
    found: bool = Field(description="Whether it is among the results")
    place: int | None = Field(description="Its rank among all candidates, from 1; null: it was none", examples=[7])
    reasons: list[str] = Field(description="Codes of what keeps it out", examples=[["below_limit"]])
    score: float | None = Field(None, description="null when it was not ranked", examples=[0.41])
    explain: ScoreExplanation | None = Field(None, description="How that score came about; null when it was not ranked")


class LaterStatementItem(ResponseModel):
    """A memory that says something about the same thing, later."""

    id: Id = Field(description="The memory")
    timestamp: Time = Field(description="When it was said", examples=["2026-11-09T10:15:00+00:00"])


class MemorySearchHit(MemoryResponse):
    """A memory that answers, or a turn of which no memory says the same."""

    source: HitSource = Field(
        description="turn: `id` and `memory` are those of a turn; what turns do not have is null, empty or the default"
    )
    score: float = Field(description="Ranks: 0..1, times the factors, which may lift it above 1", examples=[0.72])
    similarity: float | None = Field(
        description="The calibrated cosine to the query, 0..1; null without a vector", examples=[0.64]
    )
    answer_probability: HitProbability = None
    later: list[LaterStatementItem] = Field(
        default_factory=list,
        description="What was said after it about the same thing, the latest first, at most 3; it may still hold",
    )
    explain: ScoreExplanation | None = Field(None, description="With explain: how the score came about; else null")
    connected: list[ConnectedMemoryItem] | None = Field(
        None, description="With connected: the memories it is connected to most strongly; else null"
    )


class TimeInterval(ResponseModel):
    """A half-open interval."""

    start: Time | None = Field(description="Its first moment; null: open", examples=["2026-02-23T00:00:00+00:00"])
    end: Time | None = Field(
        description="The moment after its last; null: open", examples=["2026-03-02T00:00:00+00:00"]
    )


class TechniqueMetrics(ResponseModel):
    """A technique that was on: what it took, how many candidates, texts or filters it gave, and how."""

    ms: float = Field(description="Milliseconds it took", examples=[3.4])
    count: int = Field(description="Candidates, texts or filters it gave, from 0", examples=[40])
    note: str | None = Field(
        None, description="By rules or by a model, or why it was left out; null: neither", examples=["by rules"]
    )


class SearchMetrics(ResponseModel):
    """What a search was made of."""

    techniques: dict[str, TechniqueMetrics] = Field(description="By name; only those that were on")


class SearchResponse(ResponseModel):
    """What was found, and how."""

    results: list[MemorySearchHit] = Field(description="Best first, as many as `limit` or as match")
    next_cursor: str | None = Field(
        None, description="Give it back as `cursor` for the hits that were too large for one answer; null: none were"
    )
    answerable: Answerable = None
    answer_probability: AnswerProbability = None
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
        description="The total, with explain every stage; self_query_retry: the first search, with filters that "
        "self_query read out of the query and that matched nothing",
        examples=[{"total": 14.2, "embed": 4.1}],
    )
