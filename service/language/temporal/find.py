"""Finds the times that a text names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo

from service.domain.temporal import Mention
from service.language.temporal import gate, modifiers, phrases, scan, tense
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import TimeContext, TimePiece

MAX_SENTENCES = 60  # read by our own rules, below 1 ms each
MAX_PIECES = 40  # in one sentence: a longer list of dates is data, not prose

_TAIL = re.compile(r"(?:(?<=[^\W\d_]{4})\.|[\s,])+$")  # the full stop behind "Friday", not that of "Oct." or "p.m."
_LOOKS_BACK = re.compile(
    r"\bsince\s+(?:the\s+)?(?:\w+\s+of\s+)?(?:the\s+)?$"
    r"|\bsince\s+(?:(?!(?:i|you|we|they|he|she|it|there|this|that|is|are|will|can|has|have)\b|\w+ing\b|\w+['\u2019](?!s\b))"
    r"[\w'\u2019-]+\s+){1,5}(?:in|on|at|around|during)\s+(?:the\s+)?(?:(?:early|mid|late)[\s-]+)?$"
)
_COUNTS_ON = re.compile(r"\b(?:day|week|fortnight|month|year)s?\s+from\s+(?:the\s+)?$")  # "two weeks from Friday"
_LOOKS_AHEAD = re.compile(
    r"\b(?:until|till|by|through|thru|starting|due|before|expires)\s+(?:on\s+)?(?:the\s+)?(?:\w+\s+of\s+)?$"
)


Leaning = Callable[[str], Callable[[int], Lean]]


def find(text: str, reference: datetime, zone: ZoneInfo) -> tuple[Mention, ...]:
    """The temporal expressions of a text in order, never overlapping; `reference` must be aware.

    Expressions are read on the wall clock of `zone` ("tomorrow at 3pm" is local), bounds are UTC and half-open;
    an instant begins and ends at the same moment. Dates without a year follow the tense.
    """
    return mentions(text, reference, zone, tense.leaning)


def mentions(
    text: str, reference: datetime, zone: ZoneInfo, leaning: Leaning, *, asked: bool = False
) -> tuple[Mention, ...]:
    """As `find`, with the direction of dates without a year decided by `leaning(sentence)(position)`; `asked`: the
    text is a question."""
    if reference.tzinfo is None:
        raise ValueError("the reference time must be aware")
    found: list[Mention] = []
    for count, (start, end) in enumerate(gate.sentences(text)):
        if count == MAX_SENTENCES:
            break
        raw, low = text[start:end], _lower(text[start:end])
        scene = TimeContext(low, raw, reference.astimezone(UTC), zone, _guided(low, leaning(low)), asked)
        found += [m for piece in own(scene) if (m := _mention(scene, piece, text, start))]
    return tuple(found)


def own(scene: TimeContext) -> list[TimePiece]:
    """What our own rules find in a sentence."""
    done: list[TimePiece] = []
    joined = phrases.join(scene, islice(scan.pieces(scene), MAX_PIECES))
    for piece in joined:
        try:
            read = modifiers.apply(scene, piece, _day_of(joined, piece))
        except (ValueError, OverflowError):
            continue
        if read:
            done.append(replace(read, start=max(read.start, done[-1].end if done else 0)))
    return done


def _day_of(pieces: list[TimePiece], piece: TimePiece) -> datetime | None:
    """The day named nearest before a piece, else the first one after it."""
    days = [p for p in pieces if p.kind == "date" and not p.weak and p.begins]
    before = [p for p in days if p.start < piece.start]
    chosen = before[-1:] or days[:1]
    return chosen[0].begins if chosen else None


def _guided(sentence: str, lean: Callable[[int], Lean]) -> Callable[[int], Lean]:
    """ "since" looks back ("since my operation in"); "until", "by", "due" look ahead unless a verb says otherwise."""

    @cache
    def at(position: int) -> Lean:
        before = sentence[max(0, position - 64) : position]
        if _LOOKS_BACK.search(before):
            return Lean.PAST
        if _COUNTS_ON.search(before):
            return Lean.FUTURE
        direction = lean(position)
        return Lean.FUTURE if direction is Lean.NONE and _LOOKS_AHEAD.search(before) else direction

    return at


def _lower(text: str) -> str:
    """Lower case with every offset kept (the lower case of some letters is longer), typographic spaces as blanks."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return lowered.replace("\u00a0", " ").replace("\u202f", " ")


def _mention(scene: TimeContext, piece: TimePiece, text: str, offset: int) -> Mention | None:
    start, end = offset + piece.start, offset + piece.end
    words = text[start:end]
    start, end = start + len(words) - len(words.lstrip()), end - len(words) + len(_TAIL.sub("", words))
    try:
        begins = scene.utc(piece.begins) if piece.begins else None
        ends = scene.utc(piece.ends) if piece.ends else None
    except (ValueError, OverflowError):
        return None
    if begins and ends and ends < begins:
        return None
    return Mention(text[start:end], start, end, piece.kind, begins, ends)
