"""What a request to forget means: what would go, why, and what only comes near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from service.domain.scope import Scope

Matched = Literal["ids", "identifier", "name", "words", "meaning", "nothing"]


@dataclass(frozen=True, slots=True)
class ForgetScope:
    """Where to look: rows with every given id, in one channel or (None) all, of one session where one is named."""

    scope: Scope
    channel: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """A memory that is meant, with the version it was chosen by (0: deleted before, known from history only).
    `remaining`: its text without the sentences that are meant; empty where all of it goes. `probability`: of one that
    comes near, 0..1, that it is meant; None where that is not known."""

    id: UUID
    text: str
    reason: str
    version: int
    remaining: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class ForgetSentence:
    """A part of a turn that is meant: a half-open span of its characters. `memory_id`: the memory that goes with it
    and rests on it; None: the sentence itself says it."""

    turn_id: UUID
    conversation_id: UUID
    turn_index: int
    start: int
    end: int
    text: str
    reason: str
    memory_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What would go, by what it was found, in a sentence why, and what comes near and stays."""

    matched: Matched
    explanation: str
    memories: tuple[ForgetTarget, ...] = ()
    sentences: tuple[ForgetSentence, ...] = ()
    near: tuple[ForgetTarget, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.memories and not self.sentences
