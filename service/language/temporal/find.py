"""Finds the times that a text names: pieces by the rules, joined, with the words before them read in.

Ends are meant as people mean them: "until Friday", "by March 3" and "through May" take in the whole of it;
"before Friday" stops where it starts, and so does "until next week". "After 2012" starts when 2012 is over; "after
June 15" starts with that day. "End of the month" is its second half, "end of the day" its last second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from service.domain.temporal import TimeMention
from service.language import sentences
from service.language.temporal import calendar, clock, days, holidays, joining, relative, tense, words
from service.language.temporal.calendar import DAY, Lean
from service.language.temporal.pieces import TimeContext, TimeMatch, TimePiece

MAX_SENTENCES = 300  # below 1 ms each
MAX_CHARS = 400  # the longest stretch that is read as one sentence
MAX_DEPTH = 3  # "the end of the first week of May"
MAX_PIECES = 40  # in one sentence: a longer list of dates is data, not prose

_TABLES = (holidays.RULES, relative.SETS, days.RULES, relative.RULES, clock.RULES)  # the earlier rule wins
_RULES = [
    (re.compile(words.compile_slots(pattern.removesuffix("<time>"))), pattern.endswith("<time>"), reader)
    for table in _TABLES
    for pattern, reader in table
]


def _alternative(number: int, pattern: str) -> str:
    own_names = re.sub(r"[(][?]P(<|=)", rf"(?P\g<1>r{number}_", pattern)
    return f"(?P<r{number}>{own_names})"


# One pass finds the next place where any rule matches; a group per rule says which. The rule's own pattern is then
# matched again there, for its slots.
_ALTERNATIVES = "|".join(_alternative(number, each.pattern) for number, (each, *_) in enumerate(_RULES))
_ANY = re.compile(rf"(?<![\w$€£])(?:{_ALTERNATIVES})")
_TOKEN = re.compile(r"(?:the\s+)?(?P<word>[a-z]+|\d+|['\u2019](?=\d))")
_TAIL = re.compile(r"(?:(?<=[^\W\d_]{4})\.|[\s,])+$")  # the full stop after "Friday", not that of "Oct." or "p.m."
_FOLLOWING = re.compile(r"(?:the\s+)?following\b")


def find(text: str, reference: datetime, zone: ZoneInfo, *, asked: bool = False) -> tuple[TimeMention, ...]:
    """The temporal expressions of a text in order, never overlapping; `reference` must be aware.

    Expressions are read on the wall clock of `zone` ("tomorrow at 3pm" is local), bounds are UTC and half-open;
    an instant begins and ends at the same moment. Dates without a year follow the tense. `asked`: the text is a
    question.
    """
    if reference.tzinfo is None:
        raise ValueError("the reference time must be aware")
    mentions: list[TimeMention] = []
    for start, end in islice(_sentences(text), MAX_SENTENCES):
        raw, low = text[start:end], _lower(text[start:end])
        lean = tense.leaning(low, asked=asked)
        scene = TimeContext(low, raw, reference.astimezone(UTC), zone, lean, asked)
        mentions += [mention for piece in _expressions(scene) if (mention := _mention(scene, piece, text, start))]
    return tuple(mentions)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences, cut at blanks where they are longer than MAX_CHARS; ascending."""
    for start, end in sentences.split(text):
        while start < end:
            blank = text.rfind(" ", start, start + MAX_CHARS) if end - start > MAX_CHARS else end
            cut = blank if blank > start else min(start + MAX_CHARS, end)
            yield start, cut
            start = cut


def _expressions(scene: TimeContext) -> list[TimePiece]:
    done: list[TimePiece] = []
    day = None
    for piece in joining.join(scene, islice(pieces(scene), MAX_PIECES)):
        follows = not scene.asked and _FOLLOWING.match(scene.text, piece.start)
        if follows and (done or scene.lean(piece.start) is Lean.PAST):
            continue  # "the following week": after another time
        day = piece.begins if piece.kind == "date" and not piece.weak else day
        try:
            read = _apply_modifiers(scene, piece, day)
        except (ValueError, OverflowError):
            continue
        if read:
            done.append(replace(read, start=max(read.start, done[-1].end if done else 0)))
    return done


def pieces(scene: TimeContext) -> Iterator[TimePiece]:
    """The pieces in order, none overlapping; the earlier rule wins where several match at one place."""
    end = 0
    for token in _TOKEN.finditer(scene.text):
        word = token["word"]
        if word.isalpha() and word[: words.START_CHARS] not in words.STARTS:
            continue
        for start in sorted({token.start(), token.start("word")}):
            if start >= end and (piece := _read(scene, start)):
                yield piece
                end = piece.end


def _read(scene: TimeContext, position: int, depth: int = MAX_DEPTH) -> TimePiece | None:
    """The piece that begins at a position; that of the last slot of a rule, <time>, is read first."""
    found = _ANY.match(scene.text, position)
    first = int((found.lastgroup or "r0")[1:]) if found else len(_RULES)
    for pattern, reads_on, reader in _RULES[first:]:
        match = pattern.match(scene.text, position)
        time = _read_on(scene, match.end(), depth - 1) if match and reads_on else None
        if match is None or (reads_on and not time):
            continue
        values = words.values(match)
        try:
            for name in ("year", "year2"):
                if isinstance(year := values.get(name), int):
                    values[name] = calendar.full_year(year, scene.now.year)
            if time:
                values["time"] = time
            piece = reader(TimeMatch(scene, position, time.end if time else match.end()), **values)
        except (ValueError, OverflowError):  # February 30, the year 12000
            return None
        if piece:
            return piece
    return None


def _read_on(scene: TimeContext, position: int, depth: int) -> TimePiece | None:
    time = _read(scene, position, depth) if depth else None
    if time is None and depth and scene.text.startswith("the ", position):
        return _read(scene, position + len("the "), depth)
    return time


def _lower(text: str) -> str:
    """Lower case with every offset kept (the lower case of some letters is longer), typographic spaces as blanks."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return lowered.replace("\u00a0", " ").replace("\u202f", " ")


def _mention(scene: TimeContext, piece: TimePiece, text: str, offset: int) -> TimeMention | None:
    start, end = offset + piece.start, offset + piece.end
    phrase = text[start:end]
    start, end = start + len(phrase) - len(phrase.lstrip()), end - len(phrase) + len(_TAIL.sub("", phrase))
    try:
        begins = scene.utc(piece.begins) if piece.begins else None
        ends = scene.utc(piece.ends) if piece.ends else None
    except (ValueError, OverflowError):
        return None
    if begins and ends and ends < begins:
        return None
    return TimeMention(text[start:end], start, end, piece.kind, begins, ends)


# -- the words before a time -------------------------------------------------------------------------------------------

_RELATION = re.compile(
    r"\b(?:(?P<since>(?:ever\s+)?since|as\s+of|starting(?:\s+(?:from|on|in))?|beginning(?:\s+(?:on|in))?"
    r"|effective|on\s+or\s+after|no\s+earlier\s+than|not\s+before)"
    r"|(?P<origin>from)"
    r"|(?P<after>after|later\s+than|following|past|greater\s+than)"
    r"|(?P<before>before|prior\s+to|earlier\s+than|ahead\s+of|less\s+than)"
    r"|(?P<until>(?:up\s+)?until|till?|'til|(?<!came\s)(?<!come\s)(?<!went\s)(?<!got\s)(?:through|thru)|up\s+to|by"
    r"|no\s+later\s+than|on\s+or\s+before|not\s+later\s+than))\s+(?:the\s+)?$"
)
_CLOSED = re.compile(r"\s*(?:$|[.,;:!?)]|(?:with|for|and|to|in)\b)")
_ONWARDS = re.compile(r"\s*,?\s*(?:onwards?\b|and\s+(?:later|onwards?|greater|after)\b|or\s+later\b|on\b(?!\s+\w))")


def _apply_modifiers(scene: TimeContext, piece: TimePiece, day: datetime | None) -> TimePiece | None:
    """The piece with its front words read in; None when it turns out to be no time at all.

    `day`: the day (local midnight) that the sentence names elsewhere, for a time of day that stands alone.
    """
    if piece.kind in ("duration", "set"):
        return None if piece.weak else piece
    if piece.kind == "time":
        return _place_undated(scene, piece, day)
    return None if piece.weak else _relate(scene, piece)


def _relate(scene: TimeContext, piece: TimePiece) -> TimePiece:
    front = _RELATION.search(scene.before(piece.start, 40))
    relation, start = (front.lastgroup, piece.start - len(front[0])) if front else (None, piece.start)
    onwards = _ONWARDS.match(scene.text, piece.end)
    if onwards and piece.begins and relation in (None, "origin"):
        return replace(piece, start=start, end=onwards.end(), kind="range", ends=None)
    if piece.begins is None or relation is None:
        return piece
    opened = replace(piece, start=start, kind="time" if piece.kind == "time" else "range")
    if relation == "since" or (relation == "origin" and _starts(scene, piece)):
        return replace(opened, ends=None)
    if relation == "before":
        return replace(opened, begins=None, ends=piece.ends if piece.unit in ("end", "part-of") else piece.begins)
    if relation == "after":
        return replace(opened, begins=piece.begins if piece.unit in ("day", "minute") else piece.ends, ends=None)
    if relation == "until":
        till = front and re.search(r"til", front["until"]) and piece.unit in ("week", "month", "quarter", "year")
        starts = till and re.match(r"(?:the\s+)?next\b", scene.text[piece.start :])
        return replace(opened, begins=None, ends=piece.begins if starts else piece.ends)
    return piece


def _starts(scene: TimeContext, piece: TimePiece) -> bool:
    """Whether "from next month" is a start, which lies ahead; "the report from last week" comes from there."""
    assert piece.begins
    return piece.begins > scene.now and scene.lean(piece.start) is not Lean.PAST and piece.kind != "datetime"


def _place_undated(scene: TimeContext, piece: TimePiece, day: datetime | None) -> TimePiece | None:
    """Dates "at 3pm" without a day next to it: that of the sentence, today, or the nearest that the tense calls for. A
    bare "at 3" is a time of day at the end of its clause, with a day or a plan around it."""
    lean = scene.lean(piece.start)
    if piece.clock is None:
        return None
    if piece.weak:
        at = scene.before(piece.start).endswith("at ") and _CLOSED.match(scene.text, piece.end)
        if not at or (day is None and lean is not Lean.FUTURE):
            return None
    hour, minute = clock.sharp(scene, piece, None)
    begins = piece.begins or scene.today.replace(hour=hour, minute=minute)
    ends = piece.ends or begins
    if day:
        days = day - scene.today
    elif lean is Lean.FUTURE and ends < scene.now:
        days = DAY
    else:
        days = -DAY if lean is Lean.PAST and begins > scene.now else 0 * DAY
    return _relate(scene, replace(piece, begins=begins + days, ends=ends + days))
