"""Recurring times and durations.

Sets ("every Monday", "twice a week", "on Sundays") and durations ("for two weeks") name no point in time: their
pieces have no bounds.
"""

from __future__ import annotations

import re

from service.language.temporal import words
from service.language.temporal.pieces import Rule, TimeContext, TimePiece
from service.language.temporal.words import HALF, MONTH, NUMBER, UNIT, WEEKDAY

_COUNTING = re.compile(r"\s+(?:from|before|after|starting|beginning)\b")
_IDLE = re.compile(r"\b(?:for|in|takes?|took|lasts?|lasted|within|about|only|spent|over|another)\s+$")


def _set(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    return TimePiece(*match.span(), "set", unit="none")


def _duration(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "three weeks", "half an hour"; "a day", "one day", "a second" only behind "for", "in", "takes" ..."""
    vague = match.group(1) in ("a", "an", "one") and not (
        _IDLE.search(scene.before(match.start())) or _COUNTING.match(scene.text, match.end())
    )
    return None if vague else TimePiece(*match.span(), "duration", unit="none", amount=_amount(match))


def _amount(match: re.Match[str]) -> tuple[float, str]:
    count = 0.5 if re.match(HALF, match.group(1)) else float(words.number(match.group(1)))
    return count, words.unit(match.group(2))


def length(text: str) -> tuple[float, str] | None:
    """(count, unit) of a duration in words, None when it is none of ours."""
    match = re.fullmatch(_DURATION, text.lower().strip())
    return _amount(match) if match else None


_CLOCK = r"[\d:.]+ ?(?:am|pm|h|o'clock)?"
_FULL_DAY, _FULL_MONTH = rf"(?:{'|'.join(words.WEEKDAYS)})", rf"(?:{'|'.join(words.MONTHS)})"
_FROM, _TO = r"(?:(?:from|between|on|in|until|till|by|since) )?", r" ?(?:to|and|until|till|through|[-–]) ?"
_BARE_POINT = re.compile(rf"{_FROM}(?:{_CLOCK}|{_FULL_DAY})", re.IGNORECASE)
_BARE_SPAN = re.compile(
    rf"{_FROM}(?:{_CLOCK}{_TO}{_CLOCK}|{_FULL_DAY}{_TO}{_FULL_DAY}|{_FULL_MONTH}(?:{_TO}{_FULL_MONTH})?)"
    r"|.*\b(?:first|last|start|beginning|middle|end)\b.* of (?:the|each|every) (?:week|month|quarter|year)",
    re.IGNORECASE,
)


def may_recur(told: str) -> bool:
    """Whether a time may be that of every day, week or year, for all that its words say: "Friday", "from 12 to 1"."""
    return _BARE_POINT.fullmatch(told) is not None or spans(told)


def spans(told: str) -> bool:
    """Whether a time that may come again is no single day: "Monday to Friday", "12 to 1", "January"."""
    return _BARE_SPAN.fullmatch(told) is not None


_DURATION = rf"({NUMBER}|{HALF})\s*({UNIT})"
_SPAN = (
    r"(?:day|weekday|weeknight|week|weekend|month|quarter|year|morning|afternoon|evening|night|hour|minute|fortnight"
    r"|spring|summer|autumn|winter)s?\b"
)
_MANY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends|weekdays|weeknights)"
RULES = (
    Rule(
        rf"(?:every|each)\s+(?:single\s+)?(?:(?:other|second|third|{NUMBER})\s+)?(?:{_SPAN}|{WEEKDAY}|{MONTH})"
        rf"(?:\s+(?:morning|afternoon|evening|night)\b)?",
        _set,
    ),
    Rule(rf"(?:once|twice|{NUMBER}\s+times|several\s+times)\s+(?:a|an|per|each|every)\s+{_SPAN}", _set),
    Rule(rf"(?:on\s+)?(?:{_MANY}|{WEEKDAY}\s+(?:mornings|afternoons|evenings|nights))\b", _set),
    Rule(
        rf"(?:on\s+)?(?:the\s+)?(?:first|second|third|fourth|last)\s+{WEEKDAY}\s+(?:of|in)\s+(?:the|each|every|a)\s+"
        r"(?:month|quarter|year)\b",
        _set,
    ),
    Rule(
        r"(?:bi-?weekly|bi-?monthly|fortnightly|hourly|nightly|daily|weekly|monthly|quarterly|yearly|annually)\b", _set
    ),
)
LATE = (Rule(_DURATION, _duration),)
