"""The query and the answer of recall: a bundle of turns, facts, entities, strategies, goals and the user's profile; and
events of the timeline."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from service.cognition.values import Goal, ProfileResponse, StrategyMatch
from service.domain.conversation import Turn
from service.domain.entity import Entity
from service.domain.memory import Hit
from service.domain.query import Query, TechniqueMetrics, VectorPath, Window
from service.domain.ranking import RecallWeights
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.http.schemas import ResponseModel

PartName = Literal["turns", "facts", "entities", "strategies", "goals", "user_context"]
PARTS: tuple[PartName, ...] = ("user_context", "goals", "facts", "entities", "strategies", "turns")
"""The parts in the order of the prompt: the last one is closest to the query."""


@dataclass(frozen=True, slots=True)
class RecallQuery(Query):
    """A query to everything that is stored for a scope. The fields of Query apply to turns and facts.

    `limit`: maximum number in each part. `max_tokens`: maximum for the whole bundle, as text. `per_conversation`:
    maximum number of passages of one conversation, so that it does not crowd out the others; None for no maximum.
    `context_window`: turns returned before and after each match. Both are off by default: with 2,000 tokens they cost
    evidence on LoCoMo's dev conversations (docs/recall.md). `min_answer`: 0..1, leaves out all turns, facts and
    entities if an answer is less probable.
    """

    limit: int = 100
    include: frozenset[PartName] = frozenset(PARTS)
    max_tokens: int = 2_000
    per_conversation: int | None = None
    context_window: int = 0
    min_answer: float = 0.0
    shares: RecallWeights = field(default_factory=RecallWeights)

    @property
    def may_find_turns(self) -> bool:
        """Whether turns are searched: the conditions on facts leave out no other turns."""
        return self.turns


@dataclass(frozen=True, slots=True)
class TurnItem:
    """A turn of the bundle. `hit`: itself or a memory that keeps it; None: it does not match, but is next to one that
    does, and has the `score` of that."""

    turn: Turn
    score: float
    hit: Hit | None


@dataclass(frozen=True, slots=True)
class FactItem:
    """A fact of the bundle, with a score that ranks it across all parts."""

    hit: Hit
    score: float


@dataclass(frozen=True, slots=True)
class EntityItem:
    """An entity that the query names, with its strongest relations."""

    entity: Entity
    relations: tuple[RecallRelationItem, ...] = ()


class RecallRelationItem(ResponseModel):
    """A relation of one of these entities, from source to target."""

    source: str = Field(description="Name of the source entity")
    relation: str = Field(description="The type as given, such as works_at")
    target: str = Field(description="Name of the target entity")
    strength: float = Field(description="0..1")


class RecallPartMetrics(ResponseModel):
    """Size and time of one part."""

    found: int = Field(description="Number of candidates")
    kept: int = Field(description="Number of those that fit")
    tokens: int = Field(description="Estimated tokens, including the heading: bytes of UTF-8 / 4")
    ms: float = Field(description="Milliseconds to read it")


@dataclass(frozen=True, slots=True)
class Bundle:
    """The parts of a recall that fit into the token budget, each best first. `text` is the same as one block for a
    prompt; `tokens` its estimated size. `answer_probability` 0..1: that the turns and memories searched have the
    answer; None if unknown."""

    turns: tuple[TurnItem, ...]
    facts: tuple[FactItem, ...]
    entities: tuple[EntityItem, ...]
    strategies: tuple[StrategyMatch, ...]
    goals: tuple[Goal, ...]
    profile: ProfileResponse | None
    text: str
    tokens: int
    metrics: Mapping[PartName, RecallPartMetrics]
    vector_path: VectorPath
    techniques: Mapping[str, TechniqueMetrics]
    warnings: tuple[str, ...] = ()
    answer_probability: float | None = None


class EventKind(StrEnum):
    """The four kinds of memory, named as in the audit."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
    GOAL = "goal"


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """A memory, a turn, a strategy or a goal with the time it is about. `importance_score`: 0..1, 0.5 if not rated.
    `cosine` to the query, if there is one."""

    memory_type: EventKind
    id: UUID
    event_time: datetime
    summary: str
    importance_score: float
    access_count: int
    last_accessed: datetime | None
    channel: str
    archived: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class TimelineQuery:
    """The events of a scope to list, latest first: of these kinds, in the window, after the last one of the page
    before. `text`: only those nearest to it, if it has a vector."""

    scope: Scope
    kinds: Collection[EventKind]
    window: Window
    include_archived: bool
    after: tuple[datetime, UUID] | None
    limit: int
    text: CleanText | None = None
