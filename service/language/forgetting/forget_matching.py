"""Finds the texts and sentences that a request to forget means, and those that nearly match.

A text matches an identifier or a name if it has all of it, in any of its forms. It matches words if it has all of them.
A partial match is a near miss. Pure; some 50 µs per text of a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from service.language import lexemes, sentences
from service.language.common_words import is_common, word_set
from service.language.forgetting import forget_query, identifiers
from service.language.forgetting.forget_query import ForgetQuery, Labelled, Name
from service.language.forgetting.identifiers import Word
from service.language.talk import speech_acts
from service.language.talk.dates import as_said
from service.language.talk.quotes import take_apart

Key = TypeVar("Key")

NEAR_MISSES: Final = 10
MOST: Final = 0.5
"""A text has most of a query's words above this share of them."""

LABEL_DISTANCE: Final = 3
"""The number of words before a short number among which its noun must be."""

_LABELS: Final = "phone telephone mobile cell fax number no email mail address contact card account password key"
LABELS: Final = frozenset(lexemes.lexemes(_LABELS))
"""Words for kinds of data that are redacted."""

_NO_NAME_BEFORE: Final = word_set("""
    the a an my your his her our their its this that these those it you we i they he she there
""")


@dataclass(frozen=True)
class ForgetText(Generic[Key]):
    """A stored text, with the id that the caller knows it by."""

    key: Key
    text: str

    @cached_property
    def words(self) -> list[Word]:
        return identifiers.split_words(self.text)

    @cached_property
    def letters(self) -> frozenset[str]:
        return frozenset(word.raw for word in self.words if len(word.raw) == 1 and word.is_capital)

    @cached_property
    def lexemes(self) -> frozenset[str]:
        return frozenset(lexemes.lexemes(self.text))


@dataclass(frozen=True, slots=True)
class Matches(Generic[Key]):
    """The texts that are meant and those that come near, each with the reason, in the order given."""

    meant: dict[Key, str] = field(default_factory=dict)
    near: dict[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A half-open span of a text: one of its sentences, or the quotation in front that they refer to (`is_context`)."""

    start: int
    end: int
    text: str
    is_context: bool = False


BRIEF: Final = 3
"""Words of a reply that means nothing without the quotation in front of it."""


def split_parts(text: str) -> list[Part]:
    """The parts of a kept text: the quotation in front, if any, and its own sentences, without the speaker's name."""
    kept = take_apart(text)
    context = [Part(0, kept.context_end, kept.context, is_context=True)] if kept.context_end else []
    own = text[kept.start :]
    return context + [Part(kept.start + a, kept.start + b, own[a:b]) for a, b in sentences.split(own)]


def cut_parts(text: str, gone: Container[int]) -> str:
    """The text without the given parts; empty if only context would be left."""
    parts = split_parts(text)
    if all(place in gone for place, part in enumerate(parts) if not part.is_context):
        return ""
    for place, part in reversed(list(enumerate(parts))):
        if place in gone:
            text = text[: part.start] + text[part.end :].lstrip()
    return text.strip()


def meant_parts(query: ForgetQuery, parts: Sequence[Part]) -> set[int]:
    """The places of the parts that are meant in a matching text; all of them if no part matches by itself."""
    if query.everything or not query.terms or query.identifiers:
        chosen = {index for index, part in enumerate(parts) if _find_reason(query, ForgetText(None, part.text))}
    else:
        shares = [len(query.terms & frozenset(lexemes.lexemes(part.text))) for part in parts]
        best = max(shares, default=0)
        chosen = {index for index, share in enumerate(shares) if share == best > 0}
    return with_dependents(parts, chosen) or set(range(len(parts)))


def is_about_another(query: ForgetQuery, sentence: str) -> bool:
    """Whether a query is about the speaker ("where I live", "my salary") and a sentence is not: it says no "I", nor
    "my" of a word of the query ("My sister lives in Ulm." has "my sister", not "my live"), nor begins with one ("Lives
    in Ulm."). Of a thing it must say that somebody else has it: "Greta's salary", "My son has asthma." """
    if not (query.is_own or query.is_of_own):
        return False
    before, has_other, is_said = "my", query.is_own, False
    for word in identifiers.split_words(sentence):
        person = forget_query.person_of(word)
        is_thing = not query.terms.isdisjoint(lexemes.lexemes(word.raw))
        if person == "i" or word.key == "user" or (before == "my" and is_thing):
            return False
        is_said |= is_thing
        has_other |= not is_said and (word.key == "has" or forget_query.is_possessive(word))
        before = person
    return has_other


def with_dependents(parts: Sequence[Part], chosen: set[int]) -> set[int]:
    """The places, with those of following sentences that make no sense without them: "He owes me 60 euros." """
    chosen = set(chosen)
    for index, part in enumerate(parts[1:], 1):
        before = parts[index - 1]
        brief = before.is_context and (LEFT_OUT in before.text or len(part.text.split()) <= BRIEF)
        if index - 1 in chosen and (brief or speech_acts.depends(part.text)):
            chosen.add(index)
    return chosen


def normalise(text: str) -> str:
    """A sentence without added dates, case and punctuation, to compare it with other copies of it."""
    return re.sub(r"\W+", " ", as_said(text)).casefold().strip()


LEFT_OUT: Final = "\u2026"
"""Stands in a quotation for a value that was corrected."""


def is_corrected(parts: Sequence[Part], by: Sequence[Part]) -> bool:
    """Whether a text quotes a sentence without its value: "User said: My flight is at …. User: Sorry, 8." """
    before, _, after = map(normalise, by[0].text.partition(LEFT_OUT))
    said = (normalise(part.text) for part in parts)
    return bool(before) and any(each.startswith(before) and each.endswith(after) for each in said)


def echoes(said: str, reply: str) -> bool:
    """Whether a reply repeats a word of what was said: "pregnant" and "your pregnancy"."""
    one, other = ({stem[:STEM] for stem in lexemes.lexemes(text) if len(stem) >= SHORT} for text in (said, reply))
    return bool(one & other)


SHORT, STEM = 3, 6
"""The least letters of a word worth comparing, and those that two words of one family share."""


def find_names(texts: Iterable[ForgetText[Any]]) -> Callable[[str], bool]:
    """Whether a word (its key) is a name in these texts: written with a capital everywhere."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        for word in text.words:
            if word.kind == "word":
                (capital if word.is_capital else small)[word.key] += 1
    return lambda key: capital[key] > 0 and not small[key]


def match(query: ForgetQuery, texts: Sequence[ForgetText[Key]]) -> Matches[Key]:
    """Finds the texts that the query means. The texts are in the order in which they were stored."""
    if query.identifiers or query.names:
        return _match_forms(query, texts)
    if not query.terms:
        return Matches()
    meant = {
        text.key: "contains all words of the query"
        for text in texts
        if query.terms <= text.lexemes and query.letters <= text.letters
    }
    return Matches(meant, _near(query, texts, meant))


def _match_forms(query: ForgetQuery, texts: Sequence[ForgetText[Key]]) -> Matches[Key]:
    reasons = {text.key: reason for text in texts if (reason := _find_reason(query, text)) is not None}
    if query.roles and not query.identifiers:
        reasons = _with_role(query.roles, query.names, texts, reasons)
    if any(text.word.kind == "masked" for text in query.identifiers):
        return _match_masked(query, texts, reasons)
    if query.identifiers or query.everything or not query.terms:
        return Matches(reasons, _near(query, texts, reasons))
    meant = _narrow(query.terms, query.letters, [text for text in texts if text.key in reasons], reasons)
    others = {key: why for key, why in reasons.items() if key not in meant}
    return Matches(meant, {**others, **_near(query, texts, reasons)})


def _match_masked(query: ForgetQuery, texts: Sequence[ForgetText[Key]], reasons: dict[Key, str]) -> Matches[Key]:
    """Matches a query for an identifier that was redacted when the texts were stored, and so cannot be compared: a text
    is meant when it has all other words of the query. If these only name the kind of data ("phone"), it must be the
    only one."""
    telling = query.terms - LABELS
    said = {text.key: reasons[text.key] for text in texts if text.key in reasons and telling <= text.lexemes}
    meant = said if telling or len(reasons) == 1 else {}
    near = {key: "has such an identifier, redacted" for key in reasons if key not in meant}
    return Matches(meant, {**near, **_near(query, texts, reasons)})


def _with_role(
    roles: frozenset[str], names: Sequence[Name], texts: Sequence[ForgetText[Key]], reasons: dict[Key, str]
) -> dict[Key, str]:
    """The texts about the one with this role, if others of the same name have another one: "my colleague Anna" is not
    "my daughter Anna". The texts that name no role may then mean either."""
    said = {}
    for text in texts:
        starts = [text.words[at].start for name in names if (at := _place_of(name, text)) is not None]
        said[text.key] = forget_query.roles_before(text.words, starts)
    if all(roles & said[key] for key in reasons if said[key]):
        return reasons
    return {key: reason for key, reason in reasons.items() if roles & said[key]}


def _narrow(
    terms: frozenset[str], letters: frozenset[str], texts: Sequence[ForgetText[Key]], reasons: dict[Key, str]
) -> dict[Key, str]:
    """The texts with the most of the query's other words among those that have its name, if it is more than half. Words
    count by their letters: in any language short ones say least."""
    shares = {text.key: sum(map(len, terms & text.lexemes)) for text in texts if letters <= text.letters}
    best = max(shares.values(), default=0)
    return {key: reasons[key] for key, share in shares.items() if share == best > MOST * sum(map(len, terms))}


def _find_reason(query: ForgetQuery, text: ForgetText[Any]) -> str | None:
    """The reason why a text is meant: the first identifier of the query that it has; without one in the query, the
    first name."""
    for wanted in query.identifiers:
        for at, word in enumerate(text.words):
            if _is_the_same(wanted, text.words, at):
                return f"has the identifier {word.raw}"
    for name in () if query.identifiers else query.names:
        place = _place_of(name, text)
        if place is not None:
            return f"names {' '.join(word.raw for word in text.words[place : place + len(name)])}"
    return None


def _is_the_same(wanted: Labelled, words: Sequence[Word], at: int) -> bool:
    word, one = words[at], wanted.word
    if not identifiers.are_same(one, word):
        return False
    if one.kind == "handle" and word.kind != "handle":
        return word.kind == "word" and not is_common(word.key) and (not word.is_capital or one.is_capital or at == 0)
    if wanted.label is None or len(one.key) >= forget_query.SHORT_NUMBER:
        return True
    label = set(lexemes.lexemes(wanted.label))
    for each in reversed(words[max(0, at - LABEL_DISTANCE) : at]):
        if label & set(lexemes.lexemes(each.key)):
            return True
        if each.kind != "number" and each.key not in _BETWEEN:
            return False
    return False


def _place_of(name: Name, text: ForgetText[Key]) -> int | None:
    """The place of the first word of a name in the text. A common word is a name with a capital only, and not at the
    beginning of a text where it makes sense as a word ("Mark the date")."""
    words = text.words
    for at in range(len(words) - len(name) + 1):
        part = words[at : at + len(name)]
        if tuple(word.key for word in part) != name:
            continue
        if len(name) == 1 and not part[0].is_capital and at and words[at - 1].key in _DETERMINERS:
            continue  # "a falcon" is not Falcon
        if len(name) == 1 and is_common(name[0]) and part[0].raw.upper() != part[0].raw.lower():
            following = words[at + 1].key if at + 1 < len(words) else ""
            if not part[0].is_capital or (at == 0 and following in _NO_NAME_BEFORE):
                continue
        return at
    if len(name) == 1 and lexemes.IS_UNSPACED.search(name[0]):  # in a run of words; one letter more is another name
        longer = len(name[0]) + 3
        return next((at for at, word in enumerate(words) if name[0] in word.key and len(word.key) >= longer), None)
    return None


_BETWEEN: Final = frozenset({"and", "or", "no", "nr", "number", "num", "id", "is", "was", "to", "through"})
"""The text that may be between a noun and its number: "order no. 17", "orders 16 and 17"."""

_DETERMINERS: Final = _NO_NAME_BEFORE | {"some", "any", "every", "each", "no", "these", "those"}


def _near(query: ForgetQuery, texts: Sequence[ForgetText[Key]], meant: dict[Key, str]) -> dict[Key, str]:
    """Texts that share a part with the query, most first."""
    parts = {key for name in query.names for key in name}
    numbers = {text.word.key for text in query.identifiers}
    scored = []
    for text in texts:
        if text.key in meant:
            continue
        looks_alike = any(_looks_alike(number, word.key) for number in numbers for word in text.words)
        shares_name = bool(parts & {word.key for word in text.words})
        share = len(query.terms & text.lexemes) / len(query.terms) if query.terms else 0.0
        if looks_alike or shares_name or (share >= 0.5 and not (parts or numbers)):
            why = "says some of the words"
            if looks_alike or shares_name:
                why = "has a similar identifier" if looks_alike else "shares a word of the name"
            scored.append((looks_alike + shares_name + share, text.key, why))
    scored.sort(key=lambda one: -one[0])
    return {key: why for _, key, why in scored[:NEAR_MISSES]}


def _looks_alike(one: str, other: str) -> bool:
    return len(one) > 2 and len(other) > 2 and (one in other or other in one) and any(map(str.isdigit, one + other))
