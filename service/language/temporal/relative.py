"""Days and periods that count from now, recurring times and durations.

"tomorrow", "last week", "the week after next", "2 weeks ago", "in half an hour", "within a month", "the next three
days", "two Fridays ago", "on the 5th". Weeks start on Monday; "last Friday" is the Friday of
the week before, "next Friday" that of the week to come. Days and longer units are counted on the local calendar, hours
and minutes in real time. Sets ("every Monday") and durations ("for two weeks") name no point in time: their pieces have
no bounds.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

from service.language.temporal import calendar, clock, tense, words
from service.language.temporal.calendar import DAY, SECONDS_OF, WEEK, Lean
from service.language.temporal.pieces import RuleTable, TimeMatch, TimePiece
from service.language.temporal.words import MONTH, NUMBER, WEEKDAY

_NAMED = {"today": 0, "yesterday": -1}  # every other spelling is one of tomorrow
_PERIOD = r"(?:week|month|quarter|year)"
_WHICH = {"end": "end", "close": "end", "second": "end", "latter": "end", "late": "end", "middle": "mid", "mid": "mid"}
_IDLE = re.compile(r"(?:\b(?:a|an|at the)|-)\s*$")
_OF = re.compile(r"\s+of\s")
_FOR, _FOR_OR_IN = re.compile(r"\bfor\s+$"), re.compile(r"\b(?:for|in)\s+$")
_WORD_OPENER = re.compile(r"\b(?:on|by|since|until|till|due)\s+$")  # "and the second mate" is none
_THE = re.compile(r"\bthe\s+$")
_CLAUSE = 80
"""Characters in which the verb of a clause stands."""

_RECORD = re.compile(
    r"\b(?:(?:first|second|third|only|last)\s+time|(?:best|worst|most|least)(?:\s+\w+){1,3}"
    r"|the\s+(?!(?:guest|interest|forest|request|contest|protest|harvest)\b)\w{2,}est(?:\s+\w+){1,3})\s+$"
)
"""The words before "in 20 years" in "the longest winter in 20 years": the years are past ones."""

_COUNTING = re.compile(rf"\s+(?:(?:from|before|after|starting|beginning)\b|on\s+{WEEKDAY})")
_NEEDS = re.compile(r"\b(?:takes?|took|lasts?|lasted|needs?|needed|spent|for)\s+(?:(?:about|over|only|another)\s+)?$")
_MORE = re.compile(r"-|\s+\w")
_LENGTH = re.compile(r"\b(?:for|in|takes?|took|lasts?|lasted|within|about|only|spent|over|another)\s+$")


def _on(at: TimeMatch, weekday: int, week: int, sort: str = "") -> TimePiece:
    return at.day(calendar.period(at.scene.today, "week", week)[0] + weekday * DAY, sort=sort)


def _run(at: TimeMatch, direction: int, count: float, unit: str) -> TimePiece:
    """A number of units before now or after it: whole days, without today, or real time up to now or from now."""
    count, unit = calendar.in_whole_units(count, unit)
    now, today = at.scene.now, at.scene.today
    if unit in SECONDS_OF:
        other = at.scene.later(direction * count * SECONDS_OF[unit])
        return at.span(min(now, other), max(now, other), unit)
    if direction > 0:
        return at.span(today + DAY, calendar.shift(today + DAY, count, unit))
    return at.span(calendar.shift(today, -count, unit), today)


def _away(at: TimeMatch, direction: int, count: float, unit: str) -> TimePiece:
    """A point a number of units away: a day for days and longer, else an instant."""
    count, unit = calendar.in_whole_units(count, unit)
    if unit == "weekend":
        return at.span(*calendar.period(at.scene.now, unit, direction * count), unit)
    if unit in SECONDS_OF:
        return at.instant(at.scene.later(direction * count * SECONDS_OF[unit]))
    return at.day(calendar.shift(at.scene.today, direction * count, unit), sort="offset")


def _looks_back(at: TimeMatch) -> bool:
    """Whether "in 3 hours" is a duration ("ran it in 3 hours"). A question is read as about the past anyway, so there
    only a past verb counts."""
    return at.lean is Lean.PAST and (not at.scene.asked or Lean.PAST in tense.verbs(at.scene.text))


_DURATION = r"<count>\s*<unit>"
_SPAN = (
    r"(?:day|weekday|weeknight|week|weekend|month|quarter|year|morning|afternoon|evening|night|hour|minute|fortnight"
    r"|spring|summer|autumn|winter)s?\b"
)


SETS, RULES = RuleTable(), RuleTable()


@SETS.reads(
    rf"(?:every|each) (?:single )?(?:(?:other|second|third|{NUMBER}) )?(?:{_SPAN}|{WEEKDAY}|{MONTH})"
    r"(?: (?:morning|afternoon|evening|night)\b)?"
    rf"|(?:once|twice|{NUMBER} times|several times) (?:a|an|per|each|every) {_SPAN}(?:,? on {WEEKDAY})?"
    r"|(?:on )?(?:(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends|weekdays|weeknights)"
    rf"|{WEEKDAY} (?:mornings|afternoons|evenings|nights))\b"
    rf"|(?:on )?(?:the )?(?:first|second|third|fourth|last) {WEEKDAY} (?:of|in) (?:the|each|every|a)"
    r" (?:month|quarter|year)\b"
    rf"|(?:(?:bi-?)?(?:week|month)ly|(?:fortnight|hour|night|quarter|year)ly|daily|annually)\b(?: on {WEEKDAY})?"
)
def _set(at: TimeMatch) -> TimePiece:
    return TimePiece(at.start, at.end, "set", unit="none")


@RULES.reads(
    r"(?:the )?(?:<weekday>|(?P<unit>(?:week|month|year|quarter|weekend)\b)|(?P<part>night|evening))"
    r" (?P<side>after next|before last)\b"
)
def _beyond(
    at: TimeMatch, side: str, unit: str | None = None, weekday: int | None = None, part: str | None = None
) -> TimePiece:
    """Reads "the week after next", "the Sunday before last", "the night before last"."""
    offset = 2 if side.startswith("after") else -2
    if part:
        return at.span(*clock.hours(at.scene, at.scene.today + offset * DAY, part), "part", daypart=part)
    if unit:
        return at.span(*calendar.period(at.scene.now, unit, offset), unit)
    return _on(at, weekday or 0, offset)


@RULES.reads(
    rf"<count> (?:(?P<part>{words.any_of(words.DAYPARTS)})|(?P<weekday>{words.any_of(words.WEEKDAYS)}))s? ago\b"
)
def _named_ago(at: TimeMatch, count: float, weekday: int | None = None, part: str | None = None) -> TimePiece:
    """Reads "two nights ago"; "two Fridays ago" is the second last Friday before today."""
    if part:
        return at.span(*clock.hours(at.scene, at.scene.today - int(count) * DAY, part), "part", daypart=part)
    begins, _ = calendar.on_weekday(at.scene.today, weekday or 0, Lean.PAST)
    return at.day(begins - (int(count) - 1) * WEEK)


@RULES.reads(
    r"(?P<name>(?:the )?day (?:before yesterday|after tomm?orr?ow)|today|tomm?orr?ow|yesterday|tmrw|tmr|2moro)\b"
)
def _named_day(at: TimeMatch, name: str) -> TimePiece:
    """Reads "tomorrow", "the day before yesterday"."""
    days = _NAMED.get(name.split()[-1], 1)
    return at.day(at.scene.today + (days * 2 if "day " in name else days) * DAY, sort="near")


@RULES.reads(
    r"(?:on )?<weekday>(?: <part>)?\s*,? (?:of )?<which> week\b",
    r"<which> week\s*,? (?:on )?<weekday>",
    r"(?:the )?<day>(?: day)? of (?:the )?<which> month\b",
    r"<which> month\s*,? (?:on )?the <day>",
)
def _day_of(at: TimeMatch, which: int, weekday: int = 0, day: int | None = None, part: str | None = None) -> TimePiece:
    """Reads "Friday of next week", "Saturday night last week", "the 15th of next month", "last month on the 20th"."""
    if day:
        return at.day(calendar.period(at.scene.now, "month", which)[0].replace(day=day))
    piece = _on(at, weekday, which, "of week")
    return at.span(*clock.hours(at.scene, piece.bounds[0], part), "part", daypart=part) if part else piece


@RULES.reads(
    r"(?:the )?<nth> (?:<weekday>|(?P<unit>day|week|weekend|month|quarter|half)\b) (?:of|in) <time>",
    r"(?:the )?<nth> (?P<unit>quarter|half) <time>",
)
def _nth_of(at: TimeMatch, nth: int, time: TimePiece, unit: str = "", weekday: int | None = None) -> TimePiece | None:
    """Reads "the last Friday of this month", "the third quarter of 2018". "The first week of May" is that of its first
    Thursday, the last one that with its last day."""
    if time.unit not in ("week", "month", "quarter", "year") or (time.unit == "week" and unit != "day"):
        return None
    if weekday is not None:
        return at.day(calendar.nth_weekday(time.bounds, weekday, nth), sort="fixed weekday")
    if unit == "half" and time.unit != "year":
        return None
    begins, ends = time.bounds
    if nth > 0:
        first = begins + 3 * DAY if unit == "week" else begins
        return at.span(*calendar.period(first, unit, nth - 1), unit)
    last = ends - (4 if (time.unit, unit) == ("year", "week") else 1) * DAY
    interval = calendar.period(last, unit)
    return at.span(*interval if interval[0] < ends else calendar.period(last, unit, -1), unit)


@RULES.reads(r"(?:the )?\b(?:(?P<unit>week(?:end)?) (?:of|starting|beginning|commencing|ending)|w/[cb])(?: on)? <time>")
def _week_of(at: TimeMatch, time: TimePiece, unit: str = "week") -> TimePiece | None:
    """Reads "the week of May 4"."""
    return at.span(*calendar.period(time.bounds[0], unit), unit) if time.kind == "date" else None


@RULES.reads(
    r"(?:the )?(?:very )?(?P<part>(?:first|second|latter) half|close(?= of)|end|start|beginning|middle)(?: of)? <time>",
    r"(?:the )?(?P<part>early|late|mid)(?: in| on|-)?\s*<time>",
)
def _part_of(at: TimeMatch, part: str, time: TimePiece) -> TimePiece | None:
    """Reads "the end of May", "early 2024", "mid-June"; the end of a day is its last second."""
    if time.kind == "datetime" or time.unit == "part":
        return None
    which = _WHICH.get(part.split()[0], "start")
    begins, ends = calendar.part(time.bounds, which, time.unit)
    if time.unit == "day" and which == "end":
        begins = ends = ends - calendar.LAST_SECOND
        return TimePiece(at.start, at.end, "datetime", begins, ends, unit="end")
    return at.span(begins, ends, "part-of")


@RULES.reads(rf"(?P<edge>later|earlier|(?:the )?rest of) (?:in )?(?:this |the )?(?P<unit>today|day|{_PERIOD})\b")
def _part_of_period(at: TimeMatch, edge: str, unit: str) -> TimePiece:
    """Reads "later this week" and "the rest of the week", which begin today; "earlier this year" has passed."""
    unit = "day" if unit == "today" else unit
    begins, ends = calendar.period(at.scene.now, unit)
    border = at.scene.now if unit == "day" else at.scene.today
    return at.span(begins, border, unit) if edge == "earlier" else at.span(border, ends, unit)


@RULES.reads(r"(?:the )?<which> <count>\s*<unit>", r"(?:the )?<count> <which> <unit>(?<=s)")
def _count_from_now(at: TimeMatch, which: int, count: float, unit: str) -> TimePiece | None:
    """Reads "the last three weeks", "2 upcoming months"; not "13 last minute"."""
    return _run(at, which, count, unit) if which and count >= 1 and unit != "weekend" else None


@RULES.reads(r"(?:the )?<which> <unit>")
def _period(at: TimeMatch, which: int, unit: str) -> TimePiece | None:
    """Reads "last week", "this past month", "next quarter", "the current year"; shorter units count back from now."""
    scene, text = at.scene, at.text.removeprefix("the ")
    if unit in SECONDS_OF:  # "a last minute change", "the next second of it"
        return None if which == 0 or (unit != "hour" and at.follows(_IDLE)) else _run(at, which, 1, unit)
    if scene.asked and re.match(r"(?:this\s+)?past", text) and unit != "weekend":
        return _run(at, -1, 1, unit)
    if which and text.endswith("s") and unit != "weekend":
        return _run(at, which, words.VAGUE["few"], unit)  # "in the coming weeks"
    if unit == "day" and not text.startswith(("next", "following", "previous")):
        return None  # "the last day", "this day": not a day one can name
    if unit == "weekend" and "coming" in text and calendar.period(scene.now, unit)[1] > scene.now:
        which = 0
    return at.span(*calendar.period(scene.now, unit, which), unit)


@RULES.reads(
    rf"{_DURATION}(?P<half> and a half)? (?P<way>ago|back|earlier|later|hence|from now|from today)\b"
    r"(?: (?P<name>today|tomorrow|yesterday|to the day)\b)?"
)
def _ago(at: TimeMatch, count: float, unit: str, way: str, half: str = "", name: str = "") -> TimePiece | None:
    """Reads "2 weeks ago", "three days from now"; not "takes 3 hours back", nor "two days later" in a story."""
    past = at.lean is Lean.PAST
    back = way == "back" and (not past or unit in SECONDS_OF or at.follows(_NEEDS) or at.precedes(_MORE))
    if not at.scene.asked and (back or (past and way in ("earlier", "later"))):
        return None
    piece = _away(at, -1 if way in ("ago", "back", "earlier") else 1, count + (0.5 if half else 0), unit)
    assert piece.begins
    assert piece.ends
    days = DAY * ({**_NAMED, "tomorrow": 1}.get(name, 0))
    return replace(piece, begins=piece.begins + days, ends=piece.ends + days)


@RULES.reads(rf"in (?:about |around |another )?{_DURATION}(?P<time>['\u2019]?s?['\u2019]? time\b)?(?! of\s)")
def _ahead(at: TimeMatch, count: float, unit: str, time: str | None = None) -> TimePiece | None:
    """Reads "in half an hour", "in three days' time"; not what takes somebody 52 minutes."""
    if _looks_back(at) and not time:
        return None  # "ran it in 3 hours"
    before = at.scene.before(at.start, chars=_CLAUSE)
    timed = not at.scene.asked and unit in SECONDS_OF
    if _RECORD.search(before) or (timed and tense.says_how_long(before, at.lean)):
        return None
    return _away(at, 1, count, unit)


@RULES.reads(rf"within (?:the )?(?P<count>{NUMBER})\s*<unit>(?! of\b)")
def _within(at: TimeMatch, count: float, unit: str) -> TimePiece | None:
    """Reads "within a month": from today or from now on."""
    if unit == "weekend" or at.lean is Lean.PAST:
        return None
    if unit in SECONDS_OF:
        return _run(at, 1, count, unit)
    return at.span(at.scene.today, calendar.shift(at.scene.today, *calendar.in_whole_units(count, unit)))


@RULES.reads(r"(?:\b<which> )?<weekday>")
def _weekday(at: TimeMatch, weekday: int, which: int | None = None) -> TimePiece | None:
    """Reads "Friday", "last Friday", "this coming Friday"; not "he sat", "the sun", "they wed"."""
    today, name = at.scene.today, at.text
    if which is None:
        sure = len(name) > 5 or ((at.is_opened or at.is_linked or at.raw.istitle()) and not at.follows(_THE))
        if not sure and name in ("sat", "sun", "wed", "mon"):
            return None
        return at.span(*calendar.on_weekday(today, weekday, at.lean), "day", weak=not sure, sort="weekday")
    if which == 0 and not name.startswith("this"):
        return None  # "that same Tuesday"
    if re.match(r"(?:this\s+)?past\b", name):
        return at.span(*calendar.on_weekday(today, weekday, Lean.PAST), "day", sort="fixed weekday")
    if re.match(r"(?:this\s+)?(?:up)?coming\b", name):
        return at.span(*calendar.on_weekday(today + DAY, weekday, Lean.FUTURE), "day", sort="fixed weekday")
    return _on(at, weekday, which, "fixed weekday")


@RULES.reads(r"(?:the |(?<=\bof\s))(?P<unit>(?:day|week|month|quarter|year|weekend))\b(?!['\u2019])")
def _the_period(at: TimeMatch, unit: str) -> TimePiece | None:
    """Reads "for the month", "on the weekend", "end of day": weak without "for"."""
    begins, ends = calendar.period(at.scene.now, unit)
    if unit == "weekend" and at.precedes(_OF):
        return None  # "the weekend of May 4"
    if unit == "weekend" and at.lean is Lean.PAST and begins > at.scene.now:
        begins, ends = calendar.period(at.scene.now, unit, -1)
    weak = unit != "weekend" and not at.follows(_FOR_OR_IN if unit == "year" else _FOR)
    return at.span(begins, ends, unit, weak=weak)


@RULES.reads(r"(?:now|(?:the )?present(?: day)?|(?<=to\s)date)\b")
def _now(at: TimeMatch) -> TimePiece:
    """Reads "now", "the present": weak, the end of a range."""
    return TimePiece(at.start, at.end, "datetime", at.scene.today, at.scene.now, unit="now", weak=True)


@RULES.reads(r"(?:eo(?P<letter>[dbwmqy])|cob|close of business)\b")
def _deadline(at: TimeMatch, letter: str = "d") -> TimePiece:
    """Reads "EOD", the last second of today, and "EOM", the second half of the month, as "end of the month"."""
    if letter in "db":
        return at.instant(calendar.day(at.scene.now)[1] - calendar.LAST_SECOND)
    unit = {"w": "week", "m": "month", "q": "quarter", "y": "year"}[letter]
    return at.span(*calendar.part(calendar.period(at.scene.now, unit), "end", unit), unit)


@RULES.reads(
    r"(?:the )?<ordinal>(?! (?:[a-z]+ )?(?:floor|of|time|street|st|ave|avenue|day|night|morning|evening|afternoon"
    r"|anniversary|birthday|century|grade|place|attempt|edition|version|generation)\b)(?!-)"
)
def _ordinal(at: TimeMatch, ordinal: int) -> TimePiece | None:
    """Reads "on the 5th": the next one (or the last); weak without a preposition ("Tuesday the 5th")."""
    named = at.text.startswith("the")
    opened = at.is_opened or at.is_linked if re.search(r"\d", at.text) else at.follows(_WORD_OPENER)
    days = []
    for offset in range(-2, 3):  # of two months in a row, one has 31 days
        with suppress(ValueError):
            days.append(calendar.day(calendar.period(at.scene.now, "month", offset)[0].replace(day=ordinal)))
    day = calendar.nearest(days, at.scene.now, at.lean)
    return at.span(*day, "day", weak=not (opened or (named and at.is_alone)), sort="ordinal")


@RULES.reads(_DURATION)
def _duration(at: TimeMatch, count: float, unit: str) -> TimePiece | None:
    """Reads "three weeks", "half an hour"; "a day", "one day", "a second" only after "for", "in", "takes" ..."""
    vague = re.fullmatch(r"(?:an?|one)\s+\w+", at.text) and not (at.follows(_LENGTH) or at.precedes(_COUNTING))
    return None if vague else TimePiece(at.start, at.end, "duration", unit="none", amount=(count, unit))
