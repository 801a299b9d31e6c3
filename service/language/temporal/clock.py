"""Times of day.

"3pm", "15:30", "at 9", "noon", "half past 3", "this morning", "last night", "tomorrow evening" (with its day).
A bare hour is weak: it needs a day or a range next to it. Without am or pm, 1 to 6 o'clock is the afternoon and
7 to 12 the morning, unless the part of the day says otherwise.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from service.language.temporal import calendar, words
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import RuleTable, TimeContext, TimeMatch, TimePiece

NIGHT_RUNS_TO = 5  # hours after midnight in which "tonight" is still the night that began the day before

_OPENER = re.compile(
    r"(?:\b(?:at|by|before|after|from|to|until|till|through|around|about|since|between|and|or|starts|starting|begins"
    r"|is|today|tonight|tomorrow|on)|@|-|–|,)\s*$"
)
_BARE_OPENER = re.compile(r"(?:\b(?:at|from|and|to|between|before|after|by|until|around)\s|[-–@])$")
_DOTTED_OPENER, _AT = re.compile(r"\b(?:at|from|between)\s$"), re.compile(r"\bat\s$")
_TO_HALF = re.compile(r"\s?(?:-|–|to)\s?\d\d?(?::\d\d)?\s?[ap]\.?m\b")  # "3" of "3-5pm"
_EVENING = re.compile(r"\b(?:dinner|supper|drinks|party|concert|movies?|pub|bedtime|tonight)\b")  # dinner is at 19


def afternoon(hour: int, minute: int, part: str | None = None) -> tuple[int, int]:
    """The hour of 0..23 that a bare hour of 1..12 means."""
    if part == "night" and (hour == 12 or hour < NIGHT_RUNS_TO):
        return hour % 12, minute
    if part == "morning":
        return hour % 12, minute
    if part:
        return hour % 12 + 12, minute
    return (hour + 12 if 1 <= hour <= 6 else hour), minute


def sharp(scene: TimeContext, piece: TimePiece, part: str | None) -> tuple[int, int]:
    """The hour and minute that a piece with a clock means in a part of the day."""
    hour, minute = piece.clock or (0, 0)
    if piece.meridiem:
        return hour, minute
    if part is None and 5 <= hour <= 11 and _EVENING.search(scene.text):
        part = "evening"
    return afternoon(hour, minute, part)


def hours(scene: TimeContext, day: datetime, part: str) -> calendar.Interval:
    """The hours of a part of a day. The night of a note ends with the day's last second, as corpora have it; that of
    a question goes on to the next morning."""
    first, last = (words.ASKED_DAYPARTS if scene.asked else words.DAYPARTS)[part]
    ends = day + timedelta(hours=last)
    return day + timedelta(hours=first), ends - calendar.LAST_SECOND if last == 24 and not scene.asked else ends


def _time(at: TimeMatch, hour: int, minute: int, *, meridiem: bool, weak: bool = False) -> TimePiece:
    return TimePiece(at.start, at.end, "time", unit="minute", clock=(hour % 24, minute), meridiem=meridiem, weak=weak)


RULES = RuleTable()


@RULES.reads(
    r"(?:(?P<edge>early|late) )?"
    r"(?:(?P<when>this|last) <part>|(?P<when_>(?:tonight|tonite)\b|over\s?night(?=[?.!]*\s*$)))"
)
def _this_part(at: TimeMatch, when: str, edge: str | None = None, part: str = "night") -> TimePiece | None:
    """Reads "this morning", "tonight", "late this evening", "last night"; at the end of a question also "overnight"."""
    scene = at.scene
    if when.startswith("over") and not scene.asked:
        return None
    ago = 0 if when in ("this", "tonight", "tonite") else 1
    if ago == 0 and scene.asked and part == "night" and scene.now.hour < NIGHT_RUNS_TO and at.lean is Lean.PAST:
        ago = 1  # asked at 2 at night
    begins, ends = hours(scene, scene.today - ago * calendar.DAY, part)
    half = timedelta(hours=round((ends - begins) / timedelta(hours=1)) / 2)
    if edge == "early":
        ends = begins + half
    elif edge == "late":
        begins += min(half, timedelta(hours=2))
    return at.span(begins, ends, "part", daypart=part)


@RULES.reads(r"(?P<minutes>half|quarter|five|ten|twenty|twenty-five) (?P<side>past|to) <hour>\b")
def _past(at: TimeMatch, minutes: str, side: str, hour: int) -> TimePiece:
    """Reads "half past 3", "quarter to six"."""
    minute = {"half": 30, "quarter": 15, "twenty-five": 25}.get(minutes) or words.NUMBERS[minutes]
    if side == "to":
        hour, minute = hour - 1 or 12, 60 - minute
    return _time(at, hour, minute, meridiem=False)


@RULES.reads(r"(?<![\d:.,$€£#])<hour>(?:[:.]<minute>(?::\d\d)?)?\s?(?P<half>[ap]\.?m\b\.?|[ap]\b)")
def _read_meridiem(at: TimeMatch, hour: int, half: str, minute: int = 0) -> TimePiece | None:
    """Reads "3pm", "3:30 p.m.", "six pm", "at 9a"."""
    if hour > 23 or (len(half) == 1 and not at.follows(_AT)):
        return None
    return _time(at, hour if hour > 12 else hour % 12 + (12 if half[0] == "p" else 0), minute, meridiem=True)


@RULES.reads(r"(?<![\d:.,$€£#])<digits>(?P<mark>[:.])<minute>(?::\d\d)?\b(?![:.]\d|%|\s*percent)")
def _digits(at: TimeMatch, digits: int, mark: str, minute: int) -> TimePiece | None:
    """Reads "15:30", "3:30"; "from 9.30" is weak, it may be any decimal number."""
    if digits > 24 or (mark == "." and not at.follows(_DOTTED_OPENER)):
        return None
    sure = digits >= 13 or digits == 0 or at.text[0] == "0"
    return _time(at, digits, minute, meridiem=sure, weak=mark == "." or not at.follows(_OPENER))


@RULES.reads(r"<hour>\s*o['\u2019]?clock\b")
def _oclock(at: TimeMatch, hour: int) -> TimePiece:
    return _time(at, hour, 0, meridiem=False)


@RULES.reads(r"(?P<name>noon|midday|midnight)\b")
def _read_name(at: TimeMatch, name: str) -> TimePiece:
    return _time(at, 0 if name == "midnight" else 12, 0, meridiem=True, weak=name == "midnight")


@RULES.reads(r"(?:in the |at )?<part>(?!s)")
def _part(at: TimeMatch, part: str) -> TimePiece:
    """Reads "morning", "in the evening", "at night": weak, it qualifies the day or hour next to it."""
    return TimePiece(at.start, at.end, "time", unit="part", daypart=part, weak=True)


@RULES.reads(r"<digits>\b(?![\d:/%]|[.,]\d|-[a-z]|\s*(?:st|nd|rd|th|percent|dollars)\b)")
def _bare(at: TimeMatch, digits: int) -> TimePiece | None:
    """Reads "at 9", "from 9", "3-5pm": weak until a day comes with it."""
    if not 1 <= digits <= 24 or not (at.follows(_BARE_OPENER) or at.precedes(_TO_HALF)):
        return None
    return _time(at, digits, 0, meridiem=digits > 12, weak=True)
