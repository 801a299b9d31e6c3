"""Values of deletion: a conversation or turn; what a request to forget removes and why, and the near misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from service.domain.scope import Scope

Matched = Literal["ids", "identifier", "name", "words", "meaning", "nothing"]


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation, or (`turn_id`) one turn of it, existing or deleted."""

    scope: Scope
    conversation_id: UUID
    turn_id: UUID | None = None

    @property
    def id(self) -> UUID:
        return self.turn_id or self.conversation_id


@dataclass(frozen=True, slots=True)
class ForgetScope:
    """Where to look: rows with every given id, in one channel or (None) all, of one session if it is given."""

    scope: Scope
    channel: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """A matching memory with its version (0: deleted, known only from history). `remaining`: its text without the
    matching sentences; empty if all of it is removed. `probability`: for a near miss, 0..1, that it is meant; None if
    unknown."""

    id: UUID
    text: str
    reason: str
    version: int
    remaining: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class ForgetSentence:
    """A matching part of a turn: a half-open span of its characters. `memory_id`: the removed memory that came from it;
    None: the sentence itself matched."""

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
    """What would be removed, how it was matched, a sentence with the reason, and the near misses, which stay."""

    matched: Matched
    explanation: str
    memories: tuple[ForgetTarget, ...] = ()
    sentences: tuple[ForgetSentence, ...] = ()
    near: tuple[ForgetTarget, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.memories and not self.sentences
