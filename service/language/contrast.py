"""The guard against merging: finds what two nearly identical texts say differently.

The guard on the dedup short-cut: vectors put "meeting at 3pm" on top of "meeting at 4pm", and "loves coffee" on top of
"hates coffee". A text that differs here from its neighbour is never dropped unseen; it goes to the decision. The guard
prefers a needless decision to a lost memory: what only one of the two texts mentions counts as a difference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from service.language import quantities, wordlists
from service.language.common_words import FUNCTION_WORDS, is_common
from service.language.lexemes import lexemes, stemmed_words
from service.language.opposites import PASTS, canonical
from service.language.quantities import TIMES

_NEGATIONS = wordlists.words("""
    not no never none nobody nothing nowhere neither nor without cannot lacks lack lacking refuse refuses refused
    stop stops stopped quit quits unable hardly barely rarely seldom except former formerly cancelled canceled
    cancel
""")
_NEGATED = re.compile(r"n['\u2019]t$|^(?:dont|doesnt|didnt|cant|wont|isnt|arent|wasnt|werent|havent|hasnt)$")
_NO_LONGER = re.compile(r"\bno longer\b|\bnot any ?more\b|\bused to\b", re.IGNORECASE)

_PAST = frozenset({"was", "were", "had", "did", "wasn't", "weren't", "hadn't", "didn't"})
_PRESENT = frozenset({"is", "are", "am", "has", "have", "does", "do", "isn't", "aren't", "hasn't", "doesn't", "don't"})

_WORD = re.compile(r"[^\W_](?:[^\W_]|[-.'\u2019&+#](?=[^\W_])|[+#](?!\w))*")


class Signature(NamedTuple):
    """What must not differ between two texts that one row is to stand for."""

    numbers: Counter[str]
    times: frozenset[str]
    units: frozenset[str]
    negations: int


def signature(text: str) -> Signature:
    """Returns the figures, points in time, units and the number of negations of a text."""
    return Signature(
        Counter(quantities.numbers(text)),
        frozenset(quantities.times(text)),
        frozenset(quantities.units(text)),
        _negations(text),
    )


def differs(a: str, b: str) -> str | None:
    """Returns why two texts are not the same: number, time, unit, negation, name, tense or order; else None.

    "tense": stems hide that "lives in Oslo" is no longer so in "lived in Oslo". "order": the same words with the roles
    swapped ("Ann manages Bob" / "Bob manages Ann").
    """
    first, second = signature(a), signature(b)
    reasons = (
        ("number", first.numbers != second.numbers),
        ("time", first.times != second.times),
        ("unit", first.units != second.units),
        ("negation", first.negations != second.negations),
        ("name", bool(names_only_in(a, b) or names_only_in(b, a))),
        ("tense", tense_differs(a, b)),
        ("order", reordered(a, b)),
    )
    return next((reason for reason, differ in reasons if differ), None)


def keeps_figures(text: str, told: str) -> bool:
    """Whether every figure of `told` stands in `text` too."""
    return set(quantities.numbers(told)) <= set(quantities.numbers(text))


def same_content_words(a: str, b: str) -> bool:
    """Returns whether both texts have the same stems, articles aside: the second half of the offline guard."""
    return stemmed_words(a) == stemmed_words(b)


def names_only_in(a: str, b: str) -> frozenset[str]:
    """Returns the proper nouns of `a`, case-folded, that `b` mentions in no spelling."""
    elsewhere = {part for word in _WORD.findall(b) for part in _spellings(word)}
    return frozenset(name.casefold() for name in _names(a) if not _spellings(name) & elsewhere)


def tense_differs(a: str, b: str) -> bool:
    """Returns whether a shared verb is past in one text only, by its auxiliary or its -ed."""
    first, second = _past_by_stem(a), _past_by_stem(b)
    return any(first[stem] != second[stem] for stem in first.keys() & second.keys())


def reordered(a: str, b: str) -> bool:
    """Returns whether the same content words stand in an order that is not a mere shift.

    "On Mondays she runs" and "She runs on Mondays" are shifts of one another; swapped roles never are.
    """
    first, second = lexemes(a), lexemes(b)
    if first == second or sorted(first) != sorted(second):
        return False
    return not any(first[shift:] + first[:shift] == second for shift in range(1, min(len(first), 40)))


def _negations(text: str) -> int:
    single = sum(
        word.casefold() in _NEGATIONS or _NEGATED.search(word.casefold()) is not None for word in _WORD.findall(text)
    )
    return single + len(_NO_LONGER.findall(text))


def _past_by_stem(text: str) -> dict[str, bool]:
    """Every word's stem, and under "be" the auxiliaries, with whether the text puts it into the past."""
    words = [word.casefold() for word in _WORD.findall(text)]
    marks = {
        stem: word.endswith("ed") or word in PASTS
        for word in words
        if word.isalpha()
        for stem in canonical(lexemes(word))
    }
    auxiliaries = [word in _PAST for word in words if word in _PAST or word in _PRESENT]
    return marks | ({"be": any(auxiliaries)} if auxiliaries else {})


def _names(text: str) -> Iterator[str]:
    """Words capitalised in mid-sentence, and at the head of a sentence when they are no ordinary word."""
    headline = _is_headline(text)
    for match in _WORD.finditer(text):
        word = match.group()
        if not any(char.isupper() for char in word) or word.casefold() in FUNCTION_WORDS or word.casefold() in TIMES:
            continue
        head = text[: match.start()].rstrip(" \"'(")
        opening = not head or head[-1] in ".!?:\n"
        if not (opening or headline) or not is_common(word):
            yield word


def _is_headline(text: str) -> bool:
    """Whether most words have a capital, so that one means nothing."""
    long = [word for word in _WORD.findall(text) if len(word) > 3 and word.isalpha()]
    return len(long) > 3 and sum(word[0].isupper() for word in long) * 4 >= len(long) * 3


def _spellings(word: str) -> set[str]:
    """The word as it may return: without its possessive, its parts, its stem-like singular."""
    lowered = word.casefold().replace("\u2019", "'")
    bare = lowered.removesuffix("'s")
    return {lowered, bare, bare.removesuffix("s"), bare.replace("-", "").replace(".", "")}
