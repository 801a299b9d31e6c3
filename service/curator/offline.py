"""Decides without a model what becomes of one fact next to the closest memories.

Facts are read back out of the stored texts and compared attribute by attribute; what has no attribute is left to the
words (`rules`). The answer is the same shape a model gives: several actions are possible for one fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.curator import rules
from service.domain.decision import Action
from service.language.facts import compare, phases, reading
from service.language.facts.fact import USER, StatedFact
from service.language.facts.relation import FactLink, LinkKind


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A live memory that was shown: its local number, its text, and its similarity to the fact, 0..1, calibrated."""

    number: int
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class OfflineEdit:
    """`target` is the number of a shown memory (None with ADD); `text` the memory to write with ADD and UPDATE."""

    action: Action
    target: int | None
    text: str | None
    reason: str


_CONTRADICTING = (LinkKind.NEWER, LinkKind.ENDS, LinkKind.FULFILS)
_REPLACING = (LinkKind.NEWER, LinkKind.ENDS, LinkKind.FINER, LinkKind.FULFILS)
_WORDS = {
    rules.PairAction.NONE: LinkKind.SAME,
    rules.PairAction.REPLACE: LinkKind.NEWER,
    rules.PairAction.MERGE: LinkKind.FINER,
}
# Which relation decides when several memories bear on the fact: what changes beats what only adds.
_RANK = {LinkKind.ENDS: 0, LinkKind.NEWER: 1, LinkKind.FINER: 2, LinkKind.FULFILS: 3}


def decide(fact: StatedFact, known: Sequence[ShownMemory]) -> tuple[OfflineEdit, ...]:
    """Returns the actions for `fact`, at least one; only the first may write its text, the others archive what it ends.

    A memory told as past is never brought back, and none about another subject is touched.
    """
    me = _names(known)
    related = [(memory, relation) for memory in known if (relation := _relate(fact, memory, me)) is not None]
    for memory, relation in related:
        if relation.kind in (LinkKind.SAME, LinkKind.COARSER):
            return (OfflineEdit(Action.NONE, memory.number, None, relation.reason), *_archived(related, besides=memory))
    changed = [pair for pair in related if pair[1].kind in _REPLACING]
    if not changed:
        return (OfflineEdit(Action.ADD, None, fact.text, "nothing shown is the same fact"),)
    memory, relation = min(changed, key=lambda pair: (_RANK[pair[1].kind], -pair[0].similarity, pair[0].number))
    first = OfflineEdit(Action.UPDATE, memory.number, relation.text or fact.text, relation.reason)
    return (first, *_archived(changed, besides=memory))


def contradicts(fact: StatedFact, memory: ShownMemory) -> bool:
    """Returns whether the memory cannot stay as it is beside the fact: another value, its end, a plan come true."""
    relation = _relate(fact, memory, _names((memory,)))
    return relation is not None and relation.kind in _CONTRADICTING


def _archived(related: Sequence[tuple[ShownMemory, FactLink]], *, besides: ShownMemory) -> list[OfflineEdit]:
    """What the fact ends beside the memory it is written to: a second row of an ended value, a plan that came true."""
    return [
        OfflineEdit(Action.DELETE, memory.number, None, f"{relation.reason}; told by another memory now")
        for memory, relation in related
        if memory is not besides and relation.kind in (LinkKind.ENDS, LinkKind.FULFILS)
    ]


def _names(known: Sequence[ShownMemory]) -> frozenset[str]:
    """What the user is called, so that "Ida lives in Oslo" is known to be about the user."""
    stored = (reading.read(memory.text) for memory in known)
    return frozenset(f.value.casefold() for f in stored if f and f.slot == "name" and f.subject == USER and f.value)


def _relate(fact: StatedFact, memory: ShownMemory, me: frozenset[str]) -> FactLink | None:
    old = reading.read(memory.text)
    if old is None:
        return _by_words(fact, memory)
    fact, old = (_as_user(each, me) for each in (fact, old))
    found = compare.relate(fact, old) or _by_words(fact, memory)
    kept = found and found.kind in _CONTRADICTING and phases.undecided(fact) and not phases.undecided(old)
    return None if kept else found


def _as_user(fact: StatedFact, me: frozenset[str]) -> StatedFact:
    if fact.subject.casefold() not in me:
        return fact
    return StatedFact(fact.text, USER, fact.slot, fact.value, fact.polarity, fact.certainty, fact.temporal_tag)


def _by_words(fact: StatedFact, memory: ShownMemory) -> FactLink | None:
    found = rules.decide_pair(fact.text, memory.text, memory.similarity)
    kind = _WORDS.get(found.action)
    return FactLink(kind, found.reason, found.text) if kind else None
