"""People, places, projects and technologies named in a text.

Rules only, some tens of microseconds a sentence: the names that this user already has, runs of capitalised words, and
tools and technologies that are often written small. A pair of capitalised ordinary words is never a person, and dates
are never entities.

Evidence of a type in falling order: a listed name, a word inside the run ("Lake", "Inc"), a word next to it ("the
Zephyr library", "my sister Ines", "works at"), the spelling (FastAPI, GPT-4o, NASA), then the words themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from service.language import entity_runs, entity_words, sentences
from service.language.common_words import is_common
from service.language.entity_runs import Token, look_up

# Where the key of the `entities` view is not the type with an s.
_PLURALS = {"technology": "tools", "person": "people"}
_ALWAYS = ("tools", "projects", "people", "concepts", "organizations")
_REPOSITORY = frozenset({"repo", "repository", "project", "codebase", "monorepo", "microservice"})
_MAX_KNOWN_WORDS, _MAX_LISTED_WORDS = 6, 2
_NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})


LookUp = Callable[[list[Token]], tuple[str, str] | None]
"""Returns the usual spelling and the type of a run of words that is a known name, else None."""


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """A name as usually written, its type (lower-case singular) and the half-open span it was read from."""

    name: str
    type: str
    start: int
    end: int


def find(text: str, *, known: Mapping[str, str] = _NOTHING_KNOWN) -> tuple[EntitySpan, ...]:
    """Returns every mention in order, spans never overlap.

    `known`: lower-case (casefold) names and aliases of the same user → type; they win, and count in any case.
    """
    quiet = entity_runs.quiet(text)
    return tuple(entity for start, end in sentences.split(quiet) for entity in _of_sentence(quiet, start, end, known))


def group(entities: Iterable[EntitySpan]) -> dict[str, list[str]]:
    """Returns the names under the plural keys of the memory view, each name once, in order of first mention.

    Keys outside the first five appear only when filled.
    """
    view: dict[str, dict[str, str]] = {key: {} for key in _ALWAYS}
    for entity in entities:
        names = view.setdefault(_PLURALS.get(entity.type, f"{entity.type}s"), {})
        names.setdefault(entity.name.casefold(), entity.name)
    return {key: list(names.values()) for key, names in view.items()}


def _of_sentence(text: str, start: int, end: int, known: Mapping[str, str]) -> list[EntitySpan]:
    words = entity_runs.tokens(text, start, end)

    def look_up_known(run: list[Token]) -> tuple[str, str] | None:
        kind = known.get(" ".join(token.lower for token in run))
        return (text[run[0].start : run[-1].end], kind) if kind else None

    taken = list(_find_listed(words, look_up_known, _MAX_KNOWN_WORDS)) if known else []
    taken += _free(taken, _find_capitalised(text, words))
    taken += _free(taken, _find_listed(words, look_up, _MAX_LISTED_WORDS))
    taken += _free(taken, _code_names(words))
    return sorted(taken, key=lambda entity: entity.start)


def _free(taken: list[EntitySpan], candidates: Iterable[EntitySpan]) -> list[EntitySpan]:
    return [new for new in candidates if all(new.end <= old.start or old.end <= new.start for old in taken)]


def _find_listed(words: list[Token], known: LookUp, longest: int) -> Iterator[EntitySpan]:
    """The names that are known, the longest first, none overlapping."""
    index = 0
    while index < len(words):
        for end in range(min(index + longest, len(words)), index, -1):
            run = words[index:end]
            named = known(run) if all(word.gap.strip() in ("", "-") for word in run[1:]) else None
            if named is not None:
                yield EntitySpan(*named, run[0].start, run[-1].end)
                index = end - 1
                break
        index += 1


def _code_names(words: list[Token]) -> Iterator[EntitySpan]:
    """Lower-case names of repositories: "the tensor-forge repo", "project tensor-forge"."""
    for index, token in enumerate(words):
        if "-" in token.text and not token.text[0].isupper():
            beside = {word.lower for word in words[max(0, index - 1) : index + 2]}
            if beside & _REPOSITORY:
                yield EntitySpan(token.text, "project", token.start, token.end)


def _find_capitalised(text: str, words: list[Token]) -> Iterator[EntitySpan]:
    for first, last in entity_runs.runs(words):
        start, end = words[first].start, words[last - 1].end
        name, kind = look_up(words[first:last]) or (text[start:end], _find_type(words, first, last))
        yield EntitySpan(name, kind, start, end)


_MIXED = re.compile(r"[^\W\d_]*[a-zà-ÿ][A-Z]|\w+\.(?:js|py|io|ai|net|rs|ts)$|\.NET", re.UNICODE)
_VERSIONED = re.compile(r"[A-Za-z]+-?\d[\w.]*$")
_NAME_PREFIX = re.compile(r"(?:Mc|Mac|O['’]|De|La|Le|Di|Van|Fitz)[A-Z]")
_ACRONYM = re.compile(r"[A-Z][A-Z&]+$")
_WINDOW = 5


def _find_type(sentence: list[Token], start: int, end: int) -> str:
    run, before = sentence[start:end], _before(sentence, start)
    after = sentence[end].lower if end < len(sentence) and sentence[end].gap == " " else ""
    return _inside(run) or _by_neighbours(run, before, after) or _find_spelled(run, before) or _by_words(run, before)


def _before(sentence: list[Token], start: int) -> str:
    """The words before the run, lower-cased, each followed by a blank, from the last comma."""
    words_before = []
    for token in reversed(sentence[max(0, start - _WINDOW) : start + 1]):
        words_before.append(token.lower)
        if token.gap.strip(" .-"):
            break
    return "".join(f"{word} " for word in reversed(words_before[1:]))


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
    if entity_words.WORK_BEFORE.search(before):
        return "organization"
    if entity_words.PLACE_BEFORE.search(before):
        return None if _is_spelled_apart(run) else "location"
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
