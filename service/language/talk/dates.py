"""Dates beside the words that only mean a day when one knows when they were said: "last month (April 2023)"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from service.domain.temporal import Mention
from service.language import temporal
from service.language.temporal import recurring, tense
from service.language.temporal.calendar import Lean

ABSOLUTE = re.compile(
    r"\b(?:1[89]|20)\d\d\b|^(?:on )?the \d{1,2}(?:st|nd|rd|th)?\b|^\d{1,2}(?:st|nd|rd|th)$|\b\d{1,2}[./-]\d"
    r"|\b(?:\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:jan|feb|mar|apr|may|jun|jul|aug"
    r"|sep|oct|nov|dec)"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\.? \d)",
    re.IGNORECASE,
)
"""A year, or a day of a month: the expression is its own date, and which year a birthday is in nobody says."""

RESCHEDULED = re.compile(
    r"\b(?:moved|rescheduled|postponed|shifted|pushed|changed|delayed|brought forward)\b[^.]{0,40}\bto\b", re.IGNORECASE
)
"""Past tense about a day that may lie ahead: "moved to Friday"."""

VAGUE = re.compile(r"\b(?:few|couple|several|some|past|recent|coming|last minute)\b", re.IGNORECASE)
"""What names no date: "a few years ago"."""

PARTLY = re.compile(r"(?:within|end|beginning|start|early|mid|middle|late)\b", re.IGNORECASE)
"""What names a part of a time, or a time up to then."""

GOES_ON = re.compile(r"\.?\s+(?:of\b|\d{1,2}\b(?!:))|\s*['\u2019]\d\d\b")
"""What follows belongs to the expression: "the spring of my first year", "Fri. 5 June"."""

LONE_DAY = re.compile(r"(?:on )?(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)(?:day)?s?\.?", re.IGNORECASE)
BARE_DAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b", re.IGNORECASE)
LAST_OR_NEXT = re.compile(r"\b(?:last|next|this|past|coming)\b", re.IGNORECASE)
SEASON = re.compile(r"\b(?:spring|summer|autumn|fall|winter)s?\b", re.IGNORECASE)
"""A season of every year, unless it says of which: "in winter we ski"."""

RELATIVE_UNIT = re.compile(r"\b(?P<unit>day|week|weekend|month|year|decade)s?\b", re.IGNORECASE)
ADDED = re.compile(
    r" \((?:around )?(?:\d{1,2}(?:\u2013\d{1,2})? )?(?:[A-Z][a-z]+ )?\d{4}"
    r"(?: to (?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{4})?\)"
)
"""What `with_dates` adds."""

DATED_KINDS = frozenset({"date", "datetime", "range"})
DAY = timedelta(days=1)


def dated(text: str, said_at: datetime, zone: ZoneInfo) -> str:
    """The text with the date in brackets behind each expression that has none of its own.

    Only points in time and ranges with an end get one; "every Monday", "for three years" and "at 9:30" get none, nor
    does what may come again where no verb or plan says which one is meant ("I'm there Monday to Thursday").
    """
    if not temporal.may_have_time(text):
        return text
    return with_dates(text, temporal.find(text, said_at, zone), zone)


def with_dates(text: str, mentions: Sequence[Mention], zone: ZoneInfo) -> str:
    """The text with a date behind each of the mentions found in it."""
    lean = tense.leaning(text.lower())
    rescheduled = RESCHEDULED.search(text) is not None
    several_days = sum(bool(LONE_DAY.fullmatch(mention.text)) for mention in mentions) > 1
    for mention in sorted(mentions, key=lambda each: each.start, reverse=True):
        date = _date(mention, zone)
        vague = VAGUE.search(mention.text) is not None or PARTLY.match(mention.text) is not None
        bound = GOES_ON.match(text, mention.end) is not None or several_days
        vague = vague or (SEASON.search(mention.text) is not None and not LAST_OR_NEXT.search(mention.text))
        bare_day = rescheduled and BARE_DAY.search(mention.text) and not LAST_OR_NEXT.search(mention.text)
        unsure = recurring.may_recur(mention.text) and lean(mention.start) is Lean.NONE
        if date is None or vague or bound or bare_day or unsure or text[mention.end :].lstrip().startswith("("):
            continue
        end = mention.start + len(text[mention.start : mention.end].rstrip(" .,;:!?"))
        text = f"{text[:end]} ({date}){text[end:]}"
    return text


def without_dates(text: str) -> str:
    """The text with blanks in the place of the dates that were added, so that no expression is read twice."""
    return ADDED.sub(lambda found: " " * len(found.group()), text)


def _date(mention: Mention, zone: ZoneInfo) -> str | None:
    """The date of a mention, as exact as its words; None where they name it themselves or it has none."""
    begins, ends = mention.begins_at, mention.ends_at
    if mention.kind not in DATED_KINDS or begins is None or ends is None or ABSOLUTE.search(mention.text):
        return None
    begins, ends = begins.astimezone(zone), ends.astimezone(zone)
    unit = RELATIVE_UNIT.search(mention.text)
    if unit and ("ago" in mention.text.lower() or mention.text.lower().startswith("in ")):
        match unit["unit"].lower():
            case "year" | "decade":
                return f"{begins:%Y}"
            case "month":
                return f"{begins:%B %Y}"
            case "week" | "weekend":
                return f"around {_day(begins)}"
    return _interval(begins, ends - DAY if ends - begins >= DAY else ends)


def _interval(first: datetime, last: datetime) -> str:
    """An interval by its first and last day: a day, a month, a year, or from one to the other."""
    after = last + DAY
    if first.date() >= last.date():
        return _day(first)
    if (first.day, after.day) == (1, 1):
        if first.month == 1 and (after.year, after.month) == (first.year + 1, 1):
            return f"{first:%Y}"
        if (first.year, first.month) == (last.year, last.month):
            return f"{first:%B %Y}"
        return f"{first:%B %Y} to {last:%B %Y}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{_day(last)}"
    return f"{_day(first)} to {_day(last)}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"
