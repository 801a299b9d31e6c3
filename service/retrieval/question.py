"""What does a question ask for?

Not all of its words describe the answer. The name of somebody who takes part in the conversation says who spoke: in
the text of a turn it mostly marks the other one ("Thanks, Ana!"), so it leaves the vector and the terms and becomes a
condition on the speaker. Rare names and ids must be found to the letter. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Literal
from zoneinfo import ZoneInfo

from service.language.common_words import is_common
from service.language.gazetteer import CALENDAR
from service.language.lexemes import MAX_TERMS, lexemes
from service.language.requests import asks_the_present, asks_when, is_request
from service.language.temporal import find, window

Role = Literal["user", "assistant"]

NAMED: Final = 0.6
"""What a turn by the named speaker counts beside one by the role asked for: "Ana's boat" is told by others, too."""

LONGEST_NAME: Final = 4
MAX_WORDS: Final = 60
"""Words of a question that are looked through for names."""

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_MONTH = re.compile(
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|\bmay\s+\d"
    r"|(?:\b(?:in|of|during|last|since|late|early|mid|this)[\s-]+|\d(?:st|nd|rd|th)?\s+(?:of\s+)?)may\b",
    re.IGNORECASE,
)
_TELLS_YEAR = re.compile(
    r"\b(?:last|previous|past|next|this|current|same)\s+year\b|\byears?\s+(?:ago|before\s+last|from\s+now)\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:last|previous|past|next|this)\s+(?:week|weekend|month|year|night|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday)\b|\b(?:yesterday|today|tomorrow|recently)\b",
    re.IGNORECASE,
)

_ROLES: Final = frozenset({"user", "assistant", "system", "tool", "developer", "human", "ai", "bot"})
_TOKEN = re.compile(r"\w+(?:[.'\u2019\-/]\w+)*")
_POSSESSIVE = re.compile(r"['\u2019]s$")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|am|pm|s)$", re.IGNORECASE)
_OF_THE_ASSISTANT = re.compile(
    r"\b(?:(?:did|do|have|had|would|could) you|you (?:\w+ly )?(?:said|told|gave|mentioned|suggested|recommended|advised"
    r"|proposed|explained|wrote|listed)|according to you|your (?:\w+ )?(?:advice|answer|suggestions?|recommendations?"
    r"|list|reply))\b",
    re.IGNORECASE,
)
_OF_THE_USER = re.compile(r"\b(?:[Ii]|[Mm]y|[Mm]ine|[Mm]e|[Mm]yself|[Ww]e|[Oo]ur|us)\b")  # but not the US
_LOOKS_BACK = re.compile(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|earlier|originally|used\s+to|once|old|past|first|ever|history"
    r"|did|was|were|had|has|have)\b",
    re.IGNORECASE,
)
_LIVING = re.compile(
    r"\bfor (?:a|his|her|their|your|my) living\b|\b(?:make|earn)s? (?:a|his|her|their|your|my) living\b", re.IGNORECASE
)
_JOINTS: Final = re.compile(r"[ ._-]+")
_HOLLOW: Final = frozenset(
    lexemes("happen go do say tell talk mention discuss discussion conversation event thing something anything new")
    + lexemes("happened went said told memory memories note notes remember recall know there")
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A stretch of time, half-open in UTC, an end may be None; `any_year` when the question named no year.

    `spans`: where in the question it was read.
    """

    begins_at: datetime | None
    ends_at: datetime | None
    any_year: bool = False
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question, taken apart.

    `embed`: what to embed as a query. `terms`: the different lexemes for BM25, in order. `rare`: for each name or id
    its lexemes, all of them to be found in a text's own terms; `odd`: the same for every word that is not of everyday
    language. `named`: the speakers named, as stored. `role`: whose
    words are asked for when nobody is named. `asked`: the time asked for. `only_time`: nothing else is asked.
    `phrases`: what might be the name of an entity, as written. `looks_back`: it asks for what was, not for what is.
    `present`: it asks for how things stand, and for no other time. `request`: it asks for something to be done.
    `when`: it asks for a time.
    """

    text: str
    embed: str
    terms: tuple[str, ...]
    rare: tuple[tuple[str, ...], ...] = ()
    odd: tuple[tuple[str, ...], ...] = ()
    named: frozenset[str] = frozenset()
    role: Role | None = None
    asked: Asked | None = None
    only_time: bool = False
    phrases: tuple[str, ...] = ()
    looks_back: bool = False
    present: bool = False
    request: bool = False
    when: bool = False


def read(
    text: str, reference: datetime, zone: ZoneInfo, people: Iterable[str] = (), subject: str | None = None
) -> Question:
    """Returns the question taken apart; `people`: speakers of the scope, as stored; `subject`: the id of the user whose
    memories they are. `reference` must be aware.

    Some tens of microseconds, up to 15 ms when the text may hold a time.
    """
    spans = _names(text, people)
    bare = _bare(text, spans, subject)
    terms = _different(bare)
    asked = _asked(text, reference, zone)
    named = frozenset(name for _, _, name in spans)
    request = is_request(text)
    return Question(
        text=text,
        embed=bare if terms else text,
        terms=terms or _different(text),
        rare=_rare(bare),
        odd=_odd(bare),
        named=named,
        role=None if named else "user" if request else _role(text),
        asked=asked,
        only_time=asked is not None and set(lexemes(_without(text, asked.spans))) <= _HOLLOW,
        phrases=_phrases(bare),
        looks_back=_LOOKS_BACK.search(text) is not None,
        present=asked is None and asks_the_present(text),
        request=request,
        when=not request and asks_when(text),
    )


def unnamed(text: str, people: Iterable[str], subject: str | None = None) -> str:
    """Returns the text as `read` embeds it, without the names of speakers; the text itself where nothing is left."""
    return _bare(text, _names(text, people), subject) or text


def speaker_match(question: Question, speaker: str | None, role: str | None) -> float:
    """Returns 1 for a turn by the role asked for, NAMED for one by the speaker named, else 0; 0 for all when the
    question names two or nobody."""
    if question.named:
        return NAMED if len(question.named) == 1 and speaker in question.named else 0.0
    return float(question.role is not None and role == question.role)


def only_names(question: Question, said: Iterable[str]) -> bool:
    """Does the question ask for nothing but what these words (casefolded) name?"""
    named = {term for words in said for term in lexemes(words)}
    return bool(named) and set(lexemes(question.embed)) - named <= _HOLLOW


def entity_match(named: Collection[str], worth: Mapping[str, float], asked: int) -> float:
    """Returns 0..1: how much of the `asked` entities a memory names; `worth`: what naming each one counts, 0..1."""
    return min(1.0, sum(worth.get(name, 0.0) for name in named) / asked) if asked else 0.0


def rare_match(groups: Collection[tuple[str, ...]], terms: Collection[str], rarity: Mapping[str, float]) -> float:
    """Returns 0..1: how rare the rarest of these names, ids or words is that a text holds in full; `rarity` of each
    lexeme, 0..1."""
    whole = [group for group in groups if all(term in terms for term in group)]
    return max((rarity.get(term, 0.0) for group in whole for term in group), default=0.0)


def _different(text: str) -> tuple[str, ...]:
    """The different lexemes in order, as many as are kept of a text: a word of unspaced script alone can hold more."""
    return tuple(dict.fromkeys(lexemes(text)))[:MAX_TERMS]


def _names(text: str, people: Iterable[str]) -> list[tuple[int, int, str]]:
    """Spans of speakers' names with the name as stored; a full name before its first word, none overlapping."""
    found: list[tuple[int, int, str]] = []
    taken = bytearray(len(text))
    forms = sorted(((form, name) for name in people for form in _forms(name)), key=lambda pair: -len(pair[0]))
    for form, name in forms:
        for match in re.finditer(rf"(?<!\w){re.escape(form)}(?:['\u2019]s)?(?!\w)", text, re.IGNORECASE):
            clear = match.group()[0].isupper() or not _ordinary(form)
            start, end = match.span()
            if clear and not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                found.append((start, end, name))
    return found


def _subjects(text: str, subject: str | None) -> list[tuple[int, int]]:
    """Spans where the user is named whose memories these are, when the id is a name (alice, alice.smith@example.com)
    and the question asks for more than that. All of them are about the user, and few say the name: those would be
    first whatever is asked ("Where does Alice live?")."""
    words = _JOINTS.split((subject or "").split("@")[0])
    if not all(word.isalpha() and len(word) > 1 and not _ordinary(word) for word in words):
        return []
    spans = [(start, end) for start, end, _ in _names(text, (" ".join(words),)) if text[start].isupper()]
    return spans if set(lexemes(_without(text, spans))) - _HOLLOW else []


def _forms(name: str) -> set[str]:
    words = name.split()
    if not words or name.casefold() in _ROLES:
        return set()
    first = {words[0]} if len(words) > 1 and len(words[0]) > 2 and not _ordinary(words[0]) else set()
    return {name.strip()} | first


def _ordinary(word: str) -> bool:
    return is_common(word) or word.casefold() in CALENDAR


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return " ".join(text.split())


def _bare(text: str, names: Iterable[tuple[int, int, str]], subject: str | None) -> str:
    """The text without the names of speakers, or else of its subject; asking for work where it asks what somebody
    lives on, which has nothing to do with where they live."""
    bare = _without(text, [(start, end) for start, end, _ in names] or _subjects(text, subject))
    return _LIVING.sub(lambda found: "for work" if found[0][0] in "fF" else "do for work", bare)


def _rare(text: str) -> tuple[tuple[str, ...], ...]:
    """Lexemes of each id ("ZX-4471", "1777", but no year) and of each proper noun inside the sentence, each once."""
    found: dict[tuple[str, ...], None] = {}
    for count, match in enumerate(_TOKEN.finditer(text)):
        word = _POSSESSIVE.sub("", match.group())
        letters, digits = any(map(str.isalpha, word)), any(map(str.isdigit, word))
        counted = len(word) > 2 and not _YEAR.fullmatch(word)
        is_id = digits and (letters or "-" in word or counted) and not _ORDINAL.match(word)
        is_name = count > 0 and letters and word[0].isupper() and not _ordinary(word)
        if (is_id or is_name) and (terms := tuple(dict.fromkeys(lexemes(word)))):
            found[terms] = None
    return tuple(found)


def _odd(text: str) -> tuple[tuple[str, ...], ...]:
    """Lexemes of each word or number that is not of everyday language, each once."""
    words = (_POSSESSIVE.sub("", match.group()) for match in islice(_TOKEN.finditer(text), MAX_WORDS))
    odd = (word for word in words if len(word) > 2 and not _ordinary(word) and not _ORDINAL.match(word))
    return tuple(dict.fromkeys(terms for word in odd if (terms := tuple(dict.fromkeys(lexemes(word))))))


def _phrases(text: str) -> tuple[str, ...]:
    """Runs of up to four words that could be a name: a word of everyday language alone is none."""
    words = [_POSSESSIVE.sub("", match.group()) for match in _TOKEN.finditer(text)][:MAX_WORDS]
    found: dict[str, None] = {}
    for start in range(len(words)):
        if not _ordinary(words[start]):
            found[words[start]] = None
        for end in range(start + 2, min(start + LONGEST_NAME, len(words)) + 1):
            if not (_ordinary(words[start]) and _ordinary(words[end - 1])):
                found[" ".join(words[start:end])] = None
    return tuple(found)


def _role(text: str) -> Role | None:
    if _OF_THE_ASSISTANT.search(text):
        return "assistant"
    return "user" if _OF_THE_USER.search(text) else None


def _asked(text: str, reference: datetime, zone: ZoneInfo) -> Asked | None:
    """The time that a question asks for, None without one."""
    dated = _YEAR.search(text) is not None
    # "the last Friday of June 2019" is no Friday of this year
    found = window(_RELATIVE.sub(" ", text) if dated else text, reference, zone)
    if found is None or found == (None, None):
        return None
    spans = tuple((mention.start, mention.end) for mention in find(text, reference, zone))
    any_year = not dated and _MONTH.search(text) is not None and _TELLS_YEAR.search(text) is None
    return Asked(found[0], found[1], any_year=any_year, spans=spans)
