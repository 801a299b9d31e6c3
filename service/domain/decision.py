"""Decisions about memories: which action on which memory, and on what evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.domain.text import CleanText
from service.domain.version import begins


class Action(StrEnum):
    """What happens to a memory. A curator's DELETE archives it, NONE changes nothing."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


class Reason(StrEnum):
    """The reason for a decision: a sentence that is stored with it and shown to people."""

    DEDUP_OFF = "The caller wants every text kept."
    NOTHING_NEAR = "No known memory is near."
    ANOTHER = "No known memory is about the same thing."
    SAME_TEXT = "A known memory has this very text."
    SAME_WORDS = "A known memory says this in the same words."
    KNOWN = "A known memory says this and more."
    NEW_VALUE = "It gives a newer value of something that has one value at a time."
    CHANGE = "It reports a change that ends what a known memory says."
    OPPOSITE = "It says the opposite of a known memory."
    CORRECTION = "It corrects a known memory."
    EARLIER = "It is older news than a known memory, and became history."
    UNSURE = "It may outdate a known memory; both were kept."
    ECHO = "The assistant said what had been recalled to it."
    PROMOTED = "What was learned in one channel was promoted."
    MODEL = "The language model decided."


BEGINNING = datetime.min.replace(tzinfo=UTC)
"""Stands for the time of a statement of which nobody knows when it was said."""

ChangeOf = Callable[[NDArray[np.float32]], float]
"""How much a text looks like a change of one with this vector."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A text to be judged, with its times.

    `said_at`: when it was said or happened. `t_valid`, `t_invalid`: its validity, if the caller or the text states it.
    `correction`: it was introduced as one ("no, I meant ..."). `change`: how much it looks like a change of a memory
    with a given vector, None if unknown. `received_at`: when the request came, from which the future counts.
    """

    text: CleanText
    said_at: datetime | None = None
    t_valid: datetime | None = None
    t_invalid: datetime | None = None
    correction: bool = False
    change: ChangeOf | None = None
    received_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A live memory of the exact scope and channel, as it was when it was shown. `similarity` 0..1, calibrated.

    `timestamp`, `t_valid`, `t_invalid`: as in a memory; compared with the times of a statement. `vector`: of its text,
    at length 1; None where it was not read.
    """

    id: UUID
    text: CleanText
    hash: str
    version: int
    similarity: float
    timestamp: datetime | None = None
    t_valid: datetime | None = None
    t_invalid: datetime | None = None
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)

    @property
    def start(self) -> datetime:
        """When the statement begins to hold, as far as is known."""
        return begins(self.timestamp or BEGINNING, self.t_valid, self.t_invalid)

    @property
    def state(self) -> tuple[object, ...]:
        """The state on which a decision about it is based. Being said again moves `timestamp` without a new version."""
        return self.id, self.version, self.timestamp, self.t_valid, self.t_invalid


@dataclass(frozen=True, slots=True)
class MergedText:
    """A text that a decision wrote, redacted and embedded: it is stored instead of the statement's own."""

    text: CleanText
    hash: str
    vector: NDArray[np.float32]
    term_weights: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Edit:
    """One action; `target` with all but ADD, `text` with ADD and UPDATE. `merged`: the text to store, if it is not the
    statement's own.

    `earlier`, with NONE: the statement is older than the target and becomes a past version, which holds until the
    target begins. `previous`: the known version before it, which ends where the statement begins. `renewed`, with NONE:
    the target was said again at a later time and gets that time.
    """

    action: Action
    target: Neighbour | None = None
    text: CleanText | None = None
    earlier: bool = False
    previous: Neighbour | None = None
    renewed: bool = False
    merged: MergedText | None = None


@dataclass(frozen=True, slots=True)
class Strike:
    """A memory that loses a sentence that ended, and the rest of its text. `at`: given if it is the added text that
    loses one, when the memory, which is later, began."""

    memory: Neighbour
    text: CleanText
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Who decided, and on what evidence: stored in table `decision` with every memory that the decision concerns.

    `source`: "llm", "rules" or "review". `shown`: the memories that were compared. `rejected`: the model's answer could
    not be used and the rules decided instead. `reason`: a sentence of `Reason`, or several.
    """

    source: str
    model: str
    verdict: str
    reason: str
    shown: tuple[UUID, ...]
    prompt_sha256: str | None = None
    reply: str | None = None
    rejected: bool = False


UNJUDGED = Evidence("rules", "hash", "", "", ())
"""The evidence for a single text that was not compared, because it is new or known verbatim. It is not stored."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The edits of memories because of one text, which are undone together.

    `outdates`: memories that stay and are marked as perhaps outdated by the added text. `strikes`: memories that lose
    the sentence that the added text ends.
    """

    edits: tuple[Edit, ...]
    evidence: Evidence
    warnings: tuple[str, ...] = ()
    outdates: tuple[UUID, ...] = ()
    strikes: tuple[Strike, ...] = ()

    @property
    def targets(self) -> frozenset[UUID]:
        """The memories it concerns: those that may change, be marked or lose a sentence, and those that stay."""
        struck = (strike.memory.id for strike in self.strikes)
        return frozenset({*(edit.target.id for edit in self.edits if edit.target), *self.outdates, *struck})

    @property
    def leaves_others_untouched(self) -> bool:
        """Whether it only adds its text, and marks no memory as outdated."""
        return self.only_adds and not self.outdates

    @property
    def only_adds(self) -> bool:
        """Whether it adds its text and changes no memory; some may be marked as outdated."""
        return not self.strikes and all(edit.action is Action.ADD for edit in self.edits)
