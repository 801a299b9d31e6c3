"""Finds the times that a text names: pieces by the rules, joined, with the words before them read in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo

from service.domain.temporal import TimeMention
from service.language import sentences
from service.language.temporal import (
    calendar,
    clock,
    days,
    holidays,
    joining,
    modifiers,
    relative,
    tense,
    words,
)
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import TimeContext, TimeMatch, TimePiece

MAX_SENTENCES = 60  # below 1 ms each
MAX_CHARS = 400  # the longest stretch that is read as one sentence
MAX_PIECES = 40  # in one sentence: a longer list of dates is data, not prose

_RULES = (
    *holidays.RULES,
    *relative.SETS,
    *days.BY_NUMBER,
    *days.BY_NAME,
    *days.LATER,
    *relative.RULES,
    *clock.RULES,
    *relative.DURATIONS,
    days.BARE_MONTH,
)
_SINGLE = tuple(re.compile(words.compile_slots(rule.pattern)) for rule in _RULES)


def _alternative(number: int, pattern: str) -> str:
    own_names = re.sub(r"[(][?]P(<|=)", rf"(?P\g<1>r{number}_", pattern)
    return f"(?P<r{number}>{own_names})"


# One pass finds the next place where any rule matches; a group per rule says which. The rule's own pattern is then
# matched again there, for its slots.
_ANY = re.compile(r"(?<![\w$€£])(?:" + "|".join(_alternative(i, each.pattern) for i, each in enumerate(_SINGLE)) + ")")
_TOKEN = re.compile(r"[a-z]+|\d+|['\u2019](?=\d)")
_TAIL = re.compile(r"(?:(?<=[^\W\d_]{4})\.|[\s,])+$")  # the full stop after "Friday", not that of "Oct." or "p.m."
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


def find(
    text: str, reference: datetime, zone: ZoneInfo, leaning: Leaning = tense.leaning, *, asked: bool = False
) -> tuple[TimeMention, ...]:
    """The temporal expressions of a text in order, never overlapping; `reference` must be aware.

    Expressions are read on the wall clock of `zone` ("tomorrow at 3pm" is local), bounds are UTC and half-open;
    an instant begins and ends at the same moment. Dates without a year follow the tense, or `leaning(sentence)`, which
    gives the direction at a position. `asked`: the text is a question.
    """
    if reference.tzinfo is None:
        raise ValueError("the reference time must be aware")
    mentions: list[TimeMention] = []
    for start, end in islice(_sentences_with_time(text), MAX_SENTENCES):
        raw, low = text[start:end], _lower(text[start:end])
        scene = TimeContext(low, raw, reference.astimezone(UTC), zone, _lean_by_cues(low, leaning(low)), asked)
        mentions += [mention for piece in _expressions(scene) if (mention := _mention(scene, piece, text, start))]
    return tuple(mentions)


def _sentences_with_time(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences that may have a time, cut at blanks where they are longer than MAX_CHARS; ascending."""
    for start, end in sentences.split(text):
        while start < end:
            blank = text.rfind(" ", start, start + MAX_CHARS) if end - start > MAX_CHARS else end
            cut = blank if blank > start else min(start + MAX_CHARS, end)
            if words.may_have_time(text[start:cut]):
                yield start, cut
            start = cut


def _expressions(scene: TimeContext) -> list[TimePiece]:
    done: list[TimePiece] = []
    joined = joining.join(scene, islice(pieces(scene), MAX_PIECES))
    named = [piece for piece in joined if piece.kind == "date" and not piece.weak]
    day = None
    for piece in joined:
        day = piece.begins if piece in named else day
        try:
            read = modifiers.apply(scene, piece, day or _day_just_after(piece, named))
        except (ValueError, OverflowError):
            continue
        if read:
            done.append(replace(read, start=max(read.start, done[-1].end if done else 0)))
    return done


def _day_just_after(time: TimePiece, named: list[TimePiece]) -> datetime | None:
    """The day of a time of day that stands before it: "at 7:30, see you on Saturday"."""
    return next((day.begins for day in named if 0 <= day.start - time.end < joining.MAX_GAP_CHARS), None)


def pieces(scene: TimeContext) -> Iterator[TimePiece]:
    """The pieces in order, none overlapping; the earlier rule wins where several match at one place."""
    end = 0
    for token in _TOKEN.finditer(scene.text):
        start = token.start()
        if start < end or (token[0].isalpha() and token[0] not in words.STARTS):
            continue
        match = _ANY.match(scene.text, start)
        piece = _read(scene, start, int((match.lastgroup or "r0")[1:])) if match else None
        if piece:
            yield piece
            end = piece.end


def _read(scene: TimeContext, position: int, first: int) -> TimePiece | None:
    for pattern, rule in zip(_SINGLE[first:], _RULES[first:], strict=True):
        match = pattern.match(scene.text, position)
        if not match:
            continue
        values = words.values(match)
        try:
            for name in ("year", "year2"):
                if isinstance(year := values.get(name), int):
                    values[name] = calendar.full_year(year, scene.now.year)
            piece = rule.read(TimeMatch(scene, *match.span()), **values)
        except (ValueError, OverflowError):  # February 30, the year 12000
            return None
        if piece:
            return piece
    return None


def _lean_by_cues(sentence: str, lean: Callable[[int], Lean]) -> Callable[[int], Lean]:
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


def _mention(scene: TimeContext, piece: TimePiece, text: str, offset: int) -> TimeMention | None:
    start, end = offset + piece.start, offset + piece.end
    phrase = text[start:end]
    start, end = start + len(phrase) - len(phrase.lstrip()), end - len(phrase) + len(_TAIL.sub("", phrase))
    try:
        begins = scene.utc(piece.begins) if piece.begins else None
        ends = scene.utc(piece.ends) if piece.ends else None
    except (ValueError, OverflowError):
        return None
    if begins and ends and ends < begins:
        return None
    return TimeMention(text[start:end], start, end, piece.kind, begins, ends)
