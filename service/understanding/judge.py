"""Decides without a model how one statement changes the memories near it.

Single texts, facts of conversations, batches, retries and jobs are all judged here, and a model's answer is checked
against this judgement. Every memory shown is related to the statement in the order in which the two were said; what was
said later is valid. Pure, so it also runs inside the scope lock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.domain.decision import BEGINNING, Action, Claim, Decision, Edit, Evidence, Neighbour, Reason, Strike
from service.domain.fact import Comparison
from service.domain.text import CleanText
from service.domain.version import begins
from service.understanding.compare import FactLink, LinkKind, relate

RULES = "rules:3"
"""Name and version of the judgement, kept with each decision it makes."""

NEAR_UNSEEN, NEAR_SEEN = 0.48, 0.9
"""Similarity of the nearest memory from which a model is asked about a statement that no rule relates to it: where no
model has looked at that memory yet, and where one has and did not name it. Of 419 pairs that say the same or contradict
each other none lay below the first."""

_YEAR = re.compile(r"(?:\((?:around )?|\b(?:in|of|back|[A-Z][a-z]+) )((?:19|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class Related:
    """A memory that the statement affects, or that affects it. `later`: it was said, or became valid, after the
    statement."""

    memory: Neighbour
    link: FactLink
    later: bool

    @property
    def ends_all(self) -> bool:
        """Whether one of the two ends as a whole."""
        return self.link.kind is LinkKind.ENDS and self.link.text is None


def judge(claim: Claim, known: Sequence[Neighbour]) -> Decision:
    """Returns the decision, with at least one edit. `known`: nearest first."""
    return _judge(claim, known, _all_related(claim, known))


def settle(claim: Claim, known: Sequence[Neighbour], comparison: Comparison | None = None) -> Decision | None:
    """The judgement, if it leaves nothing open that a model would have to be asked; else None. `known`: nearest first.

    Open is whether the statement ends a memory, how it relates to those a model named when it found it, and whether the
    nearest memory, if near enough, says the same or the opposite.
    """
    related = _all_related(claim, known)
    if any(pair.link.kind in (LinkKind.ENDS, LinkKind.UNSURE) for pair in related):
        return None
    rest = {neighbour.id for neighbour in known} - {pair.memory.id for pair in related}
    says_it_all = any(pair.link.kind is LinkKind.SAME for pair in related)
    if not says_it_all and any(
        neighbour.id in rest and _may_matter(neighbour, comparison, is_nearest=not index)
        for index, neighbour in enumerate(known)
    ):
        return None
    return _judge(claim, known, related)


def _may_matter(memory: Neighbour, comparison: Comparison | None, *, is_nearest: bool) -> bool:
    """Whether a memory that no rule relates to the statement may still affect the decision."""
    if comparison is not None and memory.text in comparison.named:
        return True
    seen = comparison is not None and memory.text in comparison.seen
    return is_nearest and memory.similarity >= (NEAR_SEEN if seen else NEAR_UNSEEN)


def _all_related(claim: Claim, known: Sequence[Neighbour]) -> list[Related]:
    return [related for memory in known if (related := _relate(claim, memory)) is not None]


def _judge(claim: Claim, known: Sequence[Neighbour], related: Sequence[Related]) -> Decision:
    edits, reasons = _edits(claim, related)
    adds = any(edit.action is Action.ADD for edit in edits)
    outdates = tuple(pair.memory.id for pair in related if pair.link.kind is LinkKind.UNSURE and not pair.later)
    strikes = _strikes(claim, related) if adds else ()
    if strikes:
        reasons = [pair.link.reason for pair in related if pair.link.text is not None]
    elif outdates and adds:
        reasons = [Reason.UNSURE]
    elif not reasons:
        reasons = [Reason.ANOTHER if known else Reason.NOTHING_NEAR]
    verdict = "+".join(edit.action for edit in edits)
    shown = tuple(neighbour.id for neighbour in known)
    evidence = Evidence("rules", RULES, verdict, " ".join(dict.fromkeys(reasons)), shown)
    return Decision(edits, evidence, outdates=outdates if adds else (), strikes=strikes)


def is_later(memory: Neighbour, claim: Claim) -> bool:
    """Whether the memory was said, or began to hold, after the statement; False where that is not known."""
    return _is_dated(claim, memory) and _last_known(memory) > _began(claim)


def _relate(claim: Claim, memory: Neighbour) -> Related | None:
    later = is_later(memory, claim)
    new, old = (memory.text, claim.text) if later else (claim.text, memory.text)
    change = None
    if not later and claim.change is not None and memory.vector is not None:
        change = claim.change(memory.vector)
    link = relate(new, old, memory.similarity, correction=claim.correction and not later, change=change)
    if link is not None and link.reason is Reason.NEW_VALUE and _is_of_another_year(new, claim, memory):
        link = FactLink(LinkKind.UNSURE, Reason.UNSURE)
    return Related(memory, link, later) if link is not None else None


def _is_of_another_year(text: str, claim: Claim, memory: Neighbour) -> bool:
    """Whether a text tells of the years before both were said, or of those after."""
    years = [int(year) for year in _YEAR.findall(text)]
    said = [time.year for time in (claim.said_at, memory.timestamp) if time is not None]
    return bool(years) and len(said) > 1 and (max(years) < min(said) or min(years) > max(said))


def _is_dated(claim: Claim, memory: Neighbour) -> bool:
    return (claim.t_valid or claim.said_at) is not None and (memory.t_valid or memory.timestamp) is not None


def _is_ahead(claim: Claim, memory: Neighbour) -> bool:
    """Whether the memory only begins in the future, and so leaves the statement valid until then."""
    return bool(claim.received_at and memory.t_valid and memory.t_valid > claim.received_at)


def _began(claim: Claim) -> datetime:
    """When the statement begins to hold, as far as is known; it is ordered among memories by this time."""
    return begins(claim.said_at or BEGINNING, claim.t_valid, claim.t_invalid)


def _last_known(memory: Neighbour) -> datetime:
    """The last time that a memory is known to have held: when it began or, if it has no end, when it was last said."""
    return max(memory.start, memory.timestamp or memory.start) if memory.t_invalid is None else memory.start


def _edits(claim: Claim, related: Sequence[Related]) -> tuple[tuple[Edit, ...], list[Reason]]:
    same = next((pair for pair in related if pair.link.kind is LinkKind.SAME), None)
    if same is not None:
        renewed = not same.later and _is_dated(claim, same.memory) and _began(claim) > same.memory.start
        ended = _find_ended(claim, [pair for pair in related if pair is not same])
        known = Edit(Action.NONE, same.memory, renewed=renewed)
        return (known, *(Edit(Action.DELETE, pair.memory) for pair in ended)), [same.link.reason]
    later = [pair for pair in related if pair.ends_all and pair.later and not _is_ahead(claim, pair.memory)]
    before = _find_ended(claim, related)
    if later and not _is_over(claim):  # a statement about a past time stays true next to a later one
        following = min(later, key=lambda pair: pair.memory.start)
        previous = before[0].memory if before else None
        return (Edit(Action.NONE, following.memory, earlier=True, previous=previous),), [Reason.EARLIER]
    if not before:
        return (Edit(Action.ADD, None, claim.text),), []
    first = before[0]
    archived = (Edit(Action.DELETE, pair.memory) for pair in before[1:])
    edits = (Edit(Action.UPDATE, first.memory, claim.text), *archived)
    return edits, [first.link.reason]


def _strikes(claim: Claim, related: Sequence[Related]) -> tuple[Strike, ...]:
    """The memories that lose a sentence to the statement, and the sentences that it loses to later ones."""
    strikes: list[Strike] = []
    rest = claim.text
    for pair in sorted(related, key=lambda each: each.memory.start):
        link = relate(pair.memory.text, rest, pair.memory.similarity) if pair.later and pair.link.text else pair.link
        if link is None or link.text is None or _is_over(claim) or (pair.later and _is_ahead(claim, pair.memory)):
            continue
        strikes.append(Strike(pair.memory, CleanText(link.text), pair.memory.start if pair.later else None))
        rest = strikes[-1].text if pair.later else rest
    return tuple(strikes)


def _find_ended(claim: Claim, related: Sequence[Related]) -> list[Related]:
    """The memories that the statement ends: all that fill the same slot, the latest first, else the nearest.

    A statement about a past time ("I worked at Acme until May") ends no memory that still holds.
    """
    over = _is_over(claim)
    ends = [
        pair for pair in related if pair.ends_all and not pair.later and (not over or _was_over(pair.memory, claim))
    ]
    by_slot = [end for end in ends if end.link.reason is Reason.NEW_VALUE]
    if by_slot:
        return sorted(by_slot, key=lambda each: each.memory.start, reverse=True)
    return sorted(ends, key=lambda each: -each.memory.similarity)[:1]


def _was_over(memory: Neighbour, claim: Claim) -> bool:
    return memory.t_invalid is not None and claim.said_at is not None and memory.t_invalid <= claim.said_at


def _is_over(claim: Claim) -> bool:
    """Whether the statement is about a time that was past when it was said."""
    return claim.t_invalid is not None and claim.said_at is not None and claim.t_invalid <= claim.said_at
