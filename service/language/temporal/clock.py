"""Times of day.

"3pm", "15:30", "at 9", "noon", "half past 3", "this morning", "last night", "tomorrow evening" (with its day).
A bare hour is weak: it needs a day or a range beside it. Without am or pm, 1 to 6 o'clock is the afternoon and
7 to 12 the morning, unless the part of the day says otherwise.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from service.language.temporal import calendar, words
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import Rule, TimeContext, TimePiece
from service.language.temporal.words import DAYPART

_CLOCK_OPENER = re.compile(
    r"(?:\b(?:at|by|before|after|from|to|until|till|through|around|about|since|between|and|or|starts|starting|begins"
    r"|is|today|tonight|tomorrow|on)|@|-|–|,)\s*$"
)
_EVENING = re.compile(
    r"\b(?:dinner|supper|drinks|party|concert|movies?|pub|bedtime|tonight)\b"
)  # dinner at 7 is no breakfast
NIGHT_RUNS_TO = 5  # hours after midnight in which "tonight" is still the night that began the day before
_NIGHTS = ("night", "tonight", "tonite")
_NAMED = {"noon": (12, 0), "midday": (12, 0), "midnight": (0, 0)}


def afternoon(hour: int, minute: int, daypart: str | None = None) -> tuple[int, int]:
    """The hour of 0..23 that a bare hour of 1..12 means."""
    if daypart in _NIGHTS and 1 <= hour < NIGHT_RUNS_TO:
        return hour, minute
    if daypart in ("afternoon", "evening", "night", "tonight", "tonite"):
        return (hour % 12 + 12 if not (daypart.endswith("night") and hour == 12) else 0), minute
    if daypart == "morning":
        return hour % 12, minute
    return (hour + 12 if 1 <= hour <= 6 else hour), minute


def sharp(scene: TimeContext, piece: TimePiece, daypart: str | None) -> tuple[int, int]:
    """The hour and minute that a piece with a clock means beside a part of the day."""
    hour, minute = piece.clock or (0, 0)
    if piece.meridiem:
        return hour, minute
    if daypart is None and 5 <= hour <= 11 and _EVENING.search(scene.text):
        daypart = "evening"
    return afternoon(hour, minute, daypart)


def _time(match: re.Match[str], hour: int, minute: int, *, meridiem: bool, weak: bool = False) -> TimePiece:
    return TimePiece(*match.span(), "time", unit="minute", clock=(hour, minute), meridiem=meridiem, weak=weak)


def _digits(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "3pm", "3:30 p.m.", "15:30", "3:30"."""
    hour, minute, half = int(match.group(1)), int(match.group(2) or 0), match.group(3)
    if hour > 24 or minute > 59 or (half and hour > 23):
        return None
    if half:
        hour = hour if hour > 12 else hour % 12 + (12 if half[0] == "p" else 0)
        return _time(match, hour % 24, minute, meridiem=True)
    opened = bool(_CLOCK_OPENER.search(scene.before(match.start())))
    sure = hour >= 13 or hour == 0 or match.group(1).startswith("0")
    return _time(match, hour % 24, minute, meridiem=sure, weak=not opened)


def _dotted(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "from 9.30": weak, it may be any decimal number."""
    hour = int(match.group(1))
    return _time(match, hour % 24, int(match.group(2)), meridiem=hour > 12, weak=True) if hour <= 24 else None


def _bare(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "at 9", "from 9": weak until a day stands beside it."""
    hour = int(match.group(1))
    if not 1 <= hour <= 24:
        return None
    return _time(match, hour % 24, 0, meridiem=hour > 12, weak=True)


def _letter(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "at 9a", "at 10:15p"."""
    hour, minute = int(match.group(1)), int(match.group(2) or 0)
    if not 1 <= hour <= 12:
        return None
    return _time(match, hour % 12 + (12 if match.group(3) == "p" else 0), minute, meridiem=True)


def _spoken(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "six pm"."""
    hour = words.number(match.group(1)) % 12 + (12 if match.group(2)[0] == "p" else 0)
    return _time(match, hour, 0, meridiem=True)


def _oclock(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    return _time(match, words.number(match.group(1)) % 24, 0, meridiem=False)


def _past(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "half past 3", "quarter to six"."""
    minutes = {"half": 30, "quarter": 15}.get(match.group(1)) or words.number(match.group(1))
    hour = words.number(match.group(3))
    if not 1 <= hour <= 12 or minutes > 59:
        return None
    if match.group(2) == "to":
        hour, minutes = hour - 1 or 12, 60 - minutes
    return _time(match, hour, minutes, meridiem=False)


def _named(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    return _time(match, *_NAMED[match.group(1)], meridiem=True, weak=match.group(1) == "midnight")


def _this_part(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "this morning", "tonight", "late this evening", "last night"."""
    edge, which, part, tonight = match.groups()
    ago = 1 if which == "last" else 0
    if match.group().startswith("the"):
        ago = 2
    elif ago == 0 and scene.asked and (tonight or part == "night") and scene.now.hour < NIGHT_RUNS_TO:
        ago = 1 if scene.lean(match.start()) is Lean.PAST else 0  # asked at 2 at night
    begins, ends = hours(scene, scene.today - timedelta(days=ago), part or tonight)
    if edge and scene.asked:
        length = ends - begins
        late = timedelta(hours=2) if length > timedelta(hours=8) else length / 2  # "late last night" is from 10 pm on
        begins, ends = (begins, begins + length / 2) if edge == "early" else (begins + late, ends)
    elif edge == "early":
        ends = begins + timedelta(hours=2)
    elif edge == "late":
        begins = ends - timedelta(hours=2)
    return TimePiece(*match.span(), "range", begins, ends, unit="part", daypart=part or tonight)


def _parts_ago(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "two nights ago"."""
    day, part = scene.today - timedelta(days=words.number(match.group(1))), match.group(2)
    return TimePiece(*match.span(), "range", *hours(scene, day, part), unit="part", daypart=part)


def _part(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "morning", "in the evening", "at night": weak, it qualifies the day or hour beside it."""
    return TimePiece(*match.span(), "time", unit="part", daypart=match.group(1), weak=True)


def hours(scene: TimeContext, day: datetime, part: str) -> calendar.Interval:
    """The hours of a part of a day. The night of a note ends with the day's last second, as corpora have it; that of
    a question goes on to the next morning."""
    if scene.asked:
        first, last = words.ASKED_DAYPARTS[part]
        return day + timedelta(hours=first), day + timedelta(hours=last)
    first, last = words.DAYPARTS[part]
    ends = day + (timedelta(days=1) - calendar.LAST_SECOND if last == 24 else timedelta(hours=last))
    return day + timedelta(hours=first), ends


_WORD_HOUR = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
_HOUR = rf"(?:{_WORD_HOUR}|\d\d?\b)"
RULES = (
    Rule(rf"(?:(early|late)\s+)?(?:(this|last)\s+({DAYPART})|(tonight|tonite)\b)", _this_part),
    Rule(r"()()the\s+(night|evening)()\s+before\s+last\b", _this_part),
    Rule(rf"({words.NUMBER})\s+(morning|afternoon|evening|night)s?\s+ago\b", _parts_ago),
    Rule(rf"(half|quarter|five|ten|twenty|twenty-five)\s+(past|to)\s+({_HOUR})", _past),
    Rule(r"(?<![\d:.,$€£#])(\d\d?)(?:[:.](\d\d)(?::\d\d)?)?\s?([ap]\.?m\b\.?)", _digits),
    Rule(r"(?<![\d:.,$€£#])(\d\d?):(\d\d)(?::\d\d)?()\b(?![:.]\d|%)", _digits),
    Rule(rf"({_WORD_HOUR})\s*([ap]\.?m\b\.?)", _spoken),
    Rule(r"(?:(?<=\bat )|(?<=\bfrom )|(?<=\bbetween ))(\d\d?)\.([0-5]\d)\b(?!%|\.\d|\s*percent)", _dotted),
    Rule(rf"({_HOUR})\s*o['\u2019]?clock\b", _oclock),
    Rule(r"(?<=at )(\d\d?)(?::(\d\d))?([ap])\b", _letter),
    Rule(r"(noon|midday|midnight)\b", _named),
    Rule(rf"(?:in\s+the\s+|at\s+)?({DAYPART})(?!s)", _part),
    Rule(
        r"(?:(?<=\bat )|(?<=\bfrom )|(?<=\band )|(?<=\bto )|(?<=\bbetween )|(?<=\bbefore )|(?<=\bafter )|(?<=\bby )"
        r"|(?<=\buntil )|(?<=\baround )|(?<=[-–@]))(\d\d?)\b(?![\d:/%]|[.,]\d|-[a-z]"
        r"|\s*(?:st|nd|rd|th|percent|dollars)\b)",
        _bare,
    ),
    Rule(r"(?<=\bfrom )(\d\d?)\b(?=\s?(?:-|–|to\b))", _bare),
    Rule(r"(?<![\d/.:-])(\d\d?)(?=\s?(?:-|–|to)\s?\d\d?(?::\d\d)?\s?[ap]\.?m\b)", _bare),
)
