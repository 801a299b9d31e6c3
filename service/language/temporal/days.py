"""Days, weeks, months, quarters, seasons, years and decades by name and by number.

"March 5, 2024", "June 3-5", "2024-03-05", "3/4/2024" (month first, as en-US; day first when the first number is above
12 or the separator is a dot), "last March", "Q3 2024", "summer of 2019", "the 1990s", "KW 12", "in 2021". Weeks are
numbered as in ISO 8601. Digits are more often no date: each rule says what must stand around them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from service.language.temporal import calendar, words
from service.language.temporal.calendar import DAY, WEEK, Lean
from service.language.temporal.pieces import RuleTable, TimeMatch, TimePiece
from service.language.temporal.words import YEAR

RULES = RuleTable()

LATE, EARLY = 40, 12
"""A span from one of the late weeks to one of the early ones ends in the next year."""

_WEEKS = r"<week>(?:(?:\s*(?:-|–|to|through|until|till|bis)\s*| and (?=week|kw))(?:week |kw\s*)?<week2>)?"
_NO_WEEK_OF = rf"(?! of (?!{YEAR}|the year|this|last|next))"
_OF = r"(?:(?:(?: (?:of|in)|\s*[,/]|-)?\s*<year>)| (?:of )?(?:the )?<which> year\b)"


@RULES.reads(
    r"(?:<year_>[\s,/-]+(?:week|kw)\s*|(?:the )?(?:calendar[\s-]+)?weeks? (?:#|no\.?\s*|nr\.?\s*|number )?"
    rf"|(?<!\d\s)(?:kw|cw|wk)\.?\s?){_WEEKS}{_NO_WEEK_OF}{_OF}?"
)
def _weeks(
    at: TimeMatch, week: int, week2: int | None = None, year: int | None = None, which: int | None = None
) -> TimePiece | None:
    """Reads "week 12", "KW 51 bis 2". Of no year: a note means the running one, a question that looks back the last
    such week that has begun."""
    last, number = week2 or week, year or at.scene.now.isocalendar().year + (which or 0)
    if year is None and which is None and at.scene.asked and at.lean is Lean.PAST:
        number -= calendar.monday(number, week) > at.scene.now
    turns = week >= LATE and last <= EARLY
    begins, ends = calendar.monday(number, week), calendar.monday(number + turns, last) + WEEK
    return at.span(begins, ends, "week" if week == last else "weeks") if begins < ends else None


# -- days and months ---------------------------------------------------------------------------------------------------

_SEPARATED = r"(?<![\d./-])(?:{})(?![\d/]|-\d|\.\d)"
_TO, _IN = r"\s*(?:-|–|to|through|thru|until|till|and)\s*(?:the )?", r"(?:of |in )?"
_BETWEEN = re.compile(r"\bbetween\s+(?:the\s+)?$")
_VERSION = re.compile(r"\b(?:version|v\.?)\s*$")
_SHARE_OF = re.compile(r"\s*(?:of\b|cup|full\b|inch|\"|the\b|done\b|an?\b|majority)")
_MODAL = re.compile(r"\s+(?:\d|(?:not|be|have|i|we|you|they|he|she|it|also|take|need|get|or\s+may\s+not)\b)")


@RULES.reads(
    _SEPARATED.format(
        r"(?P<date>\d{4}(?P<mark>[-/])\d\d(?P=mark)\d\d)"
        r"(?:t|,?\s)(?P<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?(?P<offset>z\b|[+-]\d\d:?\d\d)?"
    )
)
def _timestamp(at: TimeMatch, date: str, mark: str, time: str, offset: str = "") -> TimePiece:
    moment = datetime.fromisoformat(f"{date.replace(mark, '-')}T{time}{offset.upper()}")
    return at.instant(at.scene.local(moment.astimezone(UTC)) if offset else moment)


@RULES.reads(
    rf"<month> <day>{_TO}<day2>(?!:)(?:,? <year>)?",
    rf"(?:the )?<day>{_TO}<day2> (?:of )?<month>(?:,? <year>)?",
)
def _days(at: TimeMatch, month: int, day: int, day2: int, year: int | None = None) -> TimePiece | None:
    """Reads "June 3-5", "3 to 5 June 2017": both days belong to it."""
    if day2 <= day or (" and " in at.text and not at.follows(_BETWEEN)):
        return None
    begins, _ = _date(at, month, day, year).bounds
    return at.span(begins, begins.replace(day=day2) + DAY, "days")


@RULES.reads(
    _SEPARATED.format(r"(?P<month>\d\d?)(?P<mark>[-/.])(?P<day>\d\d?)(?P=mark)(?P<year>(?:19|20)\d\d|(?<=/)\d\d)"),
    r"(?:(?<![\d./,$€£-])|(?<=/\d-)|(?<=/\d\d-))(?P<month>\d\d?)/(?P<day>\d\d?)(?![\d/%]|[.,]\d|-\d+(?![\d/]))",
)
def _figures(at: TimeMatch, month: int, day: int, year: int | None = None, mark: str = "/") -> TimePiece | None:
    """Reads "6/4/2026", "13.4.2026", "on 6/4"; "3/4 of the cake" and "24/7" are no dates."""
    if at.text in ("24/7", "9/11") or at.follows(_VERSION) or (year is None and at.precedes(_SHARE_OF)):
        return None
    date = _date(at, day, month, year) if month > 12 or mark == "." else _date(at, month, day, year)
    return replace(date, weak=year is None and not (at.is_alone or at.is_opened))


@RULES.reads(rf"(?:the )?<day>(?: day)?(?: (?P<of>of) |\s*-\s*| )<month>(?:\s*,?-?\s*{_IN}<year>)?")
def _day_month(at: TimeMatch, day: int, month: int, year: int | None = None, of: str | None = None) -> TimePiece | None:
    """Reads "5 May", "the fifth of May"; not "room 3 may be free"."""
    sure = of or year or not re.fullmatch(r"\d+\s+(?:may|mar|march)", at.raw)
    return _date(at, month, day, year) if sure or at.is_alone or at.is_opened else None


@RULES.reads(
    _SEPARATED.format(r"(?P<year>\d{4})(?P<mark>[-/])(?P<month>0[1-9]|1[0-2])(?:(?P=mark)(?P<day>\d\d))?"),
    r"(?P<year>20\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])\b",
    _SEPARATED.format(r"(?P<month>0?[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)"),
    rf"<month>(?:,\s*|[\s-]+(?:the )?)<day>(?!:)(?:\s*,?\s*{_IN}<year>)?",
    rf"<month>(?:\s*[-,/]\s*| ){_IN}<year>",
    r"<year>[\s,/-]+<month>(?:[\s/-]+<day>)?",
)
def _date(at: TimeMatch, month: int, day: int | None = None, year: int | None = None, mark: str = "") -> TimePiece:
    """Reads "May 5", "May 2024", "2024-05-05", "5/2024"."""
    if year is None:
        return at.yearless(month, day)
    return at.day(calendar.date(year, month, day)) if day else at.months(year, month, "month")


@RULES.reads(r"(?:<which> )?<month>")
def _bare_month(at: TimeMatch, month: int, which: int | None = None) -> TimePiece | None:
    """Reads "in May", "last March", "October budget"; short names and abbreviations are weak without a preposition."""
    now, written = at.scene.now, at.text.split()[-1]
    name = written.rstrip(".")
    if written == "may" and (at.precedes(_MODAL) or (which == 0 and at.raw[-3] == "m")):
        return None
    if which == 0:
        return at.months(now.year, month, "month")
    if which:  # the running month left out
        begins, _ = calendar.period(now, "month", which)
        return at.span(*calendar.yearless(begins, month, None, Lean(which)), "month")
    clear = len(name) > 6 or name == "july" or (at.is_alone and name != "may") or at.is_opened
    return replace(at.yearless(month, None, "month"), weak=not clear)


# -- quarters, seasons, years ------------------------------------------------------------------------------------------

_OF_YEAR = re.compile(r"\s+(?:of\s+)?(?:last|this|next)\s+year\b")
_OF_SOMETHING = re.compile(r"\s+of\s+(?!(?:the\s+)?(?:this|last|next)\b)")
_DECADES = words.listed("twenties thirties forties fifties sixties seventies eighties nineties")
_AGE_OF = r"(?:(?<=early\s)|(?<=late\s)|(?<=mid[\s-]))"
_COUNTED = re.compile(
    r"\s*(?:%|°|[.,:/]\d|-?(?:k|m|px|ms|mb|gb|kb|tb|kg|g|lbs?|km|cm|mm|mph|usd|eur|dollars?|euros?|pounds?|bucks?|x)\b)"
    r"|\s+(?!was\b|is\b|its\b|as\b|us\b|this\b|has\b|his\b|does\b)(?:[a-z]{2,}\s+)?(?:people|men|women|children|feet|miles"
    r"|times|rows|users|items|files|tokens|words|lines|steps|calories|cases|points|meters|requests|customers|hours"
    r"|minutes|seconds|days|weeks|months|years|records|entries|tickets|copies|units|pieces|employees|students)\b"
)


@RULES.reads(
    r"(?:(?:fy\s?)?<year>[\s-]?)?\b(?P<letter>[qh])(?P<index>[1-4])\b(?:(?:\s*,?\s*|-)(?:of )?(?:fy)?<year_>)?"
)
def _quarter(at: TimeMatch, letter: str, index: str, year: int | None = None) -> TimePiece | None:
    """Reads "Q3 2024", "2024-Q3", "H1 2025"."""
    unit = "quarter" if letter == "q" else "half"
    month = (int(index) - 1) * calendar.MONTHS_OF[unit] + 1
    if year:
        return at.months(year, month, unit)
    return at.yearless(month, None, unit) if letter == "q" else None


@RULES.reads(
    r"(?:\b<which> )?\b<season>(?: (?:holidays?|breaks?|vacations?|term|semester|season)\b)?"
    rf"(?:(?: |\s*,\s*){_IN}<year>)?"
)
def _season(at: TimeMatch, season: int, which: int | None = None, year: int | None = None) -> TimePiece | None:
    """Reads "summer of 2019", "last winter", "in spring", "spring break 2023"; bare "spring" and "fall" are verbs."""
    if year:
        is_past = "'" in at.text and year > at.scene.now.year + 1  # nobody plans "the summer of '52"
        return at.months(year - 100 * is_past, season, "quarter")
    if at.precedes(_OF_SOMETHING):
        return None  # "the summer of that year", "of my first year"
    if which is None:
        return at.yearless(season, None, "quarter") if at.is_opened or at.precedes(_OF_YEAR) else None
    now = at.scene.now
    begins, _ = calendar.yearless(now, season, None, Lean.FUTURE, 3)
    running = begins <= now
    if which < 0 or (which == 0 and not running and begins.year > now.year):
        begins = calendar.add_months(begins, -12)
    elif which > 0 and running:
        begins = calendar.add_months(begins, 12)
    return at.span(begins, calendar.add_months(begins, 3), "quarter")


@RULES.reads(
    r"(?:(?:the )?\b(?P<full>(?:1[89]|20)\d)0['\u2019]?s"
    rf"|(?:the ['\u2019]?|['\u2019]|{_AGE_OF})(?P<tens>[2-9])0['\u2019]?s"
    rf"|(?:the |{_AGE_OF})(?P<name>{words.any_of(_DECADES)}))\b"
)
def _decade(at: TimeMatch, full: str | None = None, tens: str | None = None, name: str | None = None) -> TimePiece:
    """Reads "the 90s", "the 1980s", "the nineties"; "her 30s" is an age, so two digits need "the" or an apostrophe."""
    if full:
        return at.months(int(full) * 10, 1, "decade")
    return at.months(1900 + 10 * (int(tens) if tens else _DECADES.index(name or "") + 2), 1, "decade")


@RULES.reads(r"(?<!\d-)<year>\s*(?:-|–|~|to|until|through)\s*<year2>(?!-)")
def _years(at: TimeMatch, year: int, year2: int) -> TimePiece | None:
    if not 1900 <= year < year2 < 2100:
        return None
    return at.span(calendar.date(year, 1), calendar.date(year2 + 1, 1), "years")


@RULES.reads(r"(?<!\d-)(?P<said>(?:the )?\byear )?<spoken>(?![-/:.]?\d|\.\w)")
def _year(at: TimeMatch, spoken: int, said: str | None = None) -> TimePiece | None:
    """Reads "in 2021", "in nineteen ninety three": a year only after a preposition and before no counted thing."""
    if at.precedes(_COUNTED) or not 1500 <= spoken < 2100:
        return None
    return replace(at.months(spoken, 1, "year"), weak=not (said or at.is_opened or at.is_linked))
