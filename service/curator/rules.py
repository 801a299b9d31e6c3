"""Decides without a model what becomes of a new text next to a similar old one.

The offline decision for pairs of similarity 0.70 to 0.98, and for those above that the guard held back. It works on
the words alone and returns an action; it writes nothing. When no rule is sure the answer is KEEP_BOTH: two rows that
say the same cost a line of context, a wrong merge costs a memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from service.language import attributes, contrast, opposites, quantities, wordlists
from service.language.attributes import AttributeClause
from service.language.lexemes import lexemes


class PairAction(StrEnum):
    """MERGE and REPLACE update the old row with `text` (updated_existing); NONE leaves it; KEEP_BOTH adds a row."""

    NONE = "none"
    MERGE = "merge"
    REPLACE = "replace"
    KEEP_BOTH = "keep_both"


@dataclass(frozen=True, slots=True)
class PairDecision:
    """`text` is the whole new content of the old row with MERGE and REPLACE, else None; `reason` is for people."""

    action: PairAction
    text: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Side:
    """One text as the rules look at it; `original` is the text before normalisation, the only one that may be kept."""

    original: str
    text: str
    words: tuple[str, ...]
    clause: AttributeClause
    signature: contrast.Signature


SAME_TOPIC = 0.5  # shared content words over all of them (Jaccard): half, as in "morning calls" / "morning meetings"
SAME_FRAME = 0.75  # the same statement but for a figure, a date or a negation
MERGE_SIMILARITY = 0.8  # phrasings at 0.85 may be one fact, statements at 0.75 may be different
_MAX_MERGED_WORDS = 5
_TOKEN = re.compile(r"\S+")
_SPEAKER = "user"  # "User likes tea" and "I like tea" say the same
_EDGE = ".,;:!?\"'()"
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_HE, _SHE = frozenset({"he", "him", "his"}), frozenset({"she", "her", "hers"})
_HOLDER = re.compile(r"\b(?:is|are) (?:now |currently )?[A-Z]\w")
# A text with one of these says less than the same text without it.
_LIMITS = wordlists.words("""
    only if unless except almost nearly maybe might may could would should probably perhaps sometimes plan plans
    wants hopes tried trying considering thinking partly mostly just merely
""")


def decide_pair(new: str, old: str, similarity: float) -> PairDecision:
    """Returns what to do with `new` beside `old`; `similarity` is calibrated, 0..1.

    Never NONE when the two differ in a figure, date, unit, negation, tense or in who does what to whom, or when `new`
    holds a name that `old` lacks.
    """
    if _bare(new) == _bare(old) and (_bare(new) or new == old):
        return PairDecision(PairAction.NONE, None, "same text")
    fresh, known = _side(new), _side(old)
    if not fresh.words or not known.words:  # no word is part of every text
        return _keep("nothing to compare")
    if not _same_subject(fresh, known):
        return _keep("another subject")
    reason = contrast.differs(new, old)
    return (
        _repeated(fresh, known, reason)
        or _contained(fresh, known)
        or _contradicted(fresh, known)
        or _newer_value(fresh, known, reason)
        or _gathered(fresh, known, similarity)
        or _keep("no rule takes them for one")
    )


def _side(original: str) -> _Side:
    text = opposites.levelled(original)
    words = (word for word in lexemes(text) if word not in ("", _SPEAKER))
    return _Side(original, text, opposites.canonical(words), attributes.clause(text), contrast.signature(text))


def _bare(text: str) -> str:
    return " ".join(word.strip(_EDGE) for word in text.casefold().split())


def _keep(reason: str) -> PairDecision:
    return PairDecision(PairAction.KEEP_BOTH, None, reason)


def _replace(new: _Side, reason: str) -> PairDecision:
    return PairDecision(PairAction.REPLACE, new.original, reason)


def _same_subject(new: _Side, old: _Side) -> bool:
    """Whether both may speak of the same: equal subjects, or one only described more closely ("dog", "black dog")."""
    people = [frozenset(word.strip(_EDGE) for word in side.text.casefold().split()) for side in (new, old)]
    if (people[0] & _HE and people[1] & _SHE) or (people[0] & _SHE and people[1] & _HE):
        return False
    a, b = (opposites.canonical(side.clause.subject) for side in (new, old))
    if set(a) == set(b) or not ((new.clause.verb and old.clause.verb) or new.clause.owners ^ old.clause.owners):
        return True
    if not a or not b or a[-1] != b[-1]:
        return False
    more = set(a) ^ set(b)
    return (set(a) < set(b) or set(b) < set(a)) and not more & (new.clause.owners | old.clause.owners)


def _overlap(new: _Side, old: _Side) -> float:
    """Shared content words over all of them, 0..1; figures and points in time aside, which have rules of their own."""
    a, b = (
        {word for word in side.words if not _figure(word, side) and word not in side.signature.times}
        for side in (new, old)
    )
    return len(a & b) / len(a | b) if a | b else 1.0


def _figure(word: str, side: _Side) -> bool:
    """Whether a word is a figure; "two" only where the speaker is the subject: "two cows" are no "three cows"."""
    return word[0].isdigit() or (not side.clause.subject and any(quantities.numbers(word)))


def _repeated(new: _Side, old: _Side, reason: str | None) -> PairDecision | None:
    """The same content words: nothing new, or the same statement in another tense."""
    if sorted(new.words) != sorted(old.words) or _limits(new) != _limits(old):
        return None
    if reason is None:
        return PairDecision(PairAction.NONE, None, "same content words")
    return _replace(new, "now told in another tense") if reason == "tense" else None


def _limits(side: _Side) -> frozenset[str]:
    return frozenset(word.strip(_EDGE) for word in side.text.casefold().split()) & _LIMITS


def _contained(new: _Side, old: _Side) -> PairDecision | None:
    """One says all that the other says, and more. The poorer one goes, unless it is the less restricted."""
    negations = new.signature.negations
    if negations != old.signature.negations or contrast.tense_differs(new.text, old.text):
        return None
    if negations and _limits(new) != _limits(old):  # "not good" is no part of "not just good"
        return None
    if set(old.words) < set(new.words) and not old.signature.numbers - new.signature.numbers:
        return _replace(new, "says the same and more")
    known_better = (
        _runs_through(new.words, old.words)
        and not new.signature.numbers - old.signature.numbers
        and not contrast.names_only_in(new.text, old.text)  # "B" is no part of "B0", though its letter is
    )
    if known_better and _limits(new) == _limits(old) and contrast.differs(new.text, old.text) in (None, "name"):
        return PairDecision(PairAction.NONE, None, "the old text says the same and more")
    return None


def _runs_through(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether `part` stands in `whole` in one piece: "likes dogs" is no part of "likes hot dogs"."""
    width = len(part)
    return 0 < width < len(whole) and any(whole[at : at + width] == part for at in range(len(whole) - width + 1))


def _contradicted(new: _Side, old: _Side) -> PairDecision | None:
    """The same frame with a negation or an opposite in it: the newer text holds."""
    words_new, words_old = lexemes(new.text), lexemes(old.text)
    if opposites.opposed(words_new, words_old) and _overlap(new, old) >= 1 / 3:
        return _replace(new, "the opposite of the old text")
    if new.signature.negations != old.signature.negations and _overlap(new, old) >= SAME_TOPIC:
        return _replace(new, "contradicts the old text")
    return None


def _newer_value(new: _Side, old: _Side, reason: str | None) -> PairDecision | None:
    """The same attribute of the same subject with another value: the newer one holds."""
    slot = attributes.single_valued(new.text)
    if slot is not None and slot == attributes.single_valued(old.text):
        return _replace(new, f"newer value of {' '.join(slot).strip()}")
    if reason in ("number", "time", "unit") and _overlap(new, old) >= SAME_FRAME:
        another_day = new.clause.past and old.clause.past and _when(new) != _when(old)
        return _keep("another occasion") if another_day else _replace(new, f"newer {reason}")
    if reason == "name" and _is_role(new) and _is_role(old):
        return _replace(new, "newer holder of the same role")
    return None


def _when(side: _Side) -> tuple[frozenset[str], list[str]]:
    return side.signature.times, _YEAR.findall(side.text)


def _is_role(side: _Side) -> bool:
    """ "The project lead is Anna": an ordinary subject, and a name right behind its "is"."""
    names = contrast.names_only_in(side.text, "")
    return _HOLDER.search(side.text) is not None and bool(side.clause.subject) and not names & set(side.clause.subject)


def _gathered(new: _Side, old: _Side, similarity: float) -> PairDecision | None:
    """Two values of what one can have several of: "Prefers morning calls" and "Prefers morning meetings"."""
    same_verb = opposites.canonical([new.clause.verb]) == opposites.canonical([old.clause.verb])
    if similarity < MERGE_SIMILARITY or not same_verb or not attributes.gathers(new.clause.verb):
        return None
    if _overlap(new, old) < SAME_TOPIC or new.signature != old.signature:
        return None
    merged = _merged(new.original, old.original)
    return PairDecision(PairAction.MERGE, merged, "one more value of the same") if merged else None


def _merged(new: str, old: str) -> str | None:
    """The old sentence with the differing words of the new one added by "and"; None when more than one spot differs."""
    a, b = _TOKEN.findall(old.rstrip(" .")), _TOKEN.findall(new.rstrip(" ."))
    head = _shared(a, b)
    tail = _shared(a[head:][::-1], b[head:][::-1])
    was, added = a[head : len(a) - tail], b[head : len(b) - tail]
    if not (was and added) or max(len(was), len(added)) > _MAX_MERGED_WORDS or not head:
        return None
    stop = "." if old.rstrip().endswith(".") else ""
    listed = " ".join(was).replace(" and ", ", ")
    return " ".join([*a[:head], listed, "and", *added, *a[len(a) - tail :]]) + stop


def _shared(a: list[str], b: list[str]) -> int:
    """How many first words are equal, their case aside."""
    pairs = zip(a, b, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one.casefold() != other.casefold()), min(len(a), len(b))
    )
