"""What becomes of one fact beside the memories closest to it, when no model is asked?

Facts are read back out of the stored texts and compared attribute by attribute; what has no attribute is left to the
words (`rules`). The answer is the same shape a model gives: several actions are possible for one fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.curator import rules
from service.domain.decision import Action
from service.language.facts import compare, phases, reading
from service.language.facts.fact import USER, Fact
from service.language.facts.relation import Kind, Relation


@dataclass(frozen=True, slots=True)
class Known:
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


_CONTRADICTING = (Kind.NEWER, Kind.ENDS, Kind.FULFILS)
_REPLACING = (Kind.NEWER, Kind.ENDS, Kind.FINER, Kind.FULFILS)
_WORDS = {rules.PairAction.NONE: Kind.SAME, rules.PairAction.REPLACE: Kind.NEWER, rules.PairAction.MERGE: Kind.FINER}
# Which relation decides when several memories bear on the fact: what changes beats what only adds.
_RANK = {Kind.ENDS: 0, Kind.NEWER: 1, Kind.FINER: 2, Kind.FULFILS: 3}


def decide(fact: Fact, known: Sequence[Known]) -> tuple[OfflineEdit, ...]:
    """Returns the actions for `fact`, at least one; only the first may write its text, the others archive what it ends.

    A memory told as past is never brought back, and none about another subject is touched.
    """
    me = _names(known)
    related = [(memory, relation) for memory in known if (relation := _relate(fact, memory, me)) is not None]
    for memory, relation in related:
        if relation.kind in (Kind.SAME, Kind.COARSER):
            return (OfflineEdit(Action.NONE, memory.number, None, relation.reason), *_archived(related, besides=memory))
    changed = [pair for pair in related if pair[1].kind in _REPLACING]
    if not changed:
        return (OfflineEdit(Action.ADD, None, fact.text, "nothing shown is the same fact"),)
    memory, relation = min(changed, key=lambda pair: (_RANK[pair[1].kind], -pair[0].similarity, pair[0].number))
    first = OfflineEdit(Action.UPDATE, memory.number, relation.text or fact.text, relation.reason)
    return (first, *_archived(changed, besides=memory))


def contradicts(fact: Fact, memory: Known) -> bool:
    """Returns whether the memory cannot stay as it is beside the fact: another value, its end, a plan come true."""
    relation = _relate(fact, memory, _names((memory,)))
    return relation is not None and relation.kind in _CONTRADICTING


def _archived(related: Sequence[tuple[Known, Relation]], *, besides: Known) -> list[OfflineEdit]:
    """What the fact ends beside the memory it is written to: a second row of an ended value, a plan that came true."""
    return [
        OfflineEdit(Action.DELETE, memory.number, None, f"{relation.reason}; told by another memory now")
        for memory, relation in related
        if memory is not besides and relation.kind in (Kind.ENDS, Kind.FULFILS)
    ]


def _names(known: Sequence[Known]) -> frozenset[str]:
    """What the user is called, so that "Ida lives in Oslo" is known to be about the user."""
    stored = (reading.read(memory.text) for memory in known)
    return frozenset(f.value.casefold() for f in stored if f and f.slot == "name" and f.subject == USER and f.value)


def _relate(fact: Fact, memory: Known, me: frozenset[str]) -> Relation | None:
    old = reading.read(memory.text)
    if old is None:
        return _by_words(fact, memory)
    fact, old = (_as_user(each, me) for each in (fact, old))
    found = compare.relate(fact, old) or _by_words(fact, memory)
    kept = found and found.kind in _CONTRADICTING and phases.undecided(fact) and not phases.undecided(old)
    return None if kept else found


def _as_user(fact: Fact, me: frozenset[str]) -> Fact:
    if fact.subject.casefold() not in me:
        return fact
    return Fact(fact.text, USER, fact.slot, fact.value, fact.polarity, fact.certainty, fact.temporal_tag)


def _by_words(fact: Fact, memory: Known) -> Relation | None:
    found = rules.decide_pair(fact.text, memory.text, memory.similarity)
    kind = _WORDS.get(found.action)
    return Relation(kind, found.reason, found.text) if kind else None
