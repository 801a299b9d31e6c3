"""Finds the pieces of temporal expressions in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.language.temporal import absolute, adjacent, clock, holidays, numerals, recurring, relative, weeks, words
from service.language.temporal.pieces import TimeContext, TimePiece

_RULES = (
    *holidays.RULES,
    *recurring.RULES,
    *weeks.RULES,
    *numerals.RULES,
    *absolute.RULES,
    *numerals.LATE,
    *adjacent.RULES,
    *relative.RULES,
    *clock.RULES,
    *recurring.LATE,
    *absolute.LATE,
)
_SINGLE = tuple(re.compile(rule.pattern) for rule in _RULES)
# One pass finds the next place where any rule matches; a group per rule tells which. The rule's own pattern is then
# matched again there, because group numbers inside the union are not its own.
_ANY = re.compile(r"(?<![\w$€£])(?:" + "|".join(f"(?P<r{i}>{rule.pattern})" for i, rule in enumerate(_RULES)) + ")")
_TOKEN = re.compile(r"[a-z]+|\d+|['\u2019](?=\d)")
# The first words of all patterns above: no rule is tried at any other word. A test holds this list against the rules.
_STARTS = frozenset(
    [
        *words.MONTHS,
        *(name[:3] for name in words.MONTHS),
        *words.WEEKDAYS,
        *(f"{name}s" for name in words.WEEKDAYS),
        *(name[:3] for name in words.WEEKDAYS),
        *words.NUMBERS,
        *(word.split()[0] for word in words.DAY_WORDS),
        *words.DAYPARTS,
        *words.SEASONS,
        *words.listed(
            "sept tues weds thur thurs the couple few half last past previous prior next coming upcoming following"
        ),
        *words.listed(
            "this current in within every each once twice several on end start beginning middle early late earlier"
        ),
        *words.listed(
            "later rest remainder day week weekend weekends weekdays weeknights month quarter year at today tomorrow"
        ),
        *words.listed(
            "yesterday tmrw tmr tomorow tommorow tonight tonite eod eob eow eom eoq eoy cob close noon midday midnight"
        ),
        *words.listed(
            "q h daily weekly monthly quarterly yearly hourly nightly annually fortnightly bi biweekly bimonthly"
        ),
        *words.listed(
            "christmas xmas boxing new halloween valentine valentines independence earth st veterans groundhog"
        ),
        *words.listed(
            "thanksgiving black cyber labor labour memorial mother mothers father fathers women womens good easter"
        ),
        *words.listed(
            "seventy eighty twenties thirties forties fifties sixties seventies eighties nineties same year fy"
        ),
        *words.listed("kw cw wk w weeks calendar"),
    ]
)


def pieces(scene: TimeContext) -> Iterator[TimePiece]:
    """The pieces in order, none overlapping; the earlier rule wins where several match at one place."""
    end = 0
    for token in _TOKEN.finditer(scene.text):
        start = token.start()
        if start < end or (token.group().isalpha() and token.group() not in _STARTS):
            continue
        found = _ANY.match(scene.text, start)
        piece = _read(scene, start, int((found.lastgroup or "r0")[1:])) if found else None
        if piece:
            yield piece
            end = piece.end


def _read(scene: TimeContext, position: int, first: int) -> TimePiece | None:
    for pattern, rule in zip(_SINGLE[first:], _RULES[first:], strict=True):
        match = pattern.match(scene.text, position)
        if match:
            try:
                piece = rule.read(scene, match)
            except (ValueError, OverflowError):  # February 30, the year 12000
                return None
            if piece:
                return piece
    return None
