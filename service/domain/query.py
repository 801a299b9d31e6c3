"""Queries, results of searches, and the order and pages of lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from service.domain.filters import Filter
from service.domain.memory import Hit, SignalTerm
from service.domain.ranking import Ranking
from service.domain.relation import ConnectedMemoryItem
from service.domain.scope import Scope
from service.domain.text import CleanText

Validity = Literal["exclude", "demote", "ignore"]
Detail = Literal["lean", "full"]
"""The fields of each memory or turn in an answer: those that callers act on, or all."""

TagMatch = Literal["prefix", "exact"]
ScopeId = Literal["user_id", "agent_id", "run_id"]
TagMode = Literal["any", "all"]
ApproximatePath = Literal["binary", "hnsw"]
"""How the vectors of a large scope are searched: all their binary quantisations, or the graph of a very large one."""

VectorPath = Literal["exact", "binary", "hnsw", "fallback", "none"]
"""How they were searched in the end. fallback: the strategy found too few, so all rows were compared."""


@dataclass(frozen=True, slots=True)
class Window:
    """Half-open interval of event times; either end may be open."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.start is None and self.end is None


@dataclass(frozen=True, slots=True)
class Narrow:
    """Conditions on a row in addition to the scope; empty means no condition.

    `tags`, `exclude_tags`: normalised. `tag_match`: "prefix" finds slack:channel by slack and by slack:channel; "exact"
    only by slack:channel. `tag_mode`: one of them is enough, or all are needed. `categories`, `types`: one is enough.
    `min_confidence` 0..1: of the facts that have a confidence. `valid_at`: valid at this moment instead of now.
    `without`: ids that a row must not have.
    """

    filters: Filter | None = None
    tags: tuple[str, ...] = ()
    tag_match: TagMatch = "prefix"
    tag_mode: TagMode = "any"
    exclude_tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    min_confidence: float | None = None
    valid_at: datetime | None = None
    without: tuple[ScopeId, ...] = ()


ANSWERABLE = 0.5
"""Probability of an answer from which a question counts as answerable."""


def is_answerable(answer_probability: float | None) -> bool | None:
    """Whether there probably is an answer; None if unknown."""
    return None if answer_probability is None else answer_probability >= ANSWERABLE


def is_probable(answer_probability: float | None, min_probability: float) -> bool:
    """Whether a hit is kept; one without a probability always is."""
    return answer_probability is None or answer_probability >= min_probability


EVER = Window()
NO_TEXT = CleanText("")
ANYTHING = Narrow()


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a search or a list: a redacted text in a scope. An empty text lists the most important memories.

    `tags`: normalised, tags that a hit should have. `reference`: the moment from which "last week" counts, None for
    now, on the clock of `timezone` (IANA, None for the workspace's). `validity`: what happens to memories outside
    [t_valid, t_invalid). `channels`: in addition to the scope's own and `_global`. `min_score` 0..1: hits below it are
    left out; `min_probability` 0..1: those that answer with a smaller probability. `explain_id`: a memory for which the
    answer says why it was found or not. `as_of`: what was recorded at this moment, instead of now. `skip`: how many of
    the best the previous answers had. `detail`: the fields to read of hits. `turns`: turns are searched too, unless the
    query is narrowed by something that turns lack. `connected`: the answer has the memories that each hit is connected
    to.
    """

    scope: Scope
    text: CleanText = NO_TEXT
    limit: int = 0
    window: Window = field(default_factory=Window)
    validity: Validity = "exclude"
    include_archived: bool = False
    explain: bool = False
    tags: tuple[str, ...] = ()
    reference: datetime | None = None
    timezone: str | None = None
    narrow: Narrow = field(default_factory=Narrow)
    channels: tuple[str, ...] = ()
    min_score: float = 0.0
    min_probability: float = 0.0
    ranking: Ranking = field(default_factory=Ranking)
    explain_id: UUID | None = None
    as_of: datetime | None = None
    skip: int = 0
    detail: Detail = "lean"
    turns: bool = False
    connected: bool = False

    @property
    def may_find_turns(self) -> bool:
        """Whether turns are searched."""
        now = self.as_of is None and self.validity == "exclude"
        return self.turns and now and self.narrow == ANYTHING and self.scope.has_owner


@dataclass(frozen=True, slots=True)
class TechniqueMetrics:
    """Time and yield of a technique."""

    ms: Annotated[float, Field(description="Milliseconds it took", examples=[3.4])]
    count: Annotated[int, Field(description="Number of candidates, texts or filters it produced", examples=[40])]
    note: Annotated[
        str | None,
        Field(description="By rules or by a model, or why it was skipped; null: neither", examples=["by rules"]),
    ] = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one memory is among the hits or not. `place`: its rank among all candidates, from 1; `reasons`: codes of what
    excludes it; `score` and `terms`, if it was measured."""

    id: UUID
    found: bool
    place: int | None
    reasons: tuple[str, ...]
    score: float | None = None
    terms: Mapping[str, SignalTerm] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first; `vector_path` says how vectors were searched, "none" when there was no vector to ask with.
    `candidates`: the number of each arm, and `timings_ms`, both for `explain`. `entities`: those that the query named.
    `answer_probability` 0..1: that the searched memories have the answer; None if unknown. `next_skip`: the `skip` for
    hits that did not fit into one answer; None: all did. `connected`: the memories that each hit is connected to,
    strongest first, if the query asks for them."""

    hits: tuple[Hit, ...]
    vector_path: VectorPath
    warnings: tuple[str, ...] = ()
    techniques: Mapping[str, TechniqueMetrics] = field(default_factory=dict)
    candidates: Mapping[str, int] | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    why: Explanation | None = None
    entities: tuple[UUID, ...] = ()
    answer_probability: float | None = None
    next_skip: int | None = None
    connected: Mapping[UUID, Sequence[ConnectedMemoryItem]] = field(default_factory=dict)


SortField = Literal["created_at", "updated_at", "timestamp", "importance"]
SortValue = datetime | float


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The column to sort by; equal rows go by their id."""

    sort: SortField = "created_at"
    ascending: bool = False


@dataclass(frozen=True, slots=True)
class PageKey:
    """A row's place in the order; the next page starts after the last one's."""

    key: SortValue
    id: UUID
