"""Dates and years written in digits.

"2024-03-05", "3/4/2024" (month first, as en-US; day first when the first number is above 12 or the separator is a
dot), "2014-2018", "in 2021", "on 6/4", and years in words. Digits are more often no date: each rule says what must
stand around them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from service.language.temporal import calendar, words
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import Rule, TimeContext, TimePiece, instant, whole, yearless
from service.language.temporal.words import YEAR

_OPENER = re.compile(
    r"\b(?:in|on|by|at|for|of|to|from|since|until|till?|through|thru|before|after|during|over|between|around|about"
    r"|circa|this|last|next|early|late|mid|end|and|or|due:?|dated|date:|within|starting|beginning|the\s+year|every"
    r"|because\s+of|as\s+of|than|~|-|–)\s*(?:the\s+)?$"
)
_YEAR_OPENER = re.compile(
    r"\b(?:in|by|of|from|since|until|till|through|thru|before|after|during|between|around|circa|early|late|mid"
    r"|starting|beginning|year|as\s+of|up\s+to|back\s+in|than|prior\s+to|(?<!\w\s)for|class\s+of)[\s-]\s*(?:the\s+)?(?:year\s+)?$"
)
_COUNTED = re.compile(
    r"\s*(?:%|°|[.,:/]\d|-?(?:k|m|px|ms|mb|gb|kb|tb|kg|g|lbs?|km|cm|mm|mph|usd|eur|dollars?|euros?|pounds?|bucks?|x)\b)"
    r"|\s+(?!was\b|is\b|its\b|as\b|us\b|this\b|has\b|his\b|does\b)(?:[a-z]{2,}\s+)?(?:people|men|women|children|feet|miles"
    r"|times|rows|users|items|files|tokens|words|lines|steps|calories|cases|points|meters|requests|customers|hours"
    r"|minutes|seconds|days|weeks|months|years|records|entries|tickets|copies|units|pieces|employees|students)\b"
)
_VERSION = re.compile(r"\b(?:version|v\.?)\s*$")
_SEPARATED = r"(?<![\d./-])(?:{})(?![\d/]|-\d|\.\d)"


def _iso(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    year, month, day, hour, minute, second, offset = match.groups()
    begins = calendar.date(int(year), int(month), int(day))
    if not hour:
        return whole(match, calendar.day(begins), "day")
    moment = begins.replace(hour=int(hour), minute=int(minute), second=int(second or 0))
    if offset:
        zoned = "+00:00" if offset == "z" else offset
        return instant(match, scene.local(datetime.fromisoformat(f"{moment.isoformat()}{zoned}").astimezone(UTC)))
    return instant(match, moment)


def _iso_range(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "2024-01-01..2024-01-31", "2024-01-01/2024-01-31": both days belong to it."""
    first, last = (datetime.fromisoformat(day) for day in match.groups())
    return TimePiece(*match.span(), "range", first, last + timedelta(days=1), unit="days") if first <= last else None


def _numeric(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    first, mark, second, digits = match.groups()
    if mark == "." and _VERSION.search(scene.before(match.start())):
        return None
    month, day = int(first), int(second)
    if month > 12 or mark == ".":
        month, day = day, month
    year = int(digits) if len(digits) == 4 else words.short_year(digits, scene.now.year)
    return whole(match, calendar.day(calendar.date(year, month, day)), "day") if 1900 <= year < 2100 else None


def _iso_month(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    return whole(match, calendar.span_months(int(match.group(1)), int(match.group(2)), 1), "month")


def _month_of_year(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "04/2023"."""
    return whole(match, calendar.span_months(int(match.group(2)), int(match.group(1)), 1), "month")


def _fraction(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "on 6/4": a date only behind a preposition, or alone; "3/4 of the cake" and "24/7" are none."""
    alone = scene.text.strip(" .?!") == match.group()
    if match.group() in ("24/7", "9/11") or not (alone or _OPENER.search(scene.before(match.start()))):
        return None
    if re.match(r"\s*(?:of\b|cup|full\b|inch|\"|the\b|done\b|an?\b|majority)", scene.text[match.end() :]):
        return None
    month, day = int(match.group(1)), int(match.group(2))
    return yearless(scene, match, day, month) if month > 12 else yearless(scene, match, month, day)


def _years(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    first, last = int(match.group(1)), int(match.group(2))
    if not 1900 <= first < last < 2100:
        return None
    return TimePiece(*match.span(), "range", calendar.date(first, 1, 1), calendar.date(last + 1, 1, 1), unit="years")


def _year(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "in 2021", "since 2019": four digits are a year only behind a preposition and before no counted thing."""
    opened = match.group(1) is not None or _YEAR_OPENER.search(scene.before(match.start()))
    if _COUNTED.match(scene.text, match.end()) or not 1500 <= int(match.group(2)) < 2100:
        return None
    return whole(match, calendar.span_months(int(match.group(2)), 1, 12), "year", weak=not opened)


def _fraction_range(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "between 10/1-11/7", "from 6/4 to 6/9": both days belong to it; a plan is one that is not over."""
    if not _OPENER.search(scene.before(match.start())):
        return None
    first, last = ((int(match.group(i)), int(match.group(i + 1))) for i in (1, 3))
    begins, _ = calendar.yearless(scene.now, *first, scene.lean(match.start()))
    _, ends = calendar.yearless(scene.now, *last, scene.lean(match.start()))
    if scene.lean(match.start()) is Lean.PAST:
        ends = calendar.date(begins.year + (last < first), *last) + timedelta(days=1)
    else:
        begins = calendar.date((ends - timedelta(days=1)).year - (last < first), *first)
    return TimePiece(*match.span(), "range", begins, ends, unit="days")


def _spoken_year(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "two thousand and five", "nineteen ninety three", "twenty twenty-four": weak without a preposition."""
    year = words.spoken_year(match.group())
    opened = _YEAR_OPENER.search(scene.before(match.start()))
    if _COUNTED.match(scene.text, match.end()) or not 1500 <= year < 2100:
        return None
    return whole(match, calendar.span_months(year, 1, 12), "year", weak=not opened)


RULES = (
    Rule(r"(?<![\d./-])(\d{4}-\d\d-\d\d)\s?(?:\.{2,3}|/|--)\s?(\d{4}-\d\d-\d\d)(?![\d/-])", _iso_range),
    Rule(
        _SEPARATED.format(
            r"(\d{4})-(\d\d)-(\d\d)(?:(?:t|,?\s)(\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?\s?(z\b|[+-]\d\d:?\d\d)?)?"
        ),
        _iso,
    ),
    Rule(r"(?<![\d.-])(\d{4})/(\d\d?)/(\d\d?)()()()()(?![\d/-])", _iso),
    Rule(_SEPARATED.format(r"(\d\d?)(/)(\d\d?)/(\d{4}|\d\d)"), _numeric),
    Rule(_SEPARATED.format(r"(\d\d?)(-)(\d\d?)-(\d{4})"), _numeric),
    Rule(_SEPARATED.format(r"(\d\d?)(\.)(\d\d?)\.(\d{4})"), _numeric),
    Rule(r"(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])()()()()\b", _iso),
)
LATE = (
    Rule(_SEPARATED.format(r"((?:19|20)\d\d)[-/](0[1-9]|1[0-2])"), _iso_month),
    Rule(_SEPARATED.format(r"(0?[1-9]|1[0-2])/((?:19|20)\d\d)"), _month_of_year),
    Rule(rf"(?<!\d-)({YEAR})\s*(?:-|–|~|to|until|through)\s*({YEAR})(?!-)", _years),
    Rule(rf"(?<!\d-)((?:the\s+)?\byear\s+)?({YEAR})(?![-/:.]?\d|\.\w)", _year),
    Rule(words.SPOKEN_YEAR, _spoken_year),
    Rule(r"(?<![\d./,$€£-])(\d\d?)/(\d\d?)\s*(?:-|–|to|through|and)\s*(\d\d?)/(\d\d?)(?![\d/%])", _fraction_range),
    Rule(r"(?<![\d./,$€£-])(\d\d?)/(\d\d?)(?![\d/%]|[.,-]\d)", _fraction),
)
