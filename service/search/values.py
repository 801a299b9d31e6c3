"""The query and the answer of recall: a bundle of turns, facts, entities, strategies, goals and the user's profile; and
events of the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from service.cognition.values import Goal, Profile, StrategyMatch
from service.domain.conversation import Turn
from service.domain.entity import Entity
from service.domain.memory import LeanMemory
from service.domain.query import Detail, TechniqueUse, VectorPath
from service.domain.ranking import Ranking, RecallWeights
from service.domain.scope import Scope
from service.domain.text import CleanText

PartName = Literal["turns", "facts", "entities", "strategies", "goals", "user_context"]
PARTS: tuple[PartName, ...] = ("user_context", "goals", "facts", "entities", "strategies", "turns")
"""In the order of the prompt: what stands last is closest to the query."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A redacted query to everything that is remembered of a scope.

    `top_k`: at most so many of each part. `max_tokens`: of the whole bundle, as text. `per_conversation`: at most so
    many passages of one conversation, so that it does not crowd out the others; None for no cap. `context_window`:
    turns given before and after each one that answers. Both are off by default: with 2,000 tokens they cost evidence
    on LoCoMo's dev conversations (docs/recall.md). `since`: only turns and facts from then on. `min_confidence`: 0..1,
    of facts that have a confidence. `min_probability`: 0..1, leaves out turns and facts that answer with a smaller one.
    `min_answer`: 0..1, leaves out turns, facts and entities altogether where an answer is less probable. `valid_at`:
    facts that held at this moment instead of now; `as_of`: what was recorded at this moment, of which only turns and
    facts are known. `timezone`: IANA, in which days begin.
    """

    scope: Scope
    text: CleanText
    channels: tuple[str, ...] = ()
    include: frozenset[PartName] = frozenset(PARTS)
    top_k: int = 100
    max_tokens: int = 2_000
    per_conversation: int | None = None
    context_window: int = 0
    since: datetime | None = None
    min_confidence: float | None = None
    min_probability: float = 0.0
    min_answer: float = 0.0
    valid_at: datetime | None = None
    as_of: datetime | None = None
    timezone: str = "UTC"
    detail: Detail = "lean"
    shares: RecallWeights = field(default_factory=RecallWeights)
    ranking: Ranking = field(default_factory=Ranking)


@dataclass(frozen=True, slots=True)
class TurnItem:
    """A turn of the bundle. `match`: 0..1, how well it answers; `is_context`: it does not, but stands next to one that
    does, whose `score` it has. `answer_probability` 0..1: that it holds the answer; None where it cannot be told."""

    turn: Turn
    score: float
    match: float
    is_context: bool = False
    answer_probability: float | None = None


@dataclass(frozen=True, slots=True)
class FactItem:
    memory: LeanMemory
    score: float
    match: float
    similarity: float | None
    answer_probability: float | None = None


@dataclass(frozen=True, slots=True)
class EntityItem:
    """An entity that the query names, with its strongest relations."""

    entity: Entity
    relations: tuple[BundleRelation, ...] = ()


@dataclass(frozen=True, slots=True)
class BundleRelation:
    """An edge of the entity graph with the names of both ends; it reads from source to target."""

    source: str
    label: str
    target: str
    strength: float


@dataclass(frozen=True, slots=True)
class PartMetrics:
    """`found`: candidates of the part; `kept`: those in the bundle; `tokens`: of their text; `ms`: to read them."""

    found: int
    kept: int
    tokens: int
    ms: float


@dataclass(frozen=True, slots=True)
class Bundle:
    """What fits, each part best first. `text` is the same as one block for a prompt; `tokens` its estimated size.
    `answer_probability` 0..1: that the turns and memories searched hold the answer; None where it cannot be told."""

    turns: tuple[TurnItem, ...]
    facts: tuple[FactItem, ...]
    entities: tuple[EntityItem, ...]
    strategies: tuple[StrategyMatch, ...]
    goals: tuple[Goal, ...]
    profile: Profile | None
    text: str
    tokens: int
    metrics: Mapping[PartName, PartMetrics]
    vector_path: VectorPath
    techniques: Mapping[str, TechniqueUse]
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
    """A memory, a turn, a strategy or a goal at the time it is about. `importance`: 0..1, 0.5 where not rated. `cosine`
    to the query, if there is one."""

    kind: EventKind
    id: UUID
    event_time: datetime
    summary: str
    importance: float
    access_count: int
    last_accessed: datetime | None
    channel: str
    archived: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)
    cosine: float | None = None
