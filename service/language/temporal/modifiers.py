""" "Since", "until", "by", "end of" and "week of", applied to the time that follows them.

Ends are meant as people mean them: "until Friday", "by March 3" and "through May" take in the whole of it;
"before Friday" stops where it starts, and so does "until next week". "After 2012" starts when 2012 is over; "after
June 15" starts with that day. "End of the month" is its second half, "end of the day" its last second.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from service.language.temporal import calendar, clock
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import TimeContext, TimePiece

_WEEK_OF = re.compile(
    r"(?:the\s+)?\b(?:week(?:end)?|w/c|w/b)(?:\s+(?:of|starting|beginning|commencing|ending))?(?:\s+on)?\s+(?:the\s+)?(?:of\s+)?$"
    r"|\bw/[cb]\s+$"
)
_PART = re.compile(
    r"(?:(?:the\s+)?(?:very\s+)?\b(end|close|start|beginning|middle|first\s+half|second\s+half|latter\s+half)\s+(?:of\s+)"
    r"|(?:the\s+)?\b(early|late|mid)(?:\s+in|\s+on|-)?\s*)(?:the\s+|this\s+)?$"
)
_ENDING = re.compile(r"(?:the\s+)?\b(end|start|beginning|middle)\s+(?:of\s+)?$")
_WHICH = {
    "end": "end",
    "close": "end",
    "second half": "end",
    "latter half": "end",
    "late": "end",
    "start": "start",
    "beginning": "start",
    "first half": "start",
    "early": "start",
    "middle": "mid",
    "mid": "mid",
}
_RELATION = re.compile(
    r"\b(?:(?P<since>(?:ever\s+)?since|as\s+of|starting(?:\s+(?:from|on|in))?|beginning(?:\s+(?:on|in))?"
    r"|effective|on\s+or\s+after|no\s+earlier\s+than|not\s+before)"
    r"|(?P<origin>from)"
    r"|(?P<after>after|later\s+than|following|past|greater\s+than)"
    r"|(?P<before>before|prior\s+to|earlier\s+than|ahead\s+of|less\s+than)"
    r"|(?P<until>(?:up\s+)?until|till?|'til|(?<!came\s)(?<!come\s)(?<!went\s)(?<!got\s)(?:through|thru)|up\s+to|by|no\s+later\s+than|on\s+or\s+before|not\s+later\s+than))"
    r"\s+(?:the\s+)?$"
)
_NTH = re.compile(
    r"(?:the\s+)?\b(first|second|third|fourth|fifth|last|1st|2nd|3rd|4th|5th)\s+(day|week|weekend|month)\s+(?:of|in)\s+(?:the\s+)?$"
)
_COUNT = {
    "first": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "1st": 0,
    "2nd": 1,
    "3rd": 2,
    "4th": 3,
    "5th": 4,
}
_CLOSED = re.compile(r"\s*(?:$|[.,;:!?)]|(?:with|for|and|to|in)\b)")
_NOW_UNTIL = re.compile(r"\b(?:between|from)\s+now\s+(?:and|until|till|to|through)\s+(?:the\s+)?$")
_ONWARDS = re.compile(r"\s*,?\s*(?:onwards?\b|and\s+(?:later|onwards?|greater|after)\b|or\s+later\b|on\b(?!\s+\w))")
_NO_START = re.compile(
    r"\b(?:drive|drove|run|ran|go|went|walk|walked|half|quarter|get|got|pass|passed|look|looking)\s+$"
)


def apply(scene: TimeContext, piece: TimePiece, day: datetime | None) -> TimePiece | None:
    """The piece with its front words read in; None when it turns out to be no time at all.

    `day`: the day (local midnight) that the sentence names elsewhere, for a time of day that stands alone.
    """
    if piece.kind in ("duration", "set"):
        return None if piece.weak else piece
    if piece.kind == "time":
        return _undated(scene, piece, day)
    piece = _part_of(scene, _nth_of(scene, _week_of(scene, piece)))
    return None if piece.weak else _related(scene, piece)


def _nth_of(scene: TimeContext, piece: TimePiece) -> TimePiece:
    """ "the last week of May": the one with its last day; "the first week of May": that of its first Thursday."""
    match = _NTH.search(scene.before(piece.start, 40))
    if not match or not piece.begins or not piece.ends or piece.unit not in ("week", "month", "quarter", "year"):
        return piece
    if piece.unit == "week" and match.group(2) != "day":
        return piece
    start, unit = piece.start - (match.end() - match.start()), match.group(2)
    if match.group(1) == "last":
        days = 4 if piece.unit == "year" and unit == "week" else 1
        interval = calendar.period(piece.ends - timedelta(days=days), unit)
        if unit == "weekend" and interval[0] >= piece.ends:
            interval = calendar.period(piece.ends - timedelta(days=days), unit, -1)
        return _within(piece, start, unit, interval)
    index = _COUNT[match.group(1)]
    if unit == "week":
        interval = calendar.period(piece.begins + timedelta(days=3 + 7 * index), unit)
        if interval[0] + timedelta(days=3) < piece.begins:
            interval = calendar.period(interval[1], unit)
        return _within(piece, start, unit, interval)
    return _within(piece, start, unit, calendar.period(piece.begins, unit, index))


def _within(piece: TimePiece, start: int, unit: str, interval: calendar.Interval) -> TimePiece:
    return TimePiece(start, piece.end, "date" if unit == "day" else "range", *interval, unit=unit)


def _week_of(scene: TimeContext, piece: TimePiece) -> TimePiece:
    match = _WEEK_OF.search(scene.before(piece.start, 32))
    if not match or piece.kind != "date" or not piece.begins:
        return piece
    start = piece.start - (match.end() - match.start())
    unit = "weekend" if "weekend" in match.group() else "week"
    return TimePiece(start, piece.end, "range", *calendar.period(piece.begins, unit), unit=unit)


def _part_of(scene: TimeContext, piece: TimePiece) -> TimePiece:
    match = _PART.search(scene.before(piece.start, 32)) or (
        _ENDING.search(scene.before(piece.start, 32)) if piece.unit != "minute" else None
    )
    if not match or not piece.begins or not piece.ends or piece.kind == "datetime" or piece.unit == "part":
        return piece
    start = piece.start - (match.end() - match.start())
    word = re.sub(r"\s+", " ", next(g for g in match.groups() if g))
    if piece.unit == "day" and _WHICH[word] == "end":
        moment = piece.ends - calendar.LAST_SECOND
        return TimePiece(start, piece.end, "datetime", moment, moment, unit="end")
    begins, ends = calendar.part((piece.begins, piece.ends), _WHICH[word], piece.unit)
    return replace(piece, start=start, kind="range", begins=begins, ends=ends, unit="part-of", weak=False)


def _related(scene: TimeContext, piece: TimePiece) -> TimePiece | None:
    running = _NOW_UNTIL.search(scene.before(piece.start, 32))
    if running and piece.ends and piece.ends > scene.now:
        start = piece.start - (running.end() - running.start())
        return replace(piece, start=start, kind="range", begins=scene.now)
    match = _RELATION.search(scene.before(piece.start, 32))
    onwards = _ONWARDS.match(scene.text, piece.end)
    if onwards and piece.begins and (not match or match.lastgroup == "origin"):
        start = piece.start - (match.end() - match.start()) if match else piece.start
        return replace(piece, start=start, end=onwards.end(), kind="range", ends=None)
    if not match or piece.begins is None:
        return piece
    start, word = piece.start - (match.end() - match.start()), match.group().strip()
    opened = replace(piece, start=start, kind="range")
    if match.lastgroup == "since" or (match.lastgroup == "origin" and _starts(scene, piece)):
        return replace(opened, ends=None)
    if match.lastgroup == "before":
        begins = piece.ends if piece.unit in ("end", "part-of") else piece.begins
        return replace(opened, begins=None, ends=begins)
    if match.lastgroup == "after":
        if word == "past" and _NO_START.search(scene.text[:start]):
            return piece
        begins = piece.begins if piece.unit in ("day", "minute") else piece.ends
        return replace(opened, begins=begins, ends=None)
    if match.lastgroup == "until":
        late = word.split()[-1] in ("until", "till", "til", "'til") and piece.unit in (
            "week",
            "month",
            "quarter",
            "year",
        )
        relative = late and scene.text[piece.start : piece.end].startswith(("next", "the next"))
        return replace(opened, begins=None, ends=piece.begins if relative else piece.ends)
    return piece


def _starts(scene: TimeContext, piece: TimePiece) -> bool:
    """ "from next month" is a start when it lies ahead; "the report from last week" is where it comes from."""
    assert piece.begins
    return piece.begins > scene.now and scene.lean(piece.start) is not Lean.PAST and piece.kind != "datetime"


def _meant(scene: TimeContext, piece: TimePiece, day: datetime | None, lean: Lean) -> bool:
    """Whether a bare "at 3" is a time of day: at the end of its clause, with a day or a plan around it."""
    at = scene.before(piece.start).endswith("at ") and _CLOSED.match(scene.text, piece.end)
    return bool(at) and (day is not None or lean is Lean.FUTURE)


def _undated(scene: TimeContext, piece: TimePiece, day: datetime | None) -> TimePiece | None:
    """ "at 3pm" without a day beside it: that of the sentence, today, or the nearest that the tense calls for."""
    lean = scene.lean(piece.start)
    if piece.clock is None or (piece.weak and not _meant(scene, piece, day, lean)):
        return None
    hour, minute = clock.sharp(scene, piece, None)
    if day:
        moment = day.replace(hour=hour, minute=minute)
        return _related(scene, replace(piece, kind="datetime", begins=moment, ends=moment))
    if not piece.meridiem and _NOW_UNTIL.search(scene.before(piece.start, 32)) and hour < 12 and hour <= scene.now.hour:
        hour += 12
    moment = scene.today.replace(hour=hour, minute=minute)
    if lean is Lean.FUTURE and moment < scene.now:
        moment += timedelta(days=1)
    elif lean is Lean.PAST and moment > scene.now:
        moment -= timedelta(days=1)
    return _related(scene, replace(piece, begins=moment, ends=moment))
