"""Parses a query into what its answer says, who says it and when.

Not all words of a query describe the answer. The name of somebody who takes part in the conversation says who speaks:
inside the text of a turn a name usually addresses the other participant ("Thanks, Ana!"), so it leaves the vector and
the terms and becomes a condition on the speaker. Rare names and ids must match exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Literal
from zoneinfo import ZoneInfo

from service.language import temporal
from service.language.common_words import CALENDAR, is_common
from service.language.lexemes import MAX_TERMS, lexemes, term_id
from service.language.questions import asks_the_present, asks_when, is_request
from service.runtime.resources import Resources

Role = Literal["user", "assistant"]

MAX_NAME_WORDS: Final = 4
MAX_WORDS: Final = 60
"""Number of words of a query that are searched for names."""

QUICK_SPEAKERS = 20
"""A query this short in a scope of so few speakers is parsed in some tens of microseconds, unless it may hold a time:
less than it takes to hand it to a thread."""


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_MONTH = re.compile(
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|\bmay\s+\d"
    r"|(?:\b(?:in|of|during|last|since|late|early|mid|this)[\s-]+|\d(?:st|nd|rd|th)?\s+(?:of\s+)?)may\b",
    re.IGNORECASE,
)
_IMPLIES_YEAR = re.compile(
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
_ASKS_ASSISTANT = re.compile(
    r"\b(?:(?:did|do|have|had|would|could) you|you (?:\w+ly )?(?:said|told|gave|mentioned|suggested|recommended|advised"
    r"|proposed|explained|wrote|listed)|according to you|your (?:\w+ )?(?:advice|answer|suggestions?|recommendations?"
    r"|list|reply))\b",
    re.IGNORECASE,
)
_ASKS_USER = re.compile(r"\b(?:[Ii]|[Mm]y|[Mm]ine|[Mm]e|[Mm]yself|[Ww]e|[Oo]ur|us)\b")  # but not the US
_BEFORE = r"before|previous(?:ly)?|former(?:ly)?|earlier|originally|used\s+to|once|old|past|first|ever|history"
_LOOKS_BACK = re.compile(rf"\b(?:{_BEFORE})\b", re.IGNORECASE)
_ABOUT_PAST = re.compile(rf"\b(?:{_BEFORE}|did|was|were|had|has|have)\b", re.IGNORECASE)
_LIVING = re.compile(
    r"\bfor (?:a|his|her|their|your|my) living\b|\b(?:make|earn)s? (?:a|his|her|their|your|my) living\b", re.IGNORECASE
)
_NAME_SEPARATORS: Final = re.compile(r"[ ._-]+")
_CONTENTLESS: Final = frozenset(
    lexemes("happen go do say tell talk mention discuss discussion conversation event thing something anything new")
    + lexemes("happened went said told memory memories note notes remember recall know there")
)


@dataclass(frozen=True, slots=True)
class QueryTime:
    """The time that a query asks for: half-open, UTC, either end may be None.

    `any_year`: the query named no year. `spans`: the places of the time in the query.
    """

    begins_at: datetime | None
    ends_at: datetime | None
    any_year: bool = False
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def middle(self) -> datetime | None:
        """Halfway between both ends; the only end if one is missing."""
        ends = [end for end in (self.begins_at, self.ends_at) if end is not None]
        return ends[0] + (ends[-1] - ends[0]) / 2 if ends else None


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query and what it asks for.

    - embedding_text: what is embedded as the query
    - terms: the distinct lexemes for BM25, in order, with their ids
    - exact_terms: the lexemes of each name or id, all of which must occur in a text
    - rare_terms: the same for every word that is not everyday language
    - speakers: those named in the query, as stored; role: whose words are asked for when nobody is named
    - time: the time asked for; only_time: nothing else is asked for
    - phrases: possible names of entities, as written
    - about_past: asks for what was, not for what is; looks_back: does so by more than the tense of a verb
    - about_present: asks how things stand, and for no other time
    - is_request: asks for something to be done; asks_when: asks for a time
    """

    text: str
    embedding_text: str
    terms: Mapping[str, int]
    exact_terms: tuple[tuple[str, ...], ...] = ()
    rare_terms: tuple[tuple[str, ...], ...] = ()
    speakers: frozenset[str] = frozenset()
    role: Role | None = None
    time: QueryTime | None = None
    only_time: bool = False
    phrases: tuple[str, ...] = ()
    about_past: bool = False
    looks_back: bool = False
    about_present: bool = False
    is_request: bool = False
    asks_when: bool = False


async def parse_off_loop(
    text: str, reference: datetime, timezone: str, speakers: Sequence[str], user_id: str | None, res: Resources
) -> ParsedQuery:
    """Parses the query, in a thread when it may take more than a millisecond."""
    zone = ZoneInfo(timezone)
    if len(speakers) > QUICK_SPEAKERS:
        return await res.rules.run(parse, text, reference, zone, speakers, user_id)
    return await res.rules.run_if_long(len(text), parse, text, reference, zone, speakers, user_id)


def parse(
    text: str, reference: datetime, zone: ZoneInfo, speakers: Iterable[str] = (), user_id: str | None = None
) -> ParsedQuery:
    """Returns the parsed query. `speakers`: those of the scope, as stored; `user_id`: whose memories are searched.
    `reference` must be aware.

    Takes some tens of microseconds, up to 15 ms when the text may hold a time.
    """
    spans = _names(text, speakers)
    bare = _bare(text, spans, user_id)
    terms = _distinct(bare)
    time = _time(text, reference, zone)
    named = frozenset(name for _, _, name in spans)
    request = is_request(text)
    return ParsedQuery(
        text=text,
        embedding_text=bare if terms else text,
        terms=terms or _distinct(text),
        exact_terms=_exact_terms(bare),
        rare_terms=_rare_terms(bare),
        speakers=named,
        role=None if named else "user" if request else _role(text),
        time=time,
        only_time=time is not None and set(lexemes(_without(text, time.spans))) <= _CONTENTLESS,
        phrases=name_phrases(bare),
        about_past=_ABOUT_PAST.search(text) is not None,
        looks_back=_LOOKS_BACK.search(text) is not None,
        about_present=time is None and asks_the_present(text),
        is_request=request,
        asks_when=not request and asks_when(text),
    )


def without_names(text: str, speakers: Iterable[str], user_id: str | None = None) -> str:
    """Returns the text as `parse` embeds it, without the names of speakers; the text itself if nothing is left."""
    return _bare(text, _names(text, speakers), user_id) or text


def only_names(query: ParsedQuery, names: Iterable[str]) -> bool:
    """Returns whether the query asks for nothing but what these names (casefolded) denote."""
    named = {term for words in names for term in lexemes(words)}
    return bool(named) and set(lexemes(query.embedding_text)) - named <= _CONTENTLESS


def _distinct(text: str) -> dict[str, int]:
    """The distinct lexemes in order with their ids, as many as are stored of a text: one word of an unspaced script may
    hold more."""
    return {term: term_id(term) for term in islice(dict.fromkeys(lexemes(text)), MAX_TERMS)}


def _names(text: str, speakers: Iterable[str]) -> list[tuple[int, int, str]]:
    """Spans of speakers' names with the name as stored; a full name before its first word, none overlapping."""
    spans: list[tuple[int, int, str]] = []
    taken = bytearray(len(text))
    forms = sorted(((form, name) for name in speakers for form in _forms(name)), key=lambda pair: -len(pair[0]))
    for form, name in forms:
        for match in re.finditer(rf"(?<!\w){re.escape(form)}(?:['\u2019]s)?(?!\w)", text, re.IGNORECASE):
            clear = match.group()[0].isupper() or not _ordinary(form)
            start, end = match.span()
            if clear and not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                spans.append((start, end, name))
    return spans


def _user_names(text: str, user_id: str | None) -> list[tuple[int, int]]:
    """Spans that name the user whose memories are searched, when the id is a name (alice, alice.smith@example.com) and
    the query asks for more than that. All of the memories are about the user and few say the name: those few would
    come first in any question ("Where does Alice live?")."""
    words = _NAME_SEPARATORS.split((user_id or "").split("@")[0])
    if not all(word.isalpha() and len(word) > 1 and not _ordinary(word) for word in words):
        return []
    spans = [(start, end) for start, end, _ in _names(text, (" ".join(words),)) if text[start].isupper()]
    return spans if set(lexemes(_without(text, spans))) - _CONTENTLESS else []


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


def _bare(text: str, names: Iterable[tuple[int, int, str]], user_id: str | None) -> str:
    """The text without the names of speakers, or else of the user. "For a living" becomes "for work": it has nothing
    to do with where somebody lives."""
    bare = _without(text, [(start, end) for start, end, _ in names] or _user_names(text, user_id))
    return _LIVING.sub(lambda match: "for work" if match[0][0] in "fF" else "do for work", bare)


def _exact_terms(text: str) -> tuple[tuple[str, ...], ...]:
    """Lexemes of each id ("ZX-4471", "1777", but no year) and of each proper noun inside the sentence, each once."""
    groups: dict[tuple[str, ...], None] = {}
    for count, match in enumerate(_TOKEN.finditer(text)):
        word = _POSSESSIVE.sub("", match.group())
        letters, digits = any(map(str.isalpha, word)), any(map(str.isdigit, word))
        counted = len(word) > 2 and not _YEAR.fullmatch(word)
        is_id = digits and (letters or "-" in word or counted) and not _ORDINAL.match(word)
        is_name = count > 0 and letters and word[0].isupper() and not _ordinary(word)
        if (is_id or is_name) and (terms := tuple(dict.fromkeys(lexemes(word)))):
            groups[terms] = None
    return tuple(groups)


def _rare_terms(text: str) -> tuple[tuple[str, ...], ...]:
    """Lexemes of each word or number that is not everyday language, each once."""
    words = (_POSSESSIVE.sub("", match.group()) for match in islice(_TOKEN.finditer(text), MAX_WORDS))
    rare = (word for word in words if len(word) > 2 and not _ordinary(word) and not _ORDINAL.match(word))
    return tuple(dict.fromkeys(terms for word in rare if (terms := tuple(dict.fromkeys(lexemes(word))))))


def name_phrases(text: str) -> tuple[str, ...]:
    """Runs of up to four words that could be a name; a single everyday word is not one."""
    words = [_POSSESSIVE.sub("", match.group()) for match in _TOKEN.finditer(text)][:MAX_WORDS]
    ordinary, count = [_ordinary(word) for word in words], len(words)
    runs = ((start, end) for start in range(count) for end in range(start, min(start + MAX_NAME_WORDS, count)))
    named = (" ".join(words[start : end + 1]) for start, end in runs if not (ordinary[start] and ordinary[end]))
    return tuple(dict.fromkeys(named))


def _role(text: str) -> Role | None:
    if _ASKS_ASSISTANT.search(text):
        return "assistant"
    return "user" if _ASKS_USER.search(text) else None


def _time(text: str, reference: datetime, zone: ZoneInfo) -> QueryTime | None:
    dated = _YEAR.search(text) is not None
    # "the last Friday of June 2019" is not a Friday of this year
    bounds = temporal.window(_RELATIVE.sub(" ", text) if dated else text, reference, zone)
    if bounds is None or bounds == (None, None):
        return None
    spans = tuple((mention.start, mention.end) for mention in temporal.find(text, reference, zone))
    any_year = not dated and _MONTH.search(text) is not None and _IMPLIES_YEAR.search(text) is None
    return QueryTime(bounds[0], bounds[1], any_year=any_year, spans=spans)
