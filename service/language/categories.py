"""Categories of a text: a few words to filter and count by.

First the taxonomy, by the stems of its words; only where nothing of it fits, the text's own noun phrases, so that a
rare topic still has a name and the vocabulary stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.language import wordlists
from service.language.common_words import FUNCTION_WORDS
from service.language.lexemes import lexemes
from service.language.taxonomy import TAXONOMY

MAX_CATEGORIES = 5
_MAX_PHRASES = 2
_MAX_PHRASE_WORDS = 2
_CHARS_READ = 4_000  # what a text is about stands at its beginning; keeps long ones cheap
_PLACEHOLDER = re.compile(r"\[REDACTED[^\]]*\]")
_WORD = re.compile(r"[^\W\d_][\w'’+#-]*")
_BREAK = re.compile(r"[.,;:!?()\"\n]")
_DETERMINER = wordlists.words("a an the my your his her our their its this that these those some any every each")
_ENDS_OF_VERBS = ("ing", "ed", "ly")


def _entries() -> Iterator[tuple[tuple[str, ...], str]]:
    for category, words in TAXONOMY.items():
        for word in words.split(","):
            stems = tuple(lexemes(word))
            if stems:
                yield stems, category


def _by_stem() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    table: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for stems, category in _entries():
        table.setdefault(stems[0], []).append((stems, category))
    return table


_TABLE = _by_stem()
_RANK = {category: rank for rank, category in enumerate(TAXONOMY)}


def name(text: str, *, limit: int = MAX_CATEGORIES) -> tuple[str, ...]:
    """Returns at most `limit` categories in snake_case, most hits first; empty where a text names no topic.

    Ties go to the category mentioned first, then to the order of the taxonomy, so equal texts get equal answers.
    """
    text = _PLACEHOLDER.sub(" ", text[:_CHARS_READ])
    return tuple(_from_taxonomy(text) or dict.fromkeys(_phrases(text)))[:limit] if limit > 0 else ()


def _from_taxonomy(text: str) -> list[str]:
    stems = lexemes(text)
    hits: dict[str, set[tuple[str, ...]]] = {}
    first: dict[str, int] = {}
    for at, stem in enumerate(stems):
        for phrase, category in _TABLE.get(stem, ()):
            if tuple(stems[at : at + len(phrase)]) == phrase:
                hits.setdefault(category, set()).add(phrase)
                first.setdefault(category, at)
    return sorted(hits, key=lambda category: (-_weight(hits[category]), first[category], _RANK[category]))


def _weight(phrases: set[tuple[str, ...]]) -> int:
    """Different words count, repeats do not; a phrase weighs as many words as it has."""
    return sum(len(phrase) for phrase in phrases)


def _phrases(text: str) -> list[str]:
    """Noun phrases, best guess: runs of content words behind an article or possessive first, then other pairs."""
    runs = list(_runs(text))
    led = [run for is_led, run in runs if is_led]
    pairs = [run for is_led, run in runs if not is_led and len(run) > 1]
    return ["_".join(run[-_MAX_PHRASE_WORDS:]) for run in (*led, *pairs)][:_MAX_PHRASES]


def _runs(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Stretches of content words with whether a determiner leads them; a verb form in second place ends a stretch."""
    led, run = False, list[str]()
    position = 0
    for match in _WORD.finditer(text):
        word = re.sub(r"['’]s$", "", match.group().casefold())
        broken = _BREAK.search(text, position, match.start()) is not None
        position = match.end()
        if broken or word in FUNCTION_WORDS or (run and word.endswith(_ENDS_OF_VERBS)):
            yield from _finished(led, run)
            led, run = word in _DETERMINER, []
        if word not in FUNCTION_WORDS and len(word) > 2 and not (not run and word.endswith(_ENDS_OF_VERBS)):
            run.append(re.sub(r"[^\w]+", "_", word).strip("_"))
    yield from _finished(led, run)


def _finished(led: bool, run: list[str]) -> Iterator[tuple[bool, list[str]]]:
    if len(run) > _MAX_PHRASE_WORDS and run[-1].endswith("s"):  # "sourdough starter needs": likelier a verb
        run = run[:-1]
    if run:
        yield led, run
