"""Ranges named by their two ends.

"from May to June 2020", "3-5pm", "between Monday and Friday", "from March to the end of June", "from May to today".
The ends lend each other the year, the week, am or pm; the last unit belongs to the range.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from service.language.temporal import calendar, clock
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import TimeContext, TimePiece

_TO = re.compile(
    r"\s*(?:-|–|—|~|\bto\b|\buntil\b|\btill?\b|\bthrough\b|\bthru\b|\band\b)\s*(?:the\s+)?(?:(end|start|beginning|middle)\s+of\s+(?:the\s+)?)?"
)
_FROM_WORD = re.compile(r"\b(?:from|between)\s+(?:the\s+)?$")
_CLOSED = re.compile(r"\s*(?:$|[.,;:!?)]|(?:on|in\s+the|every|today|tomorrow|tonight|this|each|with|for|and)\b)")
_TO_NOW = re.compile(r"\s*(?:-|–|to|until|till|and|through)\s*(?:now|(?:the\s+)?present|date|today)\b")


def between(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "from May to June 2020", "3-5pm", "between Monday and Friday", "tomorrow 3pm until 5pm"."""
    opener = _FROM_WORD.search(scene.before(a.start))
    link = _TO.fullmatch(gap)
    if not link or ("and" in gap.split() and not (opener and "between" in opener.group())):
        return None
    start = opener.start() + max(0, a.start - 24) if opener else a.start
    if a.clock and b.clock:
        return _clock_range(scene, a, b, start)
    if a.begins is None or b.ends is None or a.unit == "none" or b.unit == "none" or "decade" in (a.unit, b.unit):
        return None
    if a.weak and b.weak and not opener and not (a.partial and b.partial):
        return None
    if scene.text[b.start : b.end] == "today" and a.begins < scene.today:
        return TimePiece(start, b.end, "range", a.begins, scene.today, unit="span")  # a record, as "until now"
    begins, ends = _agree(scene, a, _edge(b, link.group(1)))
    partial = a.partial if a.partial and b.partial else None
    return TimePiece(start, b.end, "range", begins, ends, unit="span", partial=partial) if begins < ends else None


def hours(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """The ranges among two times of day, before either joins its day: "6/4 between 9.30-4.30pm"."""
    return between(scene, a, b, gap) if a.clock and b.clock else None


def _edge(piece: TimePiece, which: str | None) -> TimePiece:
    """ "to the end of June", "to the middle of May"; the bounds of the piece where nothing is said."""
    if which is None or piece.begins is None or piece.ends is None:
        return piece
    part = {"beginning": "start", "middle": "mid"}.get(which, which)
    _, ends = calendar.part((piece.begins, piece.ends), part, piece.unit)
    return replace(piece, ends=ends)


def _clock_range(scene: TimeContext, a: TimePiece, b: TimePiece, start: int) -> TimePiece | None:
    """Two times of day, where the first learns am or pm from the second: "3-5pm", "9.30-4.30pm"."""
    assert a.clock
    assert b.clock
    dated = bool(a.begins or b.begins)
    if a.weak and b.weak and not dated and (start == a.start or not _CLOSED.match(scene.text, b.end)):
        return None
    first, last = clock.sharp(scene, a, None), clock.sharp(scene, b, None)
    if not a.meridiem and b.meridiem:
        first = max(
            (t for t in ((a.clock[0] % 12, a.clock[1]), (a.clock[0] % 12 + 12, a.clock[1])) if t < last), default=first
        )
    day = calendar.midnight(a.begins or b.begins or scene.today)
    begins, ends = (day.replace(hour=h, minute=m) for h, m in (first, last))
    if ends <= begins:
        ends += timedelta(hours=12 if not b.meridiem and ends + timedelta(hours=12) > begins else 24)
    sure = a.meridiem and b.meridiem
    return TimePiece(start, b.end, "range", begins, ends, unit="minute", clock=None if dated else first, meridiem=sure)


def _agree(scene: TimeContext, a: TimePiece, b: TimePiece) -> tuple[datetime, datetime]:
    """The bounds of a range whose ends lend each other the year or the week; the last unit is part of it."""
    assert a.begins
    assert b.begins
    assert b.ends
    begins, ends = a.begins, b.ends
    if a.partial and not b.partial:
        month, day = a.partial
        year = b.begins.year - (1 if (month, day or 1) > (b.begins.month, b.begins.day) else 0)
        begins = calendar.date(year, month, day or 1)
    elif a.partial and b.partial:
        over = (b.partial[0], b.partial[1] or 31) < (a.partial[0], a.partial[1] or 1)
        if scene.lean(a.start) is Lean.PAST:
            ends = calendar.add_months(ends, 12 * (begins.year - b.begins.year + over))
        else:
            begins = calendar.add_months(begins, 12 * (b.begins.year - begins.year - over))
    elif b.partial and ends <= begins:
        ends = calendar.add_months(ends, 12 * (begins.year - ends.year + 1))
        ends = calendar.add_months(ends, -12) if calendar.add_months(ends, -12) > begins else ends
    elif a.sort == b.sort == "weekday":
        begins, ends = _week(scene, a, b)
    elif a.sort == "weekday" and ends <= begins:  # "from Monday to Wednesday last week"
        begins = b.begins - timedelta(days=(b.begins.weekday() - begins.weekday()) % 7)
    elif "weekday" in b.sort and ends <= begins:
        ends += timedelta(days=7 * (((begins - ends).days // 7) + 1))
    return begins, ends


def _week(scene: TimeContext, a: TimePiece, b: TimePiece) -> tuple[datetime, datetime]:
    """ "from Monday to Wednesday": the running one if today lies in it and the text does not look back."""
    assert a.begins
    assert b.begins
    length = (b.begins - a.begins).days % 7
    begins = a.begins
    if scene.lean(a.start) is not Lean.PAST and begins - timedelta(days=7) <= scene.today:
        earlier = begins - timedelta(days=7)
        begins = earlier if earlier + timedelta(days=length) >= scene.today else begins
    return begins, begins + timedelta(days=length + 1)


def to_now(scene: TimeContext, piece: TimePiece) -> TimePiece:
    """ "between January 22 and now", "from May to today": up to today, as a range of whole days."""
    match = _TO_NOW.match(scene.text, piece.end) if piece.begins and piece.unit != "none" else None
    opener = _FROM_WORD.search(scene.before(piece.start))
    if not match or not opener or not piece.begins or piece.begins >= scene.now:
        return piece
    ends = scene.today if piece.begins < scene.today else scene.now
    return TimePiece(opener.start() + max(0, piece.start - 24), match.end(), "range", piece.begins, ends, unit="day")
