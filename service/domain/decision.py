"""Decisions about memories: which action on which memory, and on what evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from service.domain.text import CleanText


class Action(StrEnum):
    """What is done to a memory. A curator's DELETE archives it, NONE leaves everything as it is."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A live memory of the exact scope and channel, as it was when it was shown. `similarity` 0..1, calibrated."""

    id: UUID
    text: CleanText
    hash: str
    version: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Edit:
    """One action; `target` with all but ADD, `text` with ADD and UPDATE."""

    action: Action
    target: Neighbour | None = None
    text: CleanText | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Who decided, and on what: kept in table `decision` with every memory that the decision touches.

    `source`: "llm", "rules" or "review". `shown`: the memories that were compared. `rejected`: the model's answer could
    not be used and the rules decided instead.
    """

    source: str
    model: str
    verdict: str
    reason: str
    shown: tuple[UUID, ...]
    prompt_sha256: str | None = None
    reply: str | None = None
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to happen to the memories because of one text. Its edits are undone together."""

    edits: tuple[Edit, ...]
    evidence: Evidence
    warnings: tuple[str, ...] = ()
