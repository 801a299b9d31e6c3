"""Types of capitalised names: person, place, technology, and others.

Evidence in falling order: the list of well-known names, a word inside the run ("Lake", "Inc"), a word beside it
("the Zephyr library", "my sister Ines", "works at"), the spelling (FastAPI, GPT-4o, NASA), then the words themselves.
"""

from __future__ import annotations

import re

from service.language import entity_words
from service.language.common_words import is_common
from service.language.entity_runs import Token
from service.language.gazetteer import FIRST_NAMES, NAMES, KnownName

_MIXED = re.compile(r"[^\W\d_]*[a-zà-ÿ][A-Z]|\w+\.(?:js|py|io|ai|net|rs|ts)$|\.NET", re.UNICODE)
_VERSIONED = re.compile(r"[A-Za-z]+-?\d[\w.]*$")
_NAME_PREFIX = re.compile(r"(?:Mc|Mac|O['’]|De|La|Le|Di|Van|Fitz)[A-Z]")
_ACRONYM = re.compile(r"[A-Z][A-Z&]{1,5}$")
_WINDOW = 5


def of(sentence: list[Token], start: int, end: int) -> str | None:
    """Returns the type of the run `sentence[start:end]`; None when it is no name after all."""
    run = sentence[start:end]
    before, after = _before(sentence, start), _after(sentence, end)
    listed = NAMES.get(" ".join(token.lower for token in run))
    if listed is not None:
        return _listed_type(listed, run, before, after)
    return _inside(run) or _beside(run, before, after) or _spelled(run, before) or _by_words(run, before, after)


def _before(sentence: list[Token], start: int) -> str:
    """The words ahead of the run, lower-cased, one blank behind each, up to the last comma."""
    words_before = []
    for token in reversed(sentence[max(0, start - _WINDOW) : start + 1]):
        words_before.append(token.lower)
        if token.gap.strip(" .-"):
            break
    return "".join(f"{word} " for word in reversed(words_before[1:]))


def _after(sentence: list[Token], end: int) -> str:
    return sentence[end].lower if end < len(sentence) and sentence[end].gap == " " else ""


def _listed_type(known: KnownName, run: list[Token], before: str, after: str) -> str:
    """A place or product that is a first name too ("Sofia", "Claude") is a person where it acts like one."""
    if len(run) == 1 and run[0].lower in FIRST_NAMES and _acts(before, after):
        return "person"
    return known.type


def _acts(before: str, after: str) -> bool:
    last = before.split()[-1:]
    return after in entity_words.PERSON_AFTER or any(
        word in entity_words.PERSON_BEFORE or word in entity_words.TITLES or entity_words.NOUNS.get(word) == "person"
        for word in last
    )


def _inside(run: list[Token]) -> str | None:
    if len(run) < 2:
        return None
    first, last = run[0].lower, run[-1].lower
    if first in entity_words.FIRST_WORDS:
        return entity_words.FIRST_WORDS[first]
    if last in entity_words.LAST_WORDS and not (last in ("park", "max", "co") and first in FIRST_NAMES):
        return entity_words.LAST_WORDS[last]
    kinds = [known.type for token in run if (known := NAMES.get(token.lower)) and token.lower not in FIRST_NAMES]
    if first in FIRST_NAMES and not all(is_common(token.text) for token in run[1:]):
        return "person"
    if kinds:
        return "product" if kinds[0] == "organization" else kinds[0]
    return None


def _beside(run: list[Token], before: str, after: str) -> str | None:
    """The noun or verb next to the name; the nearest word speaks first."""
    tail = before.split()
    last = tail[-1] if tail else ""
    if last in entity_words.NAMING and len(tail) > 1:
        nouns = (entity_words.NOUNS[word] for word in reversed(tail[:-1]) if word in entity_words.NOUNS)
        return next(nouns, "person" if last == "named" else None)  # "a beagle named Biscuit"
    if last in entity_words.TITLES:
        return "person"
    is_first_name = run[0].lower in FIRST_NAMES
    if after in entity_words.NOUNS and entity_words.NOUNS[after] != "person" and not is_first_name:
        return entity_words.NOUNS[after]
    if last in entity_words.NOUNS and (not is_first_name or entity_words.NOUNS[last] == "person"):
        return entity_words.NOUNS[last]
    if is_first_name:
        return "person"
    for pattern, kind in _PHRASES:
        if pattern.search(before):
            return None if kind == "location" and _is_spelled_apart(run) else kind
    ordinary = all(is_common(token.text) for token in run)
    return "person" if _acts(before, after) and not ordinary and not _is_spelled_apart(run) else None


_PHRASES = (
    (entity_words.WORK_BEFORE, "organization"),
    (entity_words.TECHNOLOGY_BEFORE, "technology"),
    (entity_words.PLACE_BEFORE, "location"),
)


def _is_spelled_apart(run: list[Token]) -> bool:
    """FastAPI, GPT-4o, NASA: no place and no person is spelled so."""
    text = run[-1].text
    if _NAME_PREFIX.match(text):
        return False
    return any(pattern.match(text) is not None for pattern in (_MIXED, _VERSIONED, _ACRONYM))


def _spelled(run: list[Token], before: str) -> str | None:
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


def _by_words(run: list[Token], before: str, after: str) -> str:
    """Two or three words of which none is ordinary read as a person; ordinary ones never do."""
    ordinary = [is_common(token.text) for token in run]
    if 2 <= len(run) <= 3 and not any(ordinary):
        return "organization" if before.endswith(("at ", "the ")) else "person"
    if len(run) == 1 and not ordinary[0] and after in entity_words.AUXILIARIES:
        return "concept"
    return "organization" if before.endswith("at ") else "concept"
