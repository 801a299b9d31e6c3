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
from service.language.temporal.pieces import Rule, TimeMatch, TimePiece
from service.language.temporal.words import YEAR

# -- by name -----------------------------------------------------------------------------------------------------------

_MONTH_OPENER = re.compile(
    r"\b(?:in|on|by|for|of|from|since|until|till|through|thru|before|after|during|between|around|this|last|next|past"
    r"|previous|coming|early|late|mid|starting|beginning|as\s+of|every)[\s-]\s*$"
)
_SEASON_OPENER = re.compile(
    r"\byear['\u2019]s\s+$|\b(?:in|during|over|by|since|until|till|before|after|of|late|early)\s+(?:the\s+)?$"
)
_OF_YEAR = re.compile(r"\s+(?:of\s+)?(?:last|this|next)\s+year\b")
_OF_SOMETHING = re.compile(r"\s+of\s+(?!(?:the\s+)?(?:this|last|next)\b)")
_ON = re.compile(r"\b(?:week\s+of|commencing|w/[cb]|on|by|until|till|since|before|after|from|to)\s+(?:the\s+)?$")
_BETWEEN = re.compile(r"\bbetween\s+(?:the\s+)?$")
_MODAL = re.compile(r"\s+(?:\d|(?:not|be|have|i|we|you|they|he|she|it|also|take|need|get|or\s+may\s+not)\b)")
_DECADES = words.listed("twenties thirties forties fifties sixties seventies eighties nineties")


def _month_day(at: TimeMatch, month: int, day: int, year: int | None = None) -> TimePiece:
    return at.day(calendar.date(year, month, day)) if year else at.yearless(month, day)


def _day_month(at: TimeMatch, day: int, month: int, year: int | None = None, of: str | None = None) -> TimePiece | None:
    """Reads "5 May", "the fifth of May"; not "room 3 may be free"."""
    sure = of or year or not re.fullmatch(r"\d+\s+(?:may|mar|march)", at.scene.raw[at.start : at.end])
    return _month_day(at, month, day, year) if sure or at.is_alone or at.follows(_ON) else None


def _days(at: TimeMatch, month: int, day: int, day2: int, year: int | None = None) -> TimePiece | None:
    """Reads "June 3-5", "3 to 5 June 2017": both days belong to it."""
    if day2 <= day or (" and " in at.text and not at.follows(_BETWEEN)):
        return None
    now = at.scene.now
    begins = calendar.date(year, month, day) if year else calendar.yearless(now, month, day, at.lean)[0]
    return at.span(begins, begins.replace(day=day2) + DAY, "days")


def _month_of_year(at: TimeMatch, year: int, month: int, day: int | None = None) -> TimePiece:
    return at.day(calendar.date(year, month, day)) if day else at.months(year, month, "month")


def _bare_month(at: TimeMatch, month: int, which: int | None = None) -> TimePiece | None:
    """Reads "in May", "last March", "October budget"; short names and abbreviations are weak without a preposition."""
    now, written = at.scene.now, at.text.split()[-1]
    name = written.rstrip(".")
    if written == "may" and (at.precedes(_MODAL) or (which == 0 and at.scene.raw[at.end - 3] == "m")):
        return None
    if which == 0:
        return at.months(now.year, month, "month")
    if which:  # the running month left out
        begins, _ = calendar.period(now, "month", which)
        return at.whole(calendar.yearless(begins, month, None, Lean(which)), "month")
    clear = len(name) > 6 or name == "july" or (at.is_alone and name != "may") or at.follows(_MONTH_OPENER)
    return replace(at.yearless(month, None, "month"), weak=not clear)


def _quarter(at: TimeMatch, letter: str, index: str, year: int | None = None) -> TimePiece | None:
    """Reads "Q3 2024", "2024-Q3", "H1 2025"."""
    if letter == "q":
        return _share(at, int(index), "quarter", year) if year else at.yearless(int(index) * 3 - 2, None, "quarter")
    return _share(at, int(index), "half", year) if year else None


def _share(at: TimeMatch, nth: int, share: str, year: int | None = None, which: int | None = None) -> TimePiece | None:
    """Reads "the third quarter of 2018", "the first half of the year"."""
    months = calendar.MONTHS_OF[share]
    nth = 12 // months if nth < 0 else nth
    return at.months(year or at.scene.now.year + (which or 0), (nth - 1) * months + 1, share)


def _season(at: TimeMatch, season: int, which: int | None = None, year: int | None = None) -> TimePiece | None:
    """Reads "summer of 2019", "last winter", "in spring", "spring break 2023"; bare "spring" and "fall" are verbs."""
    if year:
        is_past = "'" in at.text and year > at.scene.now.year + 1  # nobody plans "the summer of '52"
        return at.months(year - 100 * is_past, season, "quarter")
    if at.precedes(_OF_SOMETHING):
        return None  # "the summer of that year", "of my first year"
    if which is None:
        return at.yearless(season, None, "quarter") if at.follows(_SEASON_OPENER) or at.precedes(_OF_YEAR) else None
    now = at.scene.now
    begins, _ = calendar.yearless(now, season, None, Lean.FUTURE, 3)
    running = begins <= now
    if which < 0 or (which == 0 and not running and begins.year > now.year):
        begins = calendar.add_months(begins, -12)
    elif which > 0 and running:
        begins = calendar.add_months(begins, 12)
    return at.whole((begins, calendar.add_months(begins, 3)), "quarter")


def _decade(at: TimeMatch, full: str | None = None, tens: str | None = None, name: str | None = None) -> TimePiece:
    """Reads "the 90s", "the 1980s", "the nineties"; "her 30s" is an age, so two digits need "the" or an apostrophe."""
    if full:
        return at.months(int(full) * 10, 1, "decade")
    return at.months(1900 + 10 * (int(tens) if tens else _DECADES.index(name or "") + 2), 1, "decade")


_TO, _IN = r"\s*(?:-|–|to|through|thru|until|till|and)\s*(?:the )?", r"(?:of |in )?"
BY_NAME = (
    Rule(rf"<month> <day>{_TO}<day2>(?!:)(?:,? <year>)?", _days),
    Rule(rf"(?:the )?<day>{_TO}<day2> (?:of )?<month>(?:,? <year>)?", _days),
    Rule(rf"<month>(?:,\s*|[\s-]+(?:the )?)<day>(?!:)(?:\s*,?\s*{_IN}<year>)?", _month_day),
    Rule(rf"(?:the )?<day>(?: day)?(?: (?P<of>of) |\s*-\s*| )<month>(?:\s*,?-?\s*{_IN}<year>)?", _day_month),
    Rule(rf"<month>(?:\s*[-,/]\s*| ){_IN}<year>", _month_of_year),
    Rule(r"<year>[\s,/-]+<month>(?:[\s/-]+<day>)?", _month_of_year),
    Rule(
        r"(?:(?:fy\s?)?<year>[\s-]?)?\b(?P<letter>[qh])(?P<index>[1-4])\b(?:(?:\s*,?\s*|-)(?:of )?(?:fy)?<year_>)?",
        _quarter,
    ),
    Rule(
        r"(?:the )?<nth> (?P<share>quarter|half) (?:of )?(?:(?:(?:the|<which>) )?year\b(?! \d)|(?:the year )?<year>)",
        _share,
    ),
    Rule(
        r"(?:\b<which> )?\b<season>(?: (?:holidays?|breaks?|vacations?|term|semester|season)\b)?"
        rf"(?:(?: |\s*,\s*){_IN}<year>)?",
        _season,
    ),
    Rule(
        r"(?:(?:the )?\b(?P<full>(?:1[89]|20)\d)0['\u2019]?s"
        r"|(?:the ['\u2019]?|['\u2019]|(?<=early\s)|(?<=late\s)|(?<=mid[\s-]))(?P<tens>[2-9])0['\u2019]?s"
        rf"|(?:the |(?<=early\s)|(?<=late\s)|(?<=mid[\s-]))(?P<name>{words.any_of(_DECADES)}))\b",
        _decade,
    ),
)
BARE_MONTH = Rule(r"(?:<which> )?<month>", _bare_month)

# -- by number ---------------------------------------------------------------------------------------------------------

_OPENER = re.compile(
    r"\b(?:in|on|by|at|for|of|to|from|since|until|till?|through|thru|before|after|during|over|between|around|about"
    r"|circa|this|last|next|early|late|mid|end|and|or|due:?|dated|date:|within|starting|beginning|the\s+year|every"
    r"|because\s+of|as\s+of|than|~|-|–)\s*(?:the\s+)?$"
)
_YEAR_OPENER = re.compile(
    r"\b(?:in|by|of|from|since|until|till|through|thru|before|after|during|between|around|circa|early|late|mid"
    r"|starting|beginning|year|as\s+of|up\s+to|back\s+in|than|prior\s+to|(?<!\w\s)for|class\s+of"
    r"|(?:in|of|from|since)\s+(?:19|20)\d\d,?\s+(?:and|or))[\s-]\s*(?:the\s+)?(?:year\s+)?$"
)
_COUNTED = re.compile(
    r"\s*(?:%|°|[.,:/]\d|-?(?:k|m|px|ms|mb|gb|kb|tb|kg|g|lbs?|km|cm|mm|mph|usd|eur|dollars?|euros?|pounds?|bucks?|x)\b)"
    r"|\s+(?!was\b|is\b|its\b|as\b|us\b|this\b|has\b|his\b|does\b)(?:[a-z]{2,}\s+)?(?:people|men|women|children|feet|miles"
    r"|times|rows|users|items|files|tokens|words|lines|steps|calories|cases|points|meters|requests|customers|hours"
    r"|minutes|seconds|days|weeks|months|years|records|entries|tickets|copies|units|pieces|employees|students)\b"
)
_VERSION = re.compile(r"\b(?:version|v\.?)\s*$")
_SHARE_OF = re.compile(r"\s*(?:of\b|cup|full\b|inch|\"|the\b|done\b|an?\b|majority)")
LATE, EARLY = 40, 12
"""A span from one of the late weeks to one of the early ones ends in the next year."""


def _iso(
    at: TimeMatch, y: str, m: str, d: str, mark: str = "-", time: str | None = None, offset: str | None = None
) -> TimePiece:
    if time is None:
        return at.day(calendar.date(int(y), int(m), int(d)))
    zoned = "" if offset is None else "+00:00" if offset == "z" else offset
    moment = datetime.fromisoformat(f"{y}-{m}-{d}T{time}{zoned}")
    return at.instant(at.scene.local(moment.astimezone(UTC)) if zoned else moment)


def _numeric(at: TimeMatch, m: str, mark: str, d: str, y: str) -> TimePiece | None:
    if mark == "." and at.follows(_VERSION):
        return None
    month, day = (int(d), int(m)) if int(m) > 12 or mark == "." else (int(m), int(d))
    year = calendar.full_year(int(y), at.scene.now.year)
    return at.day(calendar.date(year, month, day)) if 1900 <= year < 2100 else None


def _numeric_month(at: TimeMatch, m: str, y: str) -> TimePiece:
    return at.months(int(y), int(m), "month")


def _fraction(at: TimeMatch, m: str, d: str) -> TimePiece | None:
    """Reads "on 6/4": a date only after a preposition, or alone; "3/4 of the cake" and "24/7" are none."""
    if at.text in ("24/7", "9/11") or not (at.is_alone or at.follows(_OPENER)) or at.precedes(_SHARE_OF):
        return None
    month, day = int(m), int(d)
    return at.yearless(day, month) if month > 12 else at.yearless(month, day)


def _years(at: TimeMatch, year: int, year2: int) -> TimePiece | None:
    if not 1900 <= year < year2 < 2100:
        return None
    return at.span(calendar.date(year, 1), calendar.date(year2 + 1, 1), "years")


def _year(at: TimeMatch, spoken: int, said: str | None = None) -> TimePiece | None:
    """Reads "in 2021", "in nineteen ninety three": a year only after a preposition and before no counted thing."""
    if at.precedes(_COUNTED) or not 1500 <= spoken < 2100:
        return None
    return replace(at.months(spoken, 1, "year"), weak=not (said or at.follows(_YEAR_OPENER)))


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
    return at.whole((begins, ends), "week" if week == last else "weeks") if begins < ends else None


_SEPARATED = r"(?<![\d./-])(?:{})(?![\d/]|-\d|\.\d)"
_OF = r"(?:(?:(?: (?:of|in)|\s*[,/]|-)?\s*<year>)| (?:of )?(?:the )?<which> year\b)"
_WEEKS = r"<week>(?:(?:\s*(?:-|–|to|through|until|till|bis)\s*| and (?=week|kw))(?:week |kw\s*)?<week2>)?"
_NO_WEEK_OF = rf"(?! of (?!{YEAR}|the year|this|last|next))"
BY_NUMBER = (
    Rule(
        r"(?:<year_>[\s,/-]+(?:week|kw)\s*|(?:the )?(?:calendar[\s-]+)?weeks? (?:#|no\.?\s*|nr\.?\s*|number )?"
        rf"|(?<!\d\s)(?:kw|cw|wk)\.?\s?){_WEEKS}{_NO_WEEK_OF}{_OF}?",
        _weeks,
    ),
    Rule(
        _SEPARATED.format(
            r"(?P<y>\d{4})(?P<mark>[-/])(?P<m>\d\d)(?P=mark)(?P<d>\d\d)"
            r"(?:(?:t|,?\s)(?P<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?(?P<offset>z\b|[+-]\d\d:?\d\d)?)?"
        ),
        _iso,
    ),
    Rule(_SEPARATED.format(r"(?P<m>\d\d?)(?P<mark>[-/.])(?P<d>\d\d?)(?P=mark)(?P<y>\d{4}|(?<=/)\d\d)"), _numeric),
    Rule(r"(?P<y>20\d\d)(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])\b", _iso),
)
LATER = (
    Rule(_SEPARATED.format(r"(?P<y>(?:19|20)\d\d)[-/](?P<m>0[1-9]|1[0-2])"), _numeric_month),
    Rule(_SEPARATED.format(r"(?P<m>0?[1-9]|1[0-2])/(?P<y>(?:19|20)\d\d)"), _numeric_month),
    Rule(r"(?<!\d-)<year>\s*(?:-|–|~|to|until|through)\s*<year2>(?!-)", _years),
    Rule(r"(?<!\d-)(?P<said>(?:the )?\byear )?<spoken>(?![-/:.]?\d|\.\w)", _year),
    Rule(
        r"(?:(?<![\d./,$€£-])|(?<=/\d-)|(?<=/\d\d-))(?P<m>\d\d?)/(?P<d>\d\d?)(?![\d/%]|[.,]\d|-\d+(?![\d/]))", _fraction
    ),
)
