"""Phases of a fact: planned, present, past, and whether it is undecided."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from service.domain.temporal import TemporalTag
from service.language.facts import compare_jobs, slots, statement
from service.language.facts.fact import StatedFact
from service.language.facts.reading import LASTING
from service.language.facts.statement import Statement


class Phase(StrEnum):
    """When and whether a fact holds. OVER: it did and does no longer; DENIED: it does not."""

    NOW = "now"
    AHEAD = "ahead"
    GONE = "gone"
    OVER = "over"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Side:
    """A fact as the rules look at it."""

    fact: StatedFact
    said: Statement
    phase: Phase

    @property
    def value(self) -> str:
        """The value, "" without one."""
        return self.fact.value or ""

    @property
    def slot(self) -> str:
        """The slot, "" without one."""
        return self.fact.slot or ""

    @property
    def stands(self) -> bool:
        """Whether it claims something for now or later."""
        return self.phase in (Phase.NOW, Phase.AHEAD)


def side(fact: StatedFact) -> Side:
    """Returns a fact as the rules look at it."""
    said = statement.parse(fact.text)
    job = compare_jobs.job(fact.text) if fact.slot == "job" else None
    if said.maybe and not said.negative:
        phase = Phase.AHEAD
    elif fact.slot == "dislikes" and said.verb in slots.UNBEARABLE and not said.ended:
        phase = Phase.NOW
    elif said.ended and said.past:
        phase = Phase.OVER
    elif said.ended or said.negative:
        phase = Phase.OVER if said.ended else Phase.DENIED
    elif job and job.over:
        phase = Phase.OVER
    elif fact.slot == "job" and job and job.new and said.holds and fact.temporal_tag is not TemporalTag.FUTURE:
        phase = Phase.NOW
    elif said.past and said.verb not in LASTING and not re.search(r"\bborn\b|diagnosed", said.rest):
        phase = Phase.GONE
    elif fact.temporal_tag is TemporalTag.FUTURE and fact.slot != "goal":
        phase = Phase.AHEAD
    else:
        phase = Phase.NOW
    return Side(fact, said, phase)


_UNDECIDED = re.compile(
    r"\b(?:might|(?-i:may)|could|maybe|perhaps|almost|nearly|consider(?:s|ing)|think(?:s|ing) (?:of|about)|hop(?:es"
    r"|ing) to"
    r"|wants? to|would (?:like|love)|wish(?:es)?|tempted|plann?(?:s|ing)|tr(?:ies|ying) to|if)\b",
    re.IGNORECASE,
)


def undecided(fact: StatedFact) -> bool:
    """Returns whether a fact tells of what is only thought of, wanted or tried: it ends nothing that is so."""
    return _UNDECIDED.search(fact.text) is not None
