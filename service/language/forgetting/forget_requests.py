"""Requests to forget in what a user says: "Please forget that I have a cat", "Bitte speichere meine Adresse nicht".

A model of words (request_head.py) says whether a sentence asks the service to forget something or not to keep it, and
which of its words say what. What is quoted or pasted is never a request. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from service.language import sentences
from service.language.forgetting import request_head
from service.language.forgetting.request_head import POSSIBLE, Sort
from service.language.talk.passages import passages

SURE, SURE_WITHOUT_OBJECT, LIKELY = 0.5, 2.0, 0.0
"""Log odds from which a sentence is a request, also where it names no object, and from which it may be one."""

MOST_CHARS: Final = 500
"""A longer sentence states something and is not an order."""

_SPEAKS: Final = re.compile(r"[^\W\d_a-z][\w.'-]*: |.*[:,] [\"\u201c\u201e\u00ab\u2018']")
"""Somebody else's words: "Bob: forget it", "She said: 'Forget it.'"."""

_MINE: Final = r"(?:my|meine?[nr]?|mon|ma|mes|mis?|mijn) (?:[\w-]+ ){0,2}[\w-]+"
_TWO: Final = re.compile(rf"({_MINE}) (?:and|und|et|y|e|en) ({_MINE})", re.IGNORECASE)

_CLAUSE: Final = re.compile(r"[^;\s][^;]*;?")

_QUOTE: Final = "\"'\u201c\u2018\u00ab>`"
_GAP: Final = 20
"""The number of characters before a sentence that are searched for a quotation mark or a colon."""


@dataclass(frozen=True, slots=True)
class ForgetWish:
    """A half-open span of a message with the log odds that it asks to forget, and the words that say what: a statement
    ("that I have a cat"), everything about something, a thing ("named": if it is known; "unsure": it may not be asked
    for now), or "" for the last words. `has_lead`: these stand in the sentence before, which is part of the span."""

    start: int
    end: int
    odds: float
    query: str
    sort: Sort
    has_lead: bool = False

    @property
    def is_sure(self) -> bool:
        return self.sort != "unsure" and self.odds >= (SURE if self.query else SURE_WITHOUT_OBJECT)


def find_possible(text: str) -> list[ForgetWish]:
    """The sentences of a message that may ask to forget, by their words; one that names two things, for each. Before
    one that names no object stands the sentence that may name it."""
    wishes: list[ForgetWish] = []
    before: tuple[int, int] | None = None
    for start, end in own_sentences(text):
        if _is_quoted(text, start, end):
            before = None
            continue
        odds, query, sort = request_head.read(text[start:end], POSSIBLE)
        if odds >= POSSIBLE:
            if before and not query and before not in ((wish.start, wish.end) for wish in wishes):
                wishes.append(ForgetWish(before[0], before[1], *request_head.read(text[slice(*before)])))
            wishes += [ForgetWish(start, end, odds, each, sort) for each in _objects(query, sort)]
        before = (start, end)
    return wishes


def _objects(query: str, sort: Sort) -> Sequence[str]:
    """The objects of a plain order: "my address and my salary" are two."""
    both = _TWO.fullmatch(query) if sort == "named" else None
    return both.groups() if both else [query]


def choose_likely(text: str, candidates: Sequence[ForgetWish]) -> list[ForgetWish]:
    """The requests among them, in order. A sentence that names no object takes that of the one before it: "I don't like
    that my address is stored. Get rid of it.", "Wipe my address. I don't want it to come up." """
    wishes: list[ForgetWish] = []
    before: ForgetWish | None = None
    for wish in candidates:
        follows = before is not None and not text[before.end : wish.start].strip()
        is_part = before in wishes or wish.odds >= LIKELY
        if before is not None and follows and before.query and is_part and not wish.query:
            wishes = [wish for wish in wishes if wish.end != before.end]
            wish = replace(before, end=wish.end, odds=max(before.odds, wish.odds), has_lead=True)
        if wish.odds >= LIKELY or wish.sort == "named":
            wishes.append(wish)
        before = wish
    return wishes


def blank_out(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with the spans blanked out: requests, which are not facts, and what they refer to."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def own_sentences(text: str) -> Iterator[tuple[int, int]]:
    """The sentences that are the sender's own words, and what stands on either side of a semicolon in them."""
    for part in passages(text):
        if part.label is None and part.role == "user":
            for start, end in sentences.split(text[part.start : part.end]):
                for clause in _CLAUSE.finditer(text, part.start + start, part.start + end):
                    yield clause.span()


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a sentence is quoted, or too long for an order."""
    before = text[max(0, start - _GAP) : start].rstrip()
    quoted = text[start] in _QUOTE or before.endswith((":", "\u201c", '"', "'"))
    return quoted or end - start > MOST_CHARS or _SPEAKS.match(text, start, end) is not None
