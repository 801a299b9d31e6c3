"""The Microsoft recogniser, for sentences in which our own rules leave words of time unread.

Second step only: a call takes 2 to 4 ms and its rules have gaps and bugs, so every result passes a filter, and any
exception means "nothing found".
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

from service.language.temporal import calendar, recogniser_model
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import TimeContext, TimePiece

_turn = threading.Lock()  # loading takes a second, and nobody promises that parsing is safe in two threads
_KINDS = {
    "date": "date",
    "daterange": "range",
    "datetime": "datetime",
    "datetimerange": "range",
    "time": "time",
    "timerange": "range",
    "duration": "duration",
    "set": "set",
}
# Left over by our rules and worth a second look; a plain "day" or "year" is not.
_WORTH = re.compile(
    r"\b(?:week|day|month|quarter)\s+\d|\b(?:first|second|third|fourth|last|\d(?:st|nd|rd|th))\s+(?:day|week|weekend|month"
    r"|mon|tues|wednes|thurs|fri|satur|sun)|\b(?:days?|weeks?|months?|years?|hours?|minutes?|mins?)\s+(?:after|before"
    r"|since|from|later|earlier|ago)\b|\bbusiness\s+days?|\bworking\s+days?|\bcentury\b|\bo['\u2019]?clock\b|\b(?:half|quarter)\s"
    r"(?:past|to|after)\b|\bdecades?\b|\bthousand\b|\bhundred\b|\bfortnight|\b20\d{6}\b|\b(?:day|week|month"
    r"|year)\s+(?:of|before|after|prior)\b|\b(?:next|last|past|this|previous|coming|following)\s+\w+\s*(?:day|week|month"
    r"|year|minute|hour|decade|century)|\b(?:january|february|march|april|june|july|august|september|october"
    r"|november|december)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\blater\s+in\b|\bearly\s+in\b|\bpresent\s+time\b"
)
# Two expressions of ours side by side, or a spoken hour beside one: together they may mean something else.
_NEIGHBOURS = re.compile(
    r"\x00[\s,.]*(?:(?:on|at|in|of|the)\s+)*\x00(?<!\x00\x00)|\x00\s+at\s+(?:one|two|three|four|five|six|seven|eight|nine"
    r"|ten|eleven|twelve)\b"
)
# Its work doubles with every "two weeks ago" of a sentence (20 of them: 22 s, 28: 10 GB) and grows with the square of
# the numbers (36 dates: 0.7 s).
MAX_UNITS = 8
MAX_NUMBERS = 24
_UNIT = re.compile(
    r"(?:century|centurie|decade|year|quarter|month|week|day|fortnight|weekend|hour|minute|second"
    r"|morning|afternoon|evening|night)s?\b"
    r"|\b(?:today|tomorrow|yesterday|tonight)\b|\d[ymwd]\b"
)
_NUMBER = re.compile(r"\d+")
_HOLIDAY = re.compile(
    r"\b(?:christmas|xmas|easter|thanksgiving|halloween|new\s+year|valentine|eid|ramadan|hanukkah|diwali|passover"
    r"|independence\s+day|labor\s+day|memorial\s+day|earth\s+day|mother['\u2019]?s\s+day|father['\u2019]?s\s+day"
    r"|boxing\s+day|good\s+friday|black\s+friday|groundhog\s+day|veterans\s+day|april\s+fool|st\.?\s+patrick|lunar\s+new)"
)
_OPENED = re.compile(
    r"\b(?:in|on|by|at|for|from|since|until|till|through|before|after|during|over|between|around|this|last|next"
    r"|early|late|of|and|to|is|was|be)\s+(?:the\s+)?$|^\W*$"
)
_BESIDE_UNKNOWN = re.compile(r"(?:the\s+)?(?:day|week|weekend|month|year|night|morning)\s+(?:before|after|of)")
_NUMBERED_WEEK = re.compile(r"(?:the\s+)?week\s+\d+")
_BARE = re.compile(
    r"(?:the\s+)?(?:now|right now|recently|currently|lately|soon|previously|once|\d+|\d+\s*/\s*\d+|second|the time|time"
    r"|day|week|weekend|month|year|hour|minute|may|march|mar|dec|sat|sun|wed|sec|sep|jan|feb|past|future|present|night"
    r"|morning|afternoon|evening|week of|days?|weeks?|months?|years?|an?\s+(?:second|minute|moment|day|hour|week"
    r"|weekend|year)"
    r"|(?:one|two|\d+)\s+(?:day|time)|(?:last|next|this)\s+(?:day|second|minute|time)"
    r"|(?:january|february|april|june|july|august|september|october|november|december|apr|jun|jul|aug|sept|oct|nov"
    r"|mon|tue|tues|thu|thur|thurs|fri)\.?)"
)


class RecogniserNeeded(Exception):
    """A text needs the recogniser where it may not be asked."""


_may_ask: ContextVar[bool] = ContextVar("may_ask_the_recogniser", default=True)


@contextmanager
def never_asked() -> Iterator[None]:
    """Within the block a text that needs the recogniser raises RecogniserNeeded."""
    token = _may_ask.set(False)
    try:
        yield
    finally:
        _may_ask.reset(token)


def warm() -> None:
    """Load the recogniser and its rules, so that the first text need not wait for them (0.6 s)."""
    with _turn:
        recogniser_model.parse("tomorrow", datetime.now(UTC).replace(tzinfo=None))


def worth_asking(rest: str) -> bool:
    """Whether what our rules left of a lower-cased sentence holds a time they do not know."""
    if _WORTH.search(rest) or _NEIGHBOURS.search(rest):
        return True
    return any(_OPENED.search(rest[: found.start()]) for found in _HOLIDAY.finditer(rest))


def read(scene: TimeContext) -> list[TimePiece]:
    """The expressions of the sentence that can be resolved, bare words filtered out; none of a sentence that is a list
    of times. Raises RecogniserNeeded inside `never_asked`."""
    if not _may_ask.get():
        raise RecogniserNeeded
    if len(_UNIT.findall(scene.text)) > MAX_UNITS or len(_NUMBER.findall(scene.text)) > MAX_NUMBERS:
        return []
    try:
        with _turn:
            results = recogniser_model.parse(scene.text, scene.now)
    except Exception:  # its rules index, split and convert free text unchecked: any error may come
        return []
    pieces = (_piece(scene, result) for result in results)
    return [piece for piece in pieces if piece]


def _piece(scene: TimeContext, result: Any) -> TimePiece | None:
    kind, start, end = result.type_name.rpartition(".")[2], result.start, result.end + 1
    words = scene.text[start:end].strip()
    if _BARE.fullmatch(words) or kind not in _KINDS or (kind == "time" and not re.search(r"[a-z]", words)):
        return None
    if scene.asked and (_BESIDE_UNKNOWN.fullmatch(words) or _NUMBERED_WEEK.fullmatch(words)):
        return None  # "the day before my birthday" is not yesterday, "week 12 of pregnancy" is none that we know
    if not _OPENED.search(scene.before(start)) and _HOLIDAY.match(words) and not re.search(r"\d{4}", words):
        return None
    if kind in ("duration", "set"):
        return TimePiece(start, end, _KINDS[kind], unit="none")
    readings = [r for value in (result.resolution or {}).get("values", ()) if (r := _reading(scene, value))]
    if not readings:
        return None
    begins, ends = _choose(scene, readings, scene.lean(start))
    return TimePiece(start, end, _KINDS[kind], begins, ends, unit="day" if kind == "date" else "minute")


Reading = tuple["datetime | None", "datetime | None"]


def _reading(scene: TimeContext, value: dict[str, str]) -> Reading | None:
    kind = value["type"]
    single = _moment(scene, value.get("value"))
    if single:
        return calendar.day(single) if kind == "date" else (single, single)
    begins, ends = _moment(scene, value.get("start")), _moment(scene, value.get("end"))
    if begins and ends and ends < begins:
        return None
    return (begins, ends) if begins or ends else None


def _moment(scene: TimeContext, text: str | None) -> datetime | None:
    if not text or text == "not resolved":
        return None
    try:
        if re.fullmatch(r"\d\d:\d\d:\d\d", text):
            hour, minute, second = map(int, text.split(":"))
            return scene.today.replace(hour=hour, minute=minute, second=second)
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _choose(scene: TimeContext, readings: list[Reading], lean: Lean) -> Reading:
    """Of a past and a future reading the one that the tense calls for; of 3 and 15 o'clock the afternoon."""
    waking = [r for r in readings if not (r[0] and r[0] == r[1] and 1 <= r[0].hour <= 6)]
    ordered = sorted(waking or readings, key=lambda r: r[0] or r[1] or scene.now)
    if lean is Lean.PAST:
        behind = [r for r in ordered if (r[0] or r[1] or scene.now) < scene.now]
        return behind[-1] if behind else ordered[0]
    ahead = [r for r in ordered if (r[1] or r[0] or scene.now) > scene.today - timedelta(seconds=1)]
    return ahead[0] if ahead else ordered[-1]
