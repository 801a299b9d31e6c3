"""One fact, extracted from a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from service.domain.entity import NamedEntity
from service.domain.kinds import MemoryType
from service.domain.temporal import TemporalTag
from service.domain.text import CleanText


@dataclass(frozen=True, slots=True)
class NamedRelation:
    """A relation between two named entities, its label as it was given."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Memories that a model saw when it found a fact, and those that it named as affected."""

    seen: frozenset[CleanText]
    named: frozenset[CleanText]


@dataclass(frozen=True, slots=True)
class Fact:
    """A self-contained statement: what a speaker said, or a model's sentence about it.

    `confidence` 0..1. `message`: place of the message it came from, with the half-open character span, where known.
    `level`: importance 1..10 where the model gave one. `correction`: it was introduced as one ("actually, ...").
    `by_assistant`: the words are the assistant's, so it may only repeat what was recalled for it. `also`: message and
    span of what else the fact quotes: a question, an earlier statement of the speaker. `kind`, `categories`, `t_valid`,
    `t_invalid`: as a model gave them and they could be checked. `comparison`: None if no model named the
    affected memories.
    """

    text: CleanText
    confidence: float
    tag: TemporalTag | None = None
    correction: bool = False
    message: int | None = None
    start: int | None = None
    end: int | None = None
    level: int | None = None
    entities: tuple[NamedEntity, ...] = ()
    relations: tuple[NamedRelation, ...] = ()
    by_assistant: bool = False
    also: tuple[tuple[int, int, int], ...] = ()
    kind: MemoryType | None = None
    categories: tuple[str, ...] = ()
    t_valid: datetime | None = None
    t_invalid: datetime | None = None
    comparison: Comparison | None = None
