"""The quick test for words of time in a text, and the stretches that hold them.

The gate is one linear walk over words and numbers, each looked up once. It errs on the side of looking: a false
alarm costs the rules some hundred microseconds, a miss costs the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.language.temporal import words

MAX_CHARS = 400  # the longest stretch that is read as one sentence

_TOKEN = re.compile(r"[A-Za-z]{2,}|\d+")
_UNITS = words.listed(
    "second minute min sec hour hr day week weekday weekend weeknight fortnight month quarter year decade"
)
_CUES = frozenset(
    [
        *words.MONTHS,
        *(name[:3] for name in words.MONTHS),
        *words.WEEKDAYS,
        *(f"{name}s" for name in words.WEEKDAYS),
        *(name[:3] for name in words.WEEKDAYS),
        *_UNITS,
        *(f"{unit}s" for unit in _UNITS),
        *words.DAYPARTS,
        *(f"{part}s" for part in words.DAYPARTS),
        *words.SEASONS,
        *words.listed(
            "sept tues weds thur thurs today tomorrow yesterday tomorow tommorow tmrw tmr noon midnight midday ago"
        ),
        *words.listed(
            "daily weekly monthly quarterly yearly hourly nightly annually biweekly bimonthly fortnightly century"
        ),
        *words.listed("centuries hundred thousand oclock clock eod eow eom eoq eoy cob business"),
        *words.listed("now kw cw wk overnight"),
        *words.listed(
            "twenty nineteen thirteenth twentieth thirtieth twenties thirties forties fifties sixties seventies"
        ),
        *words.listed(
            "eighties nineties christmas xmas easter thanksgiving halloween ramadan eid hanukkah diwali passover"
        ),
    ]
)
# What may follow or precede the digits of a date, a time or a year.
_SHAPE = re.compile(
    r"(?:1[5-9]|20)\d\d(?!\d)|20\d{6}(?!\d)|\d{0,3}0['\u2019]?s\b|\d{1,2}(?::\d|[./-]\d|\s?[ap]\.?m?\b|(?:st|nd|rd|th)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(r"(?:\b[qh]|\b(?:at|from|between)\s|['\u2019])$", re.IGNORECASE)
_BREAK = re.compile(r"\n+|(?<=[.!?])[^\S\n]+")
_ABBREVIATION = re.compile(
    r"(?:\b[ap]\.m|\b[A-Z]|\b(?:Mr|Mrs|Dr|Ms|St|No|vs|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec))\.$"
)


def may_have_time(text: str) -> bool:
    """Whether the text holds any word or shape that times are told with."""
    return _next_cue(text, 0) is not None


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences that may have a time, none longer than MAX_CHARS; ascending."""
    position = 0
    while (cue := _next_cue(text, position)) is not None:
        begins = _begin(text, cue, position)
        ends = _end(text, cue, begins)
        yield begins, ends
        position = ends


def split(text: str) -> Iterator[tuple[int, int]]:
    """Spans of all sentences, with or without a time; ascending."""
    position = 0
    for start, end in _breaks(text, 0, len(text)):
        yield position, start
        position = end
    yield position, len(text)


def _next_cue(text: str, position: int) -> int | None:
    for token in _TOKEN.finditer(text, position):
        start = token.start()
        if text[start].isdigit():
            if _SHAPE.match(text, start) or _LEAD.search(text[max(0, start - 9) : start]):
                return start
        elif token.group().lower() in _CUES:
            return start
    return None


def _breaks(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Ends of sentences: a full stop before a capital, unless it belongs to "3 p.m.", "Oct. 5" or "Dr. Who"."""
    for gap in _BREAK.finditer(text, low, high):
        start, end = gap.span()
        if text[start] != "\n" and text[start - 1] == ".":
            follows = text[end : end + 1]
            if not (follows.isupper() or follows in "\"'\u201c(") or _ABBREVIATION.search(
                text[max(0, start - 6) : start]
            ):
                continue
        yield start, end


def _begin(text: str, cue: int, floor: int) -> int:
    low = max(floor, cue - MAX_CHARS // 2)
    stops = [end for _, end in _breaks(text, low, cue)]
    if stops:
        return stops[-1]
    blank = text.find(" ", low, cue) if low > floor else -1
    return blank + 1 if blank >= 0 else low


def _end(text: str, cue: int, begins: int) -> int:
    high = min(len(text), begins + MAX_CHARS)
    stop = next((start for start, _ in _breaks(text, cue, high)), None)
    if stop is not None and stop > cue:
        return stop
    blank = text.rfind(" ", cue, high) if high < len(text) else -1
    return blank if blank > cue else high
