"""Values of deletion: a conversation or turn; what a request to forget removes and why, and the near misses; what was
deleted or purged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pydantic import Field

from service.domain.scope import Scope
from service.http.schemas import Id, ResponseModel, Time

Matched = Literal["ids", "identifier", "name", "words", "meaning", "nothing"]


@dataclass(frozen=True, slots=True)
class Target:
    """A conversation, or (`turn_id`) one turn of it, existing or deleted."""

    scope: Scope
    conversation_id: UUID
    turn_id: UUID | None = None

    @property
    def id(self) -> UUID:
        return self.turn_id or self.conversation_id


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


class ForgottenSentenceItem(ResponseModel):
    """A part of a turn that matches."""

    turn_id: Id = Field(description="UUID of the turn")
    conversation_id: Id = Field(description="UUID of its conversation")
    turn_index: int = Field(description="Its index in the conversation, from 0")
    start: int = Field(description="Index of the first character of the part, from 0")
    end: int = Field(description="Index after its last character")
    text: str | None = Field(description="Its text; null once purged")
    reason: str = Field(description="Why it matches")
    memory_id: Id | None = Field(description="UUID of the memory extracted from it; null: the sentence itself matches")


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What would be removed, how it was matched, a sentence with the reason, and the near misses, which stay."""

    matched: Matched
    explanation: str
    memories: tuple[ForgetTarget, ...] = ()
    sentences: tuple[ForgottenSentenceItem, ...] = ()
    near: tuple[ForgetTarget, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.memories and not self.sentences


class DeletedTurnsResponse(ResponseModel):
    """The outcome of deleting a conversation or a turn."""

    id: Id = Field(description="UUID of the conversation or the turn")
    deleted: bool = Field(description="Always true")
    already_deleted: bool = Field(description="Whether it had been deleted before")
    turns: int = Field(description="Number of turns deleted")
    memories: int = Field(description="Number of memories deleted with them")


class PurgeReceiptResponse(ResponseModel):
    """What a purge removed. The subject appears only as a digest."""

    purged: bool = Field(description="Always true")
    counts: dict[str, int] = Field(
        description="Number of rows removed, by table; for audit_log, of rows whose texts were blanked"
    )
    subject_sha256: str = Field(description="SHA-256 of workspace and subject, in hexadecimal, as in the audit log")
    purged_at: Time = Field(description="When it was purged")
    vacuum: Literal["queued", "not_permitted"] = Field(
        description="queued: a job vacuums the tables; not_permitted: Postgres does so in its own time"
    )
    note: str = Field(description="What this means for data files, write-ahead log and backups")
