"""Conversations and their turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from service.domain.scope import Scope
from service.domain.text import CleanText


@dataclass(frozen=True, slots=True)
class Conversation:
    """`scope.run_id` is the name the caller gave it (its external id). `next_index`: the index of the next turn.

    `consolidated_at`: when the facts of all turns had been read; `patterns_extracted`: the job `patterns` has read it.
    A new turn resets both, a use of a tool the second. `version` counts changes of the turns and of these fields,
    except this mark.
    """

    id: UUID
    scope: Scope
    title: str | None
    started_at: datetime
    next_index: int
    consolidated_at: datetime | None
    patterns_extracted: bool
    archived: bool
    metadata: Mapping[str, Any]
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def external_id(self) -> str:
        assert self.scope.run_id is not None, "every conversation has a name"
        return self.scope.run_id


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as stored, redacted. `next_turn_id`: the turn after it, None for the last. `embedded`: it has a vector.

    `text` is the visible text; `whole` is what was said, if sentences of it are withdrawn. A turn without visible
    sentences has an empty text. `withdrawn`: in a transcript, the spans of its text that no longer count.
    """

    id: UUID
    conversation_id: UUID
    index: int
    scope: Scope
    role: str
    speaker: str | None
    text: CleanText
    hash: str
    token_count: int | None
    model: str | None
    metadata: Mapping[str, Any]
    timestamp: datetime
    archived: bool
    created_at: datetime
    next_turn_id: UUID | None = None
    embedded: bool = False
    whole: CleanText | None = None
    withdrawn: tuple[WithdrawnSpan, ...] = ()

    @property
    def channel(self) -> str:
        return self.scope.channel


TurnPlace = tuple[UUID, int]
"""A conversation and the turn's index in it."""


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """What a memory was read from: the words `said` by the speaker of a turn, from character `start` on."""

    memory_id: UUID
    place: TurnPlace
    speaker: str
    start: int
    said: str


@dataclass(frozen=True, slots=True)
class WithdrawnSpan:
    """A half-open span of characters of a turn that no longer counts, with the reason (deleted, expired, updated,
    superseded). `memory_id`: the memory that came from it (None: the sentence itself was deleted), `replaced_by`: the
    one that says what is true now."""

    turn_id: UUID
    start: int
    end: int
    reason: str
    memory_id: UUID | None = None
    replaced_by: UUID | None = None


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A turn found by a search: `score` ranks, `similarity` 0..1 is the calibrated cosine (None: no vector),
    `answer_probability` 0..1 that it has the answer (None if unknown)."""

    turn: Turn
    score: float
    similarity: float | None
    answer_probability: float | None = None
