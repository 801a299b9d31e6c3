"""Parses what a request to forget refers to: identifiers, a name with its other forms, and words that narrow it down.

"phone 202-555-0147" has an identifier, "everything about Wanda" a name, "Wanda's phone" a name and a word, "garden gate
code" only words. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from service.language import lexemes
from service.language.common_words import FUNCTION_WORDS, is_common
from service.language.forgetting import identifiers, request_head
from service.language.forgetting.identifiers import Word

Name = tuple[str, ...]
"""The keys of the words of a name, in order."""

SHORT_NUMBER: Final = 5
"""A bare number with fewer digits is too common: its noun must be in front of it in the text as well."""

ABBREVIATION: Final = 3
"""Letters of a word that may have a full stop inside of a name."""

_ALL: Final = re.compile(
    r"\b(?:everything|anything|all|whatever|every\s+\w+|"
    r"the\s+(?:data|records?|info(?:rmation)?|memor(?:y|ies)|facts?))\b"
    r"[^.?!]{0,40}?\b(?:about|on|of|regarding|concerning|for|related\s+to|mentioning|naming|with)\b",
    re.IGNORECASE,
)
_OR: Final = re.compile(r"[^\w]*(?:/|\||=|\(|\bor\b|\baka\b|\ba\.k\.a\.?|\balias\b|\balso\s+known\s+as\b)[^\w]*", re.I)
_AND: Final = re.compile(r"\s*(?:,|,?\s*\band\b|&)\s*", re.IGNORECASE)

GENERIC: Final = frozenset(
    lexemes.lexemes("""
        forget delete remove erase purge please record detail info information data entry fact stuff thing memory note
        file item anything everything all about related regarding concerning mention known stored user
    """)
)
"""Lexemes of words that name the action or the record ("delete", "note"), but nothing in it."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """An identifier with the word before it in the query, which a short number needs in a text, too."""

    word: Word
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ForgetQuery:
    """A parsed query. `names`: forms of one name, or several names that were joined by "and"; `everything`: all texts
    with these names are meant, else `terms` (lexemes) narrow them down. `letters`: single capitals ("Building A"),
    which a text must have, too. `has_owner`: whether it says whose thing is meant ("Omar's bike", "my wife's bike").
    `is_own`: whether it speaks of the speaker ("where I live"), `is_of_own`: of a thing of the speaker ("my salary").
    `roles`: lexemes of what somebody is to the speaker ("my colleague Anna")."""

    identifiers: tuple[Labelled, ...]
    names: tuple[Name, ...]
    terms: frozenset[str]
    everything: bool
    letters: frozenset[str] = frozenset()
    has_owner: bool = False
    is_own: bool = False
    is_of_own: bool = False
    roles: frozenset[str] = frozenset()


def parse(text: str, is_name: Callable[[str], bool] = lambda _: False) -> ForgetQuery:
    """The query taken apart. `is_name`: whether a word (its key) that is written small here is a name elsewhere."""
    words = identifiers.split_words(text)
    phrases = list(_phrases(text, words, is_name))
    wanted = _identifiers(words, named=bool(phrases))
    subject, joined = _subject(text, phrases)
    names = tuple(dict.fromkeys(name for name, _, _ in subject))
    roles = roles_before(words, [start for _, start, _ in subject])
    used = {key for name in names for key in name} | {each.word.key for each in wanted}
    terms = frozenset(
        lexeme
        for word in words
        if word.key not in used and person_of(word) != "my"
        for lexeme in lexemes.lexemes(word.raw)
        if lexeme not in GENERIC | roles
    )
    terms = terms - NAMING or terms  # "My dentist is Dr. Poe" has my dentist's name
    of_thing = any(is_possessive(word) for word in words if subject and word.end == subject[-1][2])
    whole = bool(names) and ((bool(_ALL.search(text)) and not of_thing) or joined or not terms)
    letters = frozenset(
        word.raw
        for at, word in enumerate(words)
        if at and len(word.raw) == 1 and word.is_capital and word.raw != "I" and word.key not in used
    )
    has_owner = any(map(is_possessive, words))
    is_own = any(person_of(word) == "i" for word in words)
    is_of_own = not has_owner and not names and any(person_of(word) == "my" for word in words)
    return ForgetQuery(wanted, names, terms, whole, letters, has_owner, is_own, is_of_own, roles)


def person_of(word: Word) -> str:
    """The class of a pronoun of the first person in one of the languages of request_head.json, "i" or "my"; else
    another class of words, or none."""
    pronoun, apostrophe, _ = request_head.normalise(word.raw).partition("'")
    return request_head.class_of(pronoun) or request_head.class_of(pronoun + apostrophe)


def names_in(text: str) -> list[Name]:
    """The names that a text writes with capitals (or in a script without), in order."""
    return [name for name, _, _ in _phrases(text, identifiers.split_words(text), lambda _: False)]


def _identifiers(words: Sequence[Word], *, named: bool) -> tuple[Labelled, ...]:
    """The identifiers of the query; along with a name, numbers of few digits only describe."""
    wanted = []
    for at, word in enumerate(words):
        if word.kind == "word" or (word.kind in ("number", "code") and identifiers.is_weak(word)):
            continue
        short = word.kind == "number" and len(word.key) < SHORT_NUMBER
        if short and named:
            continue
        label = next(
            (each.key for each in reversed(words[max(0, at - 2) : at]) if each.key not in FUNCTION_WORDS), None
        )
        wanted.append(Labelled(word, label if word.kind == "number" else None))
    return tuple(wanted)


Phrase = tuple[Name, int, int]
"""A name and where it stands."""


def _phrases(text: str, words: Sequence[Word], is_name: Callable[[str], bool]) -> Iterator[Phrase]:
    """Adjacent words that form a name. A common word belongs to one only next to an uncommon word."""
    letters = [word for word in words if word.kind == "word" and word.key not in FUNCTION_WORDS]
    shouted = (
        len(letters) > 1 and all(word.is_capital for word in letters) and any(is_common(word.key) for word in letters)
    )
    run: list[tuple[Word, bool]] = []
    for at, word in enumerate(words):
        kind = _name_part(word, first=at == 0, is_name=is_name, shouted=shouted)
        if kind is None and word.kind == "word" and at and person_of(words[at - 1]) == "my":
            kind = None if is_common(words[at - 1].key) else True  # "mi hermano", but not "my brother"
        if at + 1 < len(words) and words[at + 1].kind == "number" and not word.is_capital:
            kind = None  # "locker 12" has no name
        if run and (kind is None or not _goes_on(text, run[-1][0], word) or is_possessive(run[-1][0])):
            yield from _build_name(run)
            run = []
        if kind is not None:
            run.append((word, kind))
    yield from _build_name(run)


def _build_name(run: Sequence[tuple[Word, bool]]) -> Iterator[Phrase]:
    if any(sure for _, sure in run):
        yield tuple(word.key for word, _ in run), run[0][0].start, run[-1][0].end


def _goes_on(text: str, before: Word, word: Word) -> bool:
    """Whether only blanks separate two words, or the full stop of an abbreviation ("Dr. Smith")."""
    between = text[before.end : word.start].strip()
    return not between or (between == "." and len(before.key) <= ABBREVIATION)


def _name_part(word: Word, *, first: bool, is_name: Callable[[str], bool], shouted: bool) -> bool | None:
    """True: a word of a name; False: only next to such a word; None: never."""
    if word.kind != "word" or word.key in FUNCTION_WORDS or not any(map(str.isalpha, word.key)):
        return None
    if not word.raw.isascii() and word.raw.upper() == word.raw.lower():  # a script without capitals
        return True
    if is_common(word.key):
        return None if not word.is_capital else not first and not shouted
    return True if word.is_capital or is_name(word.key) else None


def is_possessive(word: Word) -> bool:
    return word.raw.translate({0x2019: "'"}).endswith(("'s", "s'"))


def _subject(text: str, phrases: Sequence[Phrase]) -> tuple[list[Phrase], bool]:
    """The names that are meant: the first, with those that "or", a slash, brackets or "and" join to it. The flag says
    that the others are forms of one name."""
    if not phrases:
        return [], False
    subject, joined = [phrases[0]], False
    for phrase in phrases[1:]:
        between = text[subject[-1][2] : phrase[1]]
        if _OR.fullmatch(between):
            joined = True
        elif not _AND.fullmatch(between):
            break
        subject.append(phrase)
    return subject, joined


def roles_before(words: Sequence[Word], starts: Collection[int]) -> frozenset[str]:
    """Lexemes of the words between "my" and the names that start there: "my colleague Anna"."""
    return frozenset(
        lexeme
        for owner, role, name in zip(words, words[1:], words[2:], strict=False)
        if person_of(owner) == "my" and name.start in starts and not is_possessive(role)
        for lexeme in lexemes.lexemes(role.raw)
    )


NAMING: Final = frozenset(lexemes.lexemes("name nombre nom nome naam"))
