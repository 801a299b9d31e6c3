"""Days, months, quarters, seasons and decades by their calendar names.

"March 5, 2024", "the fifth of May", "June 3-5", "last March", "Q3 2024", "summer of 2019", "the 1990s".
"""

from __future__ import annotations

import re
from dataclasses import replace

from service.language.temporal import calendar, words
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import Rule, TimeContext, TimePiece, whole, yearless
from service.language.temporal.words import DAY, MONTH, YEAR

_MONTH_OPENER = re.compile(
    r"\b(?:in|on|by|for|of|from|since|until|till|through|thru|before|after|during|between|around|this|last|next|past"
    r"|previous|coming|early|late|mid|starting|beginning|as\s+of|every)[\s-]\s*$"
)
_SEASON_OPENER = re.compile(
    r"\byear['\u2019]s\s+$|\b(?:in|during|over|by|since|until|till|before|after|of|late|early)\s+(?:the\s+)?$"
)
_ON = re.compile(r"\b(?:week\s+of|commencing|w/[cb]|on|by|until|till|since|before|after|from|to)\s+(?:the\s+)?$")
_OF_YEAR = re.compile(r"\s+(?:of\s+)?(?:last|this|next)\s+year\b")
_TENS = ("", "", "twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties")
_SOME_YEAR = rf"(?:{YEAR}|'\d\d\b)"
_MODAL = re.compile(r"\s+(?:\d|(?:not|be|have|i|we|you|they|he|she|it|also|take|need|get|or\s+may\s+not)\b)")


def _month_first(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    month, day, year = words.month(match.group(1)), words.day(match.group(2)), match.group(3)
    return _dated(scene, match, month, day, year)


def _day_first(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    day, of, name, year = match.groups()
    sure = of or year or day[-2:] in ("st", "nd", "rd", "th") or name not in ("may", "march", "mar")
    alone = scene.text.strip(" .?!") == match.group().strip(" .")
    if not (sure or alone or _ON.search(scene.before(match.start()))):
        return None  # "room 3 may be free"
    return _dated(scene, match, words.month(name), words.day(day), year)


def _day_range(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "June 3-5", "3 to 5 June 2017": both days belong to it."""
    name, first, last, year = match.group(1), words.day(match.group(2)), words.day(match.group(3)), match.group(4)
    return _days(scene, match, words.month(name), (first, last), year)


def _day_range_first(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    first, last, name, year = words.day(match.group(1)), words.day(match.group(2)), match.group(3), match.group(4)
    return _days(scene, match, words.month(name), (first, last), year)


def _days(
    scene: TimeContext, match: re.Match[str], month: int, days: tuple[int, int], year: str | None
) -> TimePiece | None:
    first, last = days
    between = re.search(r"\bbetween\s+(?:the\s+)?$", scene.before(match.start()))
    if last <= first or (" and " in match.group() and not between):
        return None
    if year:
        begins = calendar.date(int(year), month, first)
    else:
        begins, _ = calendar.yearless(scene.now, month, first, scene.lean(match.start()))
    return TimePiece(*match.span(), "range", begins, calendar.day(begins.replace(day=last))[1], unit="days")


def _dated(scene: TimeContext, match: re.Match[str], month: int, day: int, year: str | None) -> TimePiece:
    if year is None:
        return yearless(scene, match, month, day)
    number = int(year) if len(year) == 4 else words.short_year(year[-2:], scene.now.year)
    return whole(match, calendar.day(calendar.date(number, month, day)), "day")


def _month_year(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    year = match.group(2)
    number = int(year) if len(year) == 4 else words.short_year(year[-2:], scene.now.year)
    return whole(match, calendar.span_months(number, words.month(match.group(1)), 1), "month")


def _year_month(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    year, month, day = int(match.group(1)), words.month(match.group(2)), match.group(3)
    if day:
        return whole(match, calendar.day(calendar.date(year, month, words.day(day))), "day")
    return whole(match, calendar.span_months(year, month, 1), "month")


def _bare_month(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "in May", "last March", "October budget"; short names and abbreviations are weak without a preposition."""
    which, name = match.group(1), match.group(2).rstrip(".")
    opened = _MONTH_OPENER.search(scene.before(match.start()))
    if name == "may" and (
        _MODAL.match(scene.text, match.end()) or (which == "this" and scene.raw[match.end() - 3] == "m")
    ):
        return None
    if which in ("last", "past", "previous"):
        return _month_beside(scene, match, name, Lean.PAST)
    if which in ("next", "coming", "upcoming"):
        return _month_beside(scene, match, name, Lean.FUTURE)
    if which == "this":
        return whole(match, calendar.span_months(scene.now.year, words.month(name), 1), "month")
    piece = yearless(scene, match, words.month(name), None)
    clear = len(name) > 6 or name == "july" or (scene.text.strip(" .?!") == name != "may")
    return piece if clear or opened else replace(piece, weak=True)


def _month_beside(scene: TimeContext, match: re.Match[str], name: str, lean: Lean) -> TimePiece:
    """The last or next such month, the running one left out."""
    begins, _ = calendar.period(scene.now, "month", 1 if lean is Lean.FUTURE else -1)
    return whole(match, calendar.yearless(begins, words.month(name), None, lean), "month")


def _quarter(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "Q3 2024", "2024-Q3", "H1", "the third quarter of 2018"."""
    before, letter, index, after = match.groups()
    months = 3 if letter == "q" else 6
    if months == 6 and (int(index) > 2 or not (before or after)):
        return None
    year = before or after
    first = (int(index) - 1) * months + 1
    if year is None:
        return yearless(scene, match, first, None, months)
    number = int(year) if len(year) == 4 else words.short_year(year[-2:], scene.now.year)
    return whole(match, calendar.span_months(number, first, months), "quarter" if months == 3 else "half")


def _ordinal_quarter(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    word, kind, of, year = match.groups()
    months = 3 if kind == "quarter" else 6
    index = 12 // months if word == "last" else words.ORDINALS.get(word) or int(word[0])
    if index * months > 12:
        return None
    offset = {"last": -1, "next": 1}.get(of or "", 0)
    number = int(year) if year else scene.now.year + offset
    return whole(match, calendar.span_months(number, (index - 1) * months + 1, months), kind)


_OF_SOMETHING = re.compile(r"\s+of\s+(?!(?:the\s+)?(?:this|last|next)\b)")


def _season(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "summer of 2019", "last winter", "in spring", "spring break 2023"; bare "spring" and "fall" are verbs."""
    which, name, year, short = match.groups()
    first = words.SEASONS[name]
    if short:
        year = str(scene.now.year // 100 * 100 + int(short) - (100 if int(short) > scene.now.year % 100 + 1 else 0))
    if not year and _OF_SOMETHING.match(scene.text, match.end()):
        return None  # "the summer of that year", "of my first year"
    if year:
        return whole(match, calendar.span_months(int(year), first, 3), "quarter")
    if which is None:
        opened = _SEASON_OPENER.search(scene.before(match.start())) or _OF_YEAR.match(scene.text, match.end())
        return yearless(scene, match, first, None, 3) if opened else None
    begins, _ = calendar.yearless(scene.now, first, None, Lean.FUTURE, 3)
    running = begins <= scene.now
    if which in ("last", "past", "previous") or (which == "this" and not running and begins.year > scene.now.year):
        begins = calendar.add_months(begins, -12)
    elif which in ("next", "coming", "upcoming") and running:
        begins = calendar.add_months(begins, 12)
    return whole(match, (begins, calendar.add_months(begins, 3)), "quarter")


def _decade(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "the 90s", "the 1980s", "the nineties": in "her 30s" is an age, so two digits need "the" or an apostrophe."""
    full, tens, word = match.groups()
    digit = int(tens) if tens else _TENS.index(word) if word else 0
    return whole(match, calendar.span_months(int(full or 190 + digit) * 10, 1, 120), "decade")


def _century(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "the 19th century", of a question: a note that names one speaks of style or history."""
    first = int(match.group(1)) * 100 - 99
    return whole(match, calendar.span_months(first, 1, 1200), "century") if scene.asked else None


RULES = (
    Rule(
        rf"({MONTH})\s+({DAY})\s*(?:-|–|to|through|thru|until|till|and)\s*(?:the\s+)?({DAY})(?!:)(?:,?\s+({YEAR}))?",
        _day_range,
    ),
    Rule(
        rf"(?:the\s+)?({DAY})\s*(?:-|–|to|through|thru|until|till|and)\s*(?:the\s+)?({DAY})\s+(?:of\s+)?({MONTH})"
        rf"(?:,?\s+({YEAR}))?",
        _day_range_first,
    ),
    Rule(rf"({MONTH})[\s-]+(?:the\s+)?({DAY})(?!:)(?:\s*,?\s*(?:of\s+|in\s+)?({_SOME_YEAR}))?", _month_first),
    Rule(rf"({MONTH}),\s*({DAY})(?!:)(?:\s*,?\s*({YEAR}))?", _month_first),
    Rule(
        rf"(?:the\s+)?({DAY})(?:\s+day)?(?:\s+(of)\s+|\s*-\s*|\s+)({MONTH})"
        rf"(?:\s*,?-?\s*(?:of\s+|in\s+)?({_SOME_YEAR}))?",
        _day_first,
    ),
    Rule(rf"({MONTH})(?:\s*,\s*|\s*[-/]\s*|\s+)(?:of\s+|in\s+)?({_SOME_YEAR})", _month_year),
    Rule(rf"({YEAR})[\s,/-]+({MONTH})(?:[\s/-]+({DAY}))?", _year_month),
    Rule(
        rf"(?:(?:fy\s?)?({YEAR})[\s-]?)?\b([qh])([1-4])\b(?:(?:\s*,?\s*|-)(?:of\s+)?(?:fy)?({_SOME_YEAR}))?", _quarter
    ),
    Rule(
        rf"(?:the\s+)?(first|second|third|fourth|1st|2nd|3rd|4th|last)\s+(quarter|half)\s+(?:of\s+)?"
        rf"(?:(?:(?:the|this|(last|next))\s+)?year\b(?!\s+\d)|(?:the\s+year\s+)?({YEAR}))",
        _ordinal_quarter,
    ),
    Rule(
        rf"(?:\b(last|past|previous|next|coming|upcoming|this)\s+)?\b(spring|summer|autumn|fall|winter)\b"
        rf"(?:\s+(?:holidays?|breaks?|vacations?|term|semester|season)\b)?(?:(?:\s+|\s*,\s*)(?:of\s+|in\s+)?(?:({YEAR})|['\u2019](\d\d)\b))?",
        _season,
    ),
    Rule(
        rf"(?:(?:the\s+)?\b((?:1[89]|20)\d)0['\u2019]?s"
        r"|(?:the\s+['\u2019]?|['\u2019]|(?<=early )|(?<=late )|(?<=mid[ -]))([2-9])0['\u2019]?s"
        rf"|(?:the\s+|(?<=early )|(?<=late )|(?<=mid[ -]))({'|'.join(_TENS[2:])}))\b",
        _decade,
    ),
    Rule(r"(?:the\s+)?(1[5-9]|20|21)(?:st|th)[\s-]century\b", _century),
)
LATE = (Rule(rf"(?:(last|past|previous|next|coming|upcoming|this)\s+)?({MONTH})", _bare_month),)
