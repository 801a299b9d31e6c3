"""Types of capitalised names: person, place, technology, and others.

Evidence in falling order: a listed name, a word inside the run ("Lake", "Inc"), a word next to it ("the Zephyr
library", "my sister Ines", "works at"), the spelling (FastAPI, GPT-4o, NASA), then the words themselves.
"""

from __future__ import annotations

import re

from service.language import entity_words
from service.language.common_words import is_common
from service.language.entity_runs import Token, look_up

_MIXED = re.compile(r"[^\W\d_]*[a-zà-ÿ][A-Z]|\w+\.(?:js|py|io|ai|net|rs|ts)$|\.NET", re.UNICODE)
_VERSIONED = re.compile(r"[A-Za-z]+-?\d[\w.]*$")
_NAME_PREFIX = re.compile(r"(?:Mc|Mac|O['’]|De|La|Le|Di|Van|Fitz)[A-Z]")
_ACRONYM = re.compile(r"[A-Z][A-Z&]+$")
_WINDOW = 5
_PHRASES = (
    (entity_words.WORK_BEFORE, "organization"),
    (entity_words.TECHNOLOGY_BEFORE, "technology"),
    (entity_words.PLACE_BEFORE, "location"),
)


def find_type(sentence: list[Token], start: int, end: int) -> str:
    """Returns the type of the run `sentence[start:end]`."""
    run = sentence[start:end]
    before, after = _before(sentence, start), _after(sentence, end)
    known = look_up(run)
    if known is not None:
        return known[1]
    return _inside(run) or _by_neighbours(run, before, after) or _find_spelled(run, before) or _by_words(run, before)


def _before(sentence: list[Token], start: int) -> str:
    """The words before the run, lower-cased, each followed by a blank, from the last comma."""
    words_before = []
    for token in reversed(sentence[max(0, start - _WINDOW) : start + 1]):
        words_before.append(token.lower)
        if token.gap.strip(" .-"):
            break
    return "".join(f"{word} " for word in reversed(words_before[1:]))


def _after(sentence: list[Token], end: int) -> str:
    return sentence[end].lower if end < len(sentence) and sentence[end].gap == " " else ""


def _inside(run: list[Token]) -> str | None:
    if len(run) < 2:
        return None
    return entity_words.FIRST_WORDS.get(run[0].lower) or entity_words.LAST_WORDS.get(run[-1].lower)


def _by_neighbours(run: list[Token], before: str, after: str) -> str | None:
    """The type by the noun or verb next to the name; the nearest word decides."""
    tail = before.split()
    last = tail[-1] if tail else ""
    if last in entity_words.NAMING and len(tail) > 1:
        nouns = (entity_words.NOUNS[word] for word in reversed(tail[:-1]) if word in entity_words.NOUNS)
        return next(nouns, "person" if last == "named" else None)  # "a beagle named Biscuit"
    if last in entity_words.TITLES:
        return "person"
    if entity_words.NOUNS.get(after, "person") != "person" and not run[-1].possessive:
        return entity_words.NOUNS[after]
    if last in entity_words.NOUNS:
        return entity_words.NOUNS[last]
    for pattern, kind in _PHRASES:
        if pattern.search(before):
            return None if kind == "location" and _is_spelled_apart(run) else kind
    acts = after in entity_words.PERSON_AFTER
    ordinary = all(is_common(token.text) for token in run)
    return "person" if acts and not ordinary and not _is_spelled_apart(run) else None


def _is_spelled_apart(run: list[Token]) -> bool:
    """FastAPI, GPT-4o, NASA: no place and no person is spelled so."""
    text = run[-1].text
    if _NAME_PREFIX.match(text):
        return False
    return any(pattern.match(text) is not None for pattern in (_MIXED, _VERSIONED, _ACRONYM))


def _find_spelled(run: list[Token], before: str) -> str | None:
    text = run[-1].text
    if _NAME_PREFIX.match(text):
        return "person"
    if text[0].islower():
        return "product"  # iPhone, eBay
    if _MIXED.match(text) or _VERSIONED.match(text):
        return "technology"
    if _ACRONYM.match(text):
        return "organization" if before.endswith(("the ", "at ", "by ", "from ", "with ")) else "concept"
    return None


def _by_words(run: list[Token], before: str) -> str:
    """Up to three words, none of them ordinary, are taken for a person; ordinary words never are."""
    ordinary = any(is_common(token.text) for token in run)
    if before.endswith("at ") or (before.endswith("the ") and not ordinary and 2 <= len(run) <= 3):
        return "organization"
    return "person" if len(run) <= 3 and not ordinary and not before.endswith("the ") else "concept"
