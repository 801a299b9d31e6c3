""" "Since", "until", "by", "end of" and "week of", applied to the time that follows them.

Ends are meant as people mean them: "until Friday", "by March 3" and "through May" take in the whole of it;
"before Friday" stops where it starts, and so does "until next week". "After 2012" starts when 2012 is over; "after
June 15" starts with that day. "End of the month" is its second half, "end of the day" its last second.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from service.language.temporal import calendar, clock, words
from service.language.temporal.calendar import DAY, WEEK, Interval, Lean
from service.language.temporal.pieces import TimeContext, TimePiece

_WEEK_OF = re.compile(
    r"(?:the\s+)?\b(?P<unit>week(?:end)?|w/c|w/b)(?:\s+(?:of|starting|beginning|commencing|ending))?(?:\s+on)?\s+"
    r"(?:the\s+)?(?:of\s+)?$"
)
_PART = re.compile(
    r"(?:the\s+)?(?:(?:very\s+)?\b(?P<part>end|close|start|beginning|middle|first\s+half|second\s+half|latter\s+half)"
    r"\s+of\s+|\b(?P<edge>early|late|mid)(?:\s+in|\s+on|-)?\s*)(?:the\s+|this\s+)?$"
    r"|\b(?P<bare>end|start|beginning|middle)\s+$"
)
_WHICH = {"end": "end", "close": "end", "second": "end", "latter": "end", "late": "end", "middle": "mid", "mid": "mid"}
_RELATION = re.compile(
    r"\b(?:(?P<since>(?:ever\s+)?since|as\s+of|starting(?:\s+(?:from|on|in))?|beginning(?:\s+(?:on|in))?"
    r"|effective|on\s+or\s+after|no\s+earlier\s+than|not\s+before)"
    r"|(?P<origin>from)"
    r"|(?P<after>after|later\s+than|following|past|greater\s+than)"
    r"|(?P<before>before|prior\s+to|earlier\s+than|ahead\s+of|less\s+than)"
    r"|(?P<until>(?:up\s+)?until|till?|'til|(?<!came\s)(?<!come\s)(?<!went\s)(?<!got\s)(?:through|thru)|up\s+to|by"
    r"|no\s+later\s+than|on\s+or\s+before|not\s+later\s+than))\s+(?:the\s+)?$"
)
_NTH = re.compile(rf"(?:the\s+)?\b(?P<nth>{words.NTH})\s+(?P<unit>day|week|weekend|month)\s+(?:of|in)\s+(?:the\s+)?$")
_CLOSED = re.compile(r"\s*(?:$|[.,;:!?)]|(?:with|for|and|to|in)\b)")
_ONWARDS = re.compile(r"\s*,?\s*(?:onwards?\b|and\s+(?:later|onwards?|greater|after)\b|or\s+later\b|on\b(?!\s+\w))")


def apply(scene: TimeContext, piece: TimePiece, day: datetime | None) -> TimePiece | None:
    """The piece with its front words read in; None when it turns out to be no time at all.

    `day`: the day (local midnight) that the sentence names elsewhere, for a time of day that stands alone.
    """
    if piece.kind in ("duration", "set"):
        return None if piece.weak else piece
    if piece.kind == "time":
        return _place_undated(scene, piece, day)
    piece = _part_of(scene, _nth_of(scene, _week_of(scene, piece)))
    return None if piece.weak else _relate(scene, piece)


def _front(scene: TimeContext, piece: TimePiece, pattern: re.Pattern[str]) -> re.Match[str] | None:
    return pattern.search(scene.before(piece.start, 40))


def _whole(piece: TimePiece, front: re.Match[str], unit: str, interval: Interval) -> TimePiece:
    kind = "date" if unit == "day" else "range"
    return TimePiece(piece.start - len(front[0]), piece.end, kind, *interval, unit=unit)


def _week_of(scene: TimeContext, piece: TimePiece) -> TimePiece:
    front = _front(scene, piece, _WEEK_OF) if piece.kind == "date" else None
    if not front or not piece.begins:
        return piece
    unit = "weekend" if front["unit"] == "weekend" else "week"
    return _whole(piece, front, unit, calendar.period(piece.begins, unit))


def _nth_of(scene: TimeContext, piece: TimePiece) -> TimePiece:
    """ "the last week of May": the one with its last day; "the first week of May": that of its first Thursday."""
    front = _front(scene, piece, _NTH) if piece.unit in ("week", "month", "quarter", "year") else None
    if not front or not piece.begins or not piece.ends or (piece.unit == "week" and front["unit"] != "day"):
        return piece
    unit, index = front["unit"], words.nth(front["nth"]) - 1
    if index < 0:
        last = piece.ends - (4 if (piece.unit, unit) == ("year", "week") else 1) * DAY
        interval = calendar.period(last, unit)
        if interval[0] >= piece.ends:
            interval = calendar.period(last, unit, -1)
    elif unit == "week":
        interval = calendar.period(piece.begins + 3 * DAY + index * WEEK, unit)
    else:
        interval = calendar.period(piece.begins, unit, index)
    return _whole(piece, front, unit, interval)


def _part_of(scene: TimeContext, piece: TimePiece) -> TimePiece:
    front = _front(scene, piece, _PART)
    if not front or not piece.begins or not piece.ends or piece.kind == "datetime" or piece.unit == "part":
        return piece
    start = piece.start - len(front[0])
    which = _WHICH.get((front["part"] or front["edge"] or front["bare"]).split()[0], "start")
    if piece.unit == "day" and which == "end":
        moment = piece.ends - calendar.LAST_SECOND
        return TimePiece(start, piece.end, "datetime", moment, moment, unit="end")
    begins, ends = calendar.part((piece.begins, piece.ends), which, piece.unit)
    return replace(piece, start=start, kind="range", begins=begins, ends=ends, unit="part-of", weak=False)


def _relate(scene: TimeContext, piece: TimePiece) -> TimePiece:
    front = _front(scene, piece, _RELATION)
    relation, start = (front.lastgroup, piece.start - len(front[0])) if front else (None, piece.start)
    onwards = _ONWARDS.match(scene.text, piece.end)
    if onwards and piece.begins and relation in (None, "origin"):
        return replace(piece, start=start, end=onwards.end(), kind="range", ends=None)
    if piece.begins is None or relation is None:
        return piece
    opened, relative = replace(piece, start=start, kind="range"), scene.text[piece.start : piece.end]
    if relation == "since" or (relation == "origin" and _starts(scene, piece)):
        return replace(opened, ends=None)
    if relation == "before":
        return replace(opened, begins=None, ends=piece.ends if piece.unit in ("end", "part-of") else piece.begins)
    if relation == "after":
        return replace(opened, begins=piece.begins if piece.unit in ("day", "minute") else piece.ends, ends=None)
    if relation == "until":
        till = front and re.search(r"til", front["until"]) and piece.unit in ("week", "month", "quarter", "year")
        starts = till and re.match(r"(?:the\s+)?next\b", relative)
        return replace(opened, begins=None, ends=piece.begins if starts else piece.ends)
    return piece


def _starts(scene: TimeContext, piece: TimePiece) -> bool:
    """ "from next month" is a start when it lies ahead; "the report from last week" is where it comes from."""
    assert piece.begins
    return piece.begins > scene.now and scene.lean(piece.start) is not Lean.PAST and piece.kind != "datetime"


def _place_undated(scene: TimeContext, piece: TimePiece, day: datetime | None) -> TimePiece | None:
    """ "at 3pm" without a day next to it: that of the sentence, today, or the nearest that the tense calls for. A bare
    "at 3" is a time of day at the end of its clause, with a day or a plan around it."""
    lean = scene.lean(piece.start)
    if piece.clock is None:
        return None
    if piece.weak:
        at = scene.before(piece.start).endswith("at ") and _CLOSED.match(scene.text, piece.end)
        if not at or (day is None and lean is not Lean.FUTURE):
            return None
    hour, minute = clock.sharp(scene, piece, None)
    if day:
        moment = day.replace(hour=hour, minute=minute)
        return _relate(scene, replace(piece, kind="datetime", begins=moment, ends=moment))
    moment = scene.today.replace(hour=hour, minute=minute)
    if lean is Lean.FUTURE and moment < scene.now:
        moment += DAY
    elif lean is Lean.PAST and moment > scene.now:
        moment -= DAY
    return _relate(scene, replace(piece, begins=moment, ends=moment))
