"""Whether a statement is durable or bound to a time, when that time ends, and whether it is of now, past or future.

The offline mirror of the annotating model. A statement is temporal when it speaks in the present or of what
is to come, and names a time that is not over: an appointment, a deadline, "this week", "until March 3". A record of
what happened, a habit, a preference and an open-ended start ("since May", "from next month") stay persistent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from service.domain.temporal import TemporalTag, TemporalType, TimeMention
from service.language import sentences
from service.language.temporal import calendar, tense, words
from service.language.temporal.calendar import Lean

MAX_CHARS = 2000  # a longer text is a document, and documents do not expire
APPOINTMENT = timedelta(hours=1)  # how long "meeting at 3pm" lasts when nothing else is said

_PLAN = re.compile(
    r"\b(?:meetings?|appointments?|calls?|dinner|lunch|breakfast|brunch|interview|flight|train|demo|deadline|due|remind"
    r"|reminder|party|concert|webinar|exam|visit|dentist|doctor|reservation|booking|booked|scheduled|schedule|tonight"
    r"|pick\s+up|meet|sync|review|presentation|conference|game|match|show|class|lesson|date\s+with|coffee\s+with)\b"
)
_LIMIT = re.compile(r"(?:up\s+)?(?:until|till?|through|thru|to|by|no\s+later\s+than|on\s+or\s+before|before)\b")
_HOLDING = re.compile(  # what holds "for two weeks" holds from now on
    r"\b(?:available|closed|open|away|out|on\s+(?:leave|vacation|holiday)|on-?call|unavailable|suspended|paused"
    r"|valid|good|free|off|trial|blocked|banned|frozen|be|stay(?:ing)?)\b[^.]{0,24}\bfor\s+(?:about\s+|another\s+|up\s+to\s+|the\s+)?$"
)
_DURATION = re.compile(words.compile_slots(r"<count>\s*<unit>"))
_LINK = re.compile(r"(?:-|–|—|~|\b(?:to|until|till?|through|thru|and)\b)")
_UNTIL = re.compile(r"(?:up\s+)?(?:until|till?|through|thru)\b")
_STILL = re.compile(r"\b(?:now|today|present|date|currently|but|since|then)\b")
_NEGATION = re.compile(r"\b(?:no|not|never|cannot|won['\u2019]t|\w+n['\u2019]t)\b")
_DEADLINE = re.compile(  # "we've got until Friday"
    r"(?:\b(?:g[ia]ve[sn]?|giving|have|has|had|gets?|got)|['\u2019]ve)\s+(?:(?:only|just|me|us|you|him|her|them|time)\s+)*$"
)

_MONTH = words.any_of(words.MONTHS)
_DAY = rf"{words.WEEKDAY}(?: {words.any_of(words.DAYPARTS)})?"
_FROM, _TO = r"(?:(?:from|between|on|in|until|till|by|since) )?", r" ?(?:to|and|until|till|through|[-–]) ?"
_BARE = re.compile(
    rf"{_FROM}(?:{_DAY}|{_MONTH}(?:{_TO}{_MONTH})?)"
    r"|.*\b(?:first|last|start|beginning|middle|end)\b.* of (?:the|each|every) (?:week|month|quarter|year)",
    re.IGNORECASE,
)
_WEEKLY = re.compile(rf"{_FROM}{_DAY}{_TO}{_DAY}", re.IGNORECASE)


def recurs(named: str, lean: Lean) -> bool:
    """Whether a time may be that of every week or year: "Monday to Friday", and also "Friday" and "in May" unless a
    verb or plan says which one."""
    return bool(_WEEKLY.fullmatch(named) or (lean is Lean.NONE and _BARE.fullmatch(named)))


def validity(
    text: str, mentions: Sequence[TimeMention], reference: datetime, zone: ZoneInfo
) -> tuple[TemporalType, datetime | None]:
    """(TEMPORAL, expiry in UTC) for a text bound to a time that ends after `reference`, else (PERSISTENT, None).

    A text of several sentences expires only when its first one does and at least half of them do: the rest would
    be lost to ranking with it. The expiry is the latest one named.
    """
    if not mentions or len(text) > MAX_CHARS:
        return TemporalType.PERSISTENT, None
    ends: list[datetime | None] = []
    for start, end in _sentences(text):
        inside = [m for m in mentions if start <= m.start < end]
        ends.append(_expiry(text[start:end].lower(), start, inside, reference.astimezone(zone)))
    bound = [moment for moment in ends if moment]
    if not bound or ends[0] is None or len(bound) * 2 < len(ends):
        return TemporalType.PERSISTENT, None
    return TemporalType.TEMPORAL, max(bound).astimezone(UTC)


def find_held(
    text: str, mentions: Sequence[TimeMention], reference: datetime
) -> tuple[datetime | None, datetime] | None:
    """The interval in which a statement of one sentence says that it holds, in UTC: "worked at Netflix from 2016 to
    2020", "on leave until 5 March". A beginning that is still to come is left out: the plan is known before. None for
    what recurs ("works from Monday to Friday"), for hours of a day, and for "not until Monday", which begins then."""
    if len(mentions) != 1 or len(text) > MAX_CHARS or len(_sentences(text)) != 1:
        return None
    (mention,) = mentions
    sentence, named = text.lower(), mention.text.lower()
    if mention.kind != "range" or mention.ends_at is None or tense.is_habit(sentence) or _STILL.search(sentence):
        return None
    begins, ends = mention.begins_at, mention.ends_at
    if begins is None:
        other = _NEGATION.search(sentence[: mention.start]) or _DEADLINE.search(sentence[: mention.start])
        return (None, ends) if _UNTIL.match(named) and not other else None
    if not _LINK.search(named) or ends - begins < timedelta(days=1):
        return None
    if _WEEKLY.fullmatch(named) or (not re.search(r"\d", named) and tense.lean(sentence, mention.start) is Lean.NONE):
        return None
    if ends <= reference and Lean.PAST not in tense.verbs(sentence):
        return None  # "I collect stamps from 1920 to 1945"
    return begins if begins <= reference else None, ends


def _sentences(text: str) -> list[tuple[int, int]]:
    return [(start, end) for start, end in sentences.split(text) if text[start:end].strip(" .!?\n")]


def _expiry(sentence: str, offset: int, mentions: Sequence[TimeMention], reference: datetime) -> datetime | None:
    """When a sentence stops being true; None for a record, a habit or a fact without an end."""
    lean = tense.leaning(sentence)
    habit = any(m.kind == "set" for m in mentions) or tense.is_habit(sentence)
    ends = []
    for mention in mentions:
        before, governed = sentence[: mention.start - offset], lean(mention.start - offset)
        if mention.kind == "duration" and not habit and governed is not Lean.PAST and _HOLDING.search(before):
            ends += _lasting(mention.text.lower(), reference)
        if mention.ends_at is None or mention.kind in ("set", "duration") or mention.ends_at < reference:
            continue
        instant = mention.kind in ("time", "datetime") and mention.begins_at == mention.ends_at
        if mention.kind == "time" and not (instant and governed is Lean.FUTURE and _PLAN.search(sentence)):
            continue  # hours without a day: "lunch is at 12:30"
        limit = mention.begins_at is None and _LIMIT.match(mention.text.lower())
        past = governed is Lean.PAST  # "finished it this week", "was out until Friday"
        if limit and (past or _DEADLINE.search(before)):
            continue
        if limit or not (
            habit or recurs(mention.text, governed) or (past and (mention.begins_at or reference) <= reference)
        ):
            is_appointment = instant and mention.ends_at.second == 0  # a deadline ends where it says
            ends.append(mention.ends_at + APPOINTMENT if is_appointment else mention.ends_at)
    return max((end for end in ends if end > reference), default=None)


def _lasting(duration: str, reference: datetime) -> list[datetime]:
    """The end of "away for two weeks", "valid for 90 days", counted from `reference` (aware, local)."""
    if (match := _DURATION.fullmatch(duration)) is None:
        return []
    try:
        count, unit = calendar.in_whole_units(words.number(match["count"]), words.unit(match["unit"]))
        if unit in calendar.SECONDS_OF:
            return [reference.astimezone(UTC) + timedelta(seconds=count * calendar.SECONDS_OF[unit])]
        return [calendar.shift(reference, count, unit)]
    except (ValueError, OverflowError):
        return []


MAX_TENSE_CHARS = 2000  # the tense of a long text is that of its opening

_OVER = re.compile(
    r"\b(?:used\s+to|formerly|previously|in\s+the\s+past|no\s+longer|not\s+any\s*more|once\s+(?:was|had|lived|worked)"
    r"|back\s+when|ex-\w+|former|until\s+recently|as\s+a\s+(?:child|kid|teenager)|stopped|quit|gave\s+up)\b"
)
_AHEAD = re.compile(
    r"\b(?:will|won['\u2019]t|shall|gonna|going\s+to|(?:plan|plans|planning|intend|intends|hope|hopes|about)\s+to"
    r"|(?<!not\s)(?<!n't\s)(?<!n\u2019t\s)wants?\s+to|upcoming|in\s+the\s+future|soon|someday|one\s+day)\b|['\u2019]ll\b"
)
_ROLLING = re.compile(rf"(?:for\s+)?(?:the\s+)?(?:next|coming)\s+{words.NUMBER}")
# Verbs whose past tense says how things have stood ever since: "moved to Berlin", "started at the bank".
_LASTING = re.compile(
    r"\b(?:born|named|called|moved|started|joined|became|switched|adopted|learned|learnt|decided|married|bought"
    r"|chose|signed\s+up|settled|agreed|has|have|['\u2019]ve|since|is|are|am|['\u2019]m|['\u2019]re|lives?|works?|likes?|prefers?)\b"
)
# "I use a phone with a cracked screen": who does something now speaks of now, whatever participle comes after it. Not
# where the verb opens another sentence ("I think he left"), nor where its past looks the same ("I put it away").
_NOW = re.compile(
    r"^\W*(?:(?:i|we|you|they)\s+(?:(?:do\s+not|don['\u2019]t|can\s*not|can['\u2019]t|never|always|only|also|just|still|\w+ly)\s+)*"
    r"(?!(?:think|know|guess|believe|hear|remember|say|suppose|will|would|shall|should|could|might|must"
    r"|put|cut|set|let|hit|cost|hurt|quit|read|shut|beat)\b)(?P<base>[a-z]+)"
    r"|(?:user|he|she)\s+(?:(?:never|always|only|also|still|\w+ly)\s+)*(?!(?:was|thinks|knows|says)\b)[a-z]+(?<!s)s"
    r"|[a-z]+(?<!s)s\s+(?:a|an|the|his|her|their|its))\b(?!['\u2019])"  # "Drives a Skoda": the user's
)


def tag(text: str, mentions: Sequence[TimeMention], reference: datetime) -> TemporalTag:
    """PAST, FUTURE or CURRENT, from words, then the mentioned times, then the tense of the verbs."""
    lowered = text[:MAX_TENSE_CHARS].lower()
    if _OVER.search(lowered):
        return TemporalTag.PAST
    times = [m for m in mentions if _counts(m, lowered)]
    is_past = Lean.PAST in tense.verbs(lowered)
    if times and all(_ahead(m, reference) for m in times) and not tense.is_habit(lowered):
        return TemporalTag.FUTURE
    if times and all(m.ends_at is not None and m.ends_at <= reference for m in times):
        lasts = not is_past and (_LASTING.search(lowered) or _acts_now(lowered))
        return TemporalTag.CURRENT if lasts or re.search(r"\bborn\b", lowered) else TemporalTag.PAST
    if _AHEAD.search(lowered) and not is_past:
        return TemporalTag.FUTURE
    running = any(m.ends_at is None or m.ends_at > reference for m in times)
    if is_past and not running and not _LASTING.search(lowered) and not (_acts_now(lowered) and not times):
        return TemporalTag.PAST
    return TemporalTag.CURRENT


def _acts_now(text: str) -> bool:
    """Whether the first verb of a lower-cased text is a plain present."""
    match = _NOW.match(text)
    return match is not None and (match["base"] is None or Lean.PAST not in tense.verbs(match["base"]))


def _counts(mention: TimeMention, text: str) -> bool:
    """Whether a mention places the fact in time; "I wake up at 6" does not."""
    if mention.kind in ("set", "duration") or not (mention.begins_at or mention.ends_at):
        return False
    return mention.kind != "time" or tense.lean(text, mention.start) is not Lean.NONE


def _ahead(mention: TimeMention, reference: datetime) -> bool:
    """Whether a time is still to come; "the next two weeks" have begun."""
    rolling = _ROLLING.match(mention.text.lower())
    return mention.begins_at is not None and mention.begins_at > reference and not rolling
