"""Dates for the words that only mean a day when one knows when they were said: "last month (April 2023)"."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from service.domain.temporal import TimeMention
from service.language import temporal
from service.language.temporal import holidays, tense, words
from service.language.temporal.calendar import DAY, LAST_SECOND, Lean
from service.language.temporal.validity import recurs

ABSOLUTE = re.compile(
    r"\b(?:1[5-9]|20)\d\d\b|^(?:on )?the \d{1,2}(?:st|nd|rd|th)?\b|^\d{1,2}(?:st|nd|rd|th)$|\b\d{1,2}[./-]\d"
    r"|\b(?:\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\.?,? \d)",
    re.IGNORECASE,
)
"""A year, or a day of a month: the expression is a date itself, and nobody says the year of a birthday."""

VAGUE = re.compile(
    r"\b(?:few|couple|several|some|past|recent|coming|last (?:minute|\w+ (?:day|week|month)s))\b"
    r"|^(?:within|end|beginning|start|middle|(?:the )?following)\b|^in\b.*\b(?:min|sec)"
    r"|\b(?:early|mid|late|(?:end|close|beginning|start|middle|half) of(?! (?:the )?day))\b"
    r"|^(?!.*\b(?:last|next|this)\b).*\b(?:spring|summer|autumn|fall|winter)s?\b",
    re.IGNORECASE,
)
"""Expressions that name no date ("a few years ago", "in winter"), or only a part of a time."""

RELATIVE_UNIT = re.compile(
    r"(?=in |.*\b(?:ago|back|from now)$).*?\b(?P<unit>day|week|weekend|month|year|decade)s?\b", re.IGNORECASE
)
ADDED = re.compile(
    r" \((?:around )?(?:\d{1,2}(?:\u2013\d{1,2})? )?(?:[A-Z][a-z]+ )?\d{4}"
    r"(?: to (?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{4})?\)"
)
"""The dates in brackets that `date_expressions` adds."""

LISTED = rf"(?: {words.any_of(words.DAYPARTS)})?[.|]*(?:\s*[,&/]|,?\s+(?:and|or|to|till|until))\s*"
NAME = r"[A-Z][a-z][\w'\u2019-]*"
NO_CALENDAR_NAME = rf"(?!(?i:{words.WEEKDAY}|{words.MONTH}))"
UNCERTAIN = re.compile(
    rf"(?i:\b(?:an?|the) \|?(?:{words.NTH} )?\|?{words.WEEKDAY}(?: {words.any_of(words.DAYPARTS)})?\|"
    rf"|\b(?:my|our|your|his|their) \|{words.WEEKDAY}"  # "my Monday meeting": of every week
    rf"|\bthe \|last {words.any_of(words.DAYPARTS)}\b|\|-\w"  # of several; "the day-to-day"
    rf"|\b{words.WEEKDAY}{LISTED}\|{words.WEEKDAY}|\|{words.WEEKDAY}{LISTED}{words.WEEKDAY}"  # "Mon, Wed": too
    r"|\b(?:week|fortnight)s? (?:on )?\||\| (?:week|fortnight)\b"  # "two weeks on Monday", "Saturday week"
    rf"|\bfrom (?:{words.WEEKDAY}|{words.MONTH}|q\d) to \|)"  # of a change
    rf"|(?:\w {NAME} \||\w \|{NO_CALENDAR_NAME}|[\"\u201c]\|){NAME}(?: {NAME})*\|"  # "on Ash Wednesday", "song Today"
    rf"|\|{NAME} {NO_CALENDAR_NAME}{NAME}|(?<!\b[Oo]n )\|{NAME}\| {NAME} {NAME}"  # "Friday Night", "Today Is Ours"
)
"""An expression, between bars, that other words give a date ("the first Friday at school"), or no certain one."""

NAMED_MONTH = re.compile(rf"(?P<which>(?:last|next|this) )?\b{words.MONTH}", re.IGNORECASE)
DATED_KINDS = frozenset({"date", "datetime", "range"})
CHARS_AROUND = 40
"""Characters around an expression that are looked at for what it means."""


def date_expressions(text: str, said_at: datetime, zone: ZoneInfo) -> str:
    """The text with a date in brackets after each expression that does not name one.

    Only points in time and ranges with an end get one; "every Monday", "for three years" and "at 9:30" get none, nor do
    recurring times where no verb or plan says which one is meant ("I'm there Monday to Thursday"), the day of which the
    text also has the plural ("Thursdays I'm at college, so no training on Thursday"), and what is UNCERTAIN.
    """
    lean = tense.leaning(text.lower())
    for mention in reversed(temporal.find(text, said_at, zone)):
        named, date = mention.text, _date(mention, said_at.astimezone(zone))
        direction, is_holiday = lean(mention.start), holidays.NAME.fullmatch(named.lower())
        unsure = recurs(named, direction) or (is_holiday and direction is Lean.NONE)
        start, end = mention.start, mention.start + len(named.rstrip(" .,;:!?"))
        around = f"{text[:start][-CHARS_AROUND:]}|{text[start:end]}|{text[end:][:CHARS_AROUND]}"
        uncertain = UNCERTAIN.search(around) and not holidays.NAME.search(named.lower())
        weekly = f"{named.lower()}s" in text.lower()
        if date and not (unsure or uncertain or weekly or VAGUE.search(named)):
            end += 2 * text.startswith(("'s", "\u2019s"), end)
            text = f"{text[:end]} ({date}){text[end:]}"
    return text


def without_dates(text: str) -> str:
    """The text with added dates blanked out, so that no expression is read twice."""
    return ADDED.sub(lambda match: " " * len(match.group()), text)


def as_said(text: str) -> str:
    """The text without added dates."""
    return ADDED.sub("", text)


def _date(mention: TimeMention, said_at: datetime) -> str | None:
    """The date of a mention, as exact as its words, without the month that they name; None where it says nothing new
    or there is none."""
    begins, ends = mention.begins_at, mention.ends_at
    if mention.kind not in DATED_KINDS or begins is None or ends is None or ABSOLUTE.search(mention.text):
        return None
    begins, ends = begins.astimezone(said_at.tzinfo), ends.astimezone(said_at.tzinfo)
    if begins.date() == said_at.date() and re.match(words.WEEKDAY, mention.text.lower()):
        return None  # "from Monday", said on a Monday: today, or in a week
    unit = RELATIVE_UNIT.match(mention.text)
    match unit and unit["unit"].lower():
        case "year" | "decade":
            return f"{begins:%Y}"
        case "month":
            return f"{begins:%B %Y}"
        case "week" | "weekend":
            return f"around {_day(begins)}"
    date = _interval(begins, ends - LAST_SECOND)
    named = NAMED_MONTH.search(mention.text)
    if named is None or date != f"{begins:%B %Y}":
        return date
    return f"{begins:%Y}" if named["which"] or begins.year != said_at.year else None


def _interval(first: datetime, last: datetime) -> str:
    """An interval by its first and last day: a day, a month, a year, or from one to the other."""
    after = last + DAY
    if first.date() >= last.date():
        return _day(first)
    same_month = (first.year, first.month) == (last.year, last.month)
    if (first.day, after.day) != (1, 1):
        return f"{first.day}–{_day(last)}" if same_month else f"{_day(first)} to {_day(last)}"
    if first.month == 1 and (after.year, after.month) == (first.year + 1, 1):
        return f"{first:%Y}"
    return f"{first:%B %Y}" if same_month else f"{first:%B %Y} to {last:%B %Y}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"
