"""One fact that a conversation states about somebody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from service.domain.temporal import TemporalTag

Certainty = Literal["explicit", "implied", "inferred", "uncertain"]
Polarity = Literal["positive", "negative"]

CONFIDENCE: Mapping[Certainty, float] = MappingProxyType(
    {"explicit": 0.95, "implied": 0.85, "inferred": 0.70, "uncertain": 0.50}
)
"""The number behind each label."""

USER = "user"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `role`: user, assistant; every other role is not read. `name`: who speaks, where several people do."""

    role: str
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class StatedFact:
    """One self-contained statement in the third person, without a full stop at its end.

    `subject`: "user", "user's sister" or a name. `slot`: the attribute (see slots.py), None where it is none we know;
    `value` is the attribute's value as it was written. `start`, `end`: the half-open span in `messages[message].text`
    that the statement was read from. `correction`: a cue such as "actually" or "I meant" introduced it.
    """

    text: str
    subject: str
    slot: str | None
    value: str | None
    polarity: Polarity
    certainty: Certainty
    temporal_tag: TemporalTag
    correction: bool = False
    message: int = 0
    start: int = 0
    end: int = 0

    @property
    def confidence(self) -> float:
        """The certainty as a number, 0..1."""
        return CONFIDENCE[self.certainty]
