"""Whether a statement is durable or bound to a time, and when that time ends.

The offline mirror of the annotating model. A statement is temporal when it speaks in the present or of what
is to come, and names a time that is not over: an appointment, a deadline, "this week", "until March 3". A record of
what happened, a habit, a preference and an open-ended start ("since May", "from next month") stay persistent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from service.domain.temporal import Mention, TemporalType
from service.language.temporal import calendar, gate, recurring, tense
from service.language.temporal.calendar import Lean

MAX_CHARS = 2000  # a longer text is a document, and documents do not expire
APPOINTMENT = timedelta(hours=1)  # how long "meeting at 3pm" lasts when nothing else is said
_INSTANTS = ("time", "datetime")

_PLAN = re.compile(
    r"\b(?:meetings?|appointments?|calls?|dinner|lunch|breakfast|brunch|interview|flight|train|demo|deadline|due|remind"
    r"|reminder|party|concert|webinar|exam|visit|dentist|doctor|reservation|booking|booked|scheduled|schedule|tonight"
    r"|pick\s+up|meet|sync|review|presentation|conference|game|match|show|class|lesson|date\s+with|coffee\s+with)\b"
)
_LIMIT = re.compile(
    r"(?:^|\b)(?:up\s+)?(?:until|till?|through|thru|up\s+to|by|no\s+later\s+than|on\s+or\s+before|before)\b"
)
_OPEN_OR_AWAY = (
    r"available|closed|open|away|out|on\s+leave|on\s+vacation|on\s+holiday|on-?call|unavailable|suspended|paused"
)
_PASSING_STATE = re.compile(rf"\b(?:{_OPEN_OR_AWAY})\b")
_HOLDING = re.compile(  # what holds "for two weeks" holds from now on
    rf"\b(?:{_OPEN_OR_AWAY}|valid|good|free|off|trial|blocked|banned|frozen)\b[^.]{{0,24}}"
    r"\bfor\s+(?:about\s+|another\s+|up\s+to\s+|the\s+)?$"
)
_BE = re.compile(r"\b(?:be|stay|staying|remain|last|run|continue|travel|travelling|traveling|visit|visiting)\b")
_FOR = re.compile(r"\bfor\s+(?:about\s+|another\s+|up\s+to\s+)?$")


def validity(
    text: str, mentions: Sequence[Mention], reference: datetime, zone: ZoneInfo
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


_LINK = re.compile(r"(?:-|–|—|~|\b(?:to|until|till?|through|thru|and)\b)")
_UNTIL = re.compile(r"(?:up\s+)?(?:until|till?|through|thru)\b")
_STILL = re.compile(r"\b(?:now|today|present|date|currently|but|since|then)\b")
_NEGATION = re.compile(r"\b(?:no|not|never|cannot|won['\u2019]t|\w+n['\u2019]t)\b")


def held(text: str, mentions: Sequence[Mention], reference: datetime) -> tuple[datetime | None, datetime] | None:
    """From when until when a statement of one sentence says that it holds, in UTC: "worked at Netflix from 2016 to
    2020", "on leave until 5 March". A beginning that is still to come is left out: the plan is known before. None for
    what holds again and again ("works from Monday to Friday"), for hours of a day, and for "not until Monday", which
    begins then.
    """
    if len(mentions) != 1 or len(text) > MAX_CHARS or len(_sentences(text)) != 1:
        return None
    (mention,) = mentions
    sentence, words = text.lower(), mention.text.lower()
    if mention.kind != "range" or mention.ends_at is None or tense.is_habit(sentence) or _STILL.search(sentence):
        return None
    begins, ends = mention.begins_at, mention.ends_at
    if begins is None:
        return (None, ends) if _UNTIL.match(words) and not _NEGATION.search(sentence[: mention.start]) else None
    if not _LINK.search(words) or ends - begins < timedelta(days=1):
        return None
    if not re.search(r"\d", words) and tense.lean(sentence, mention.start) is Lean.NONE:
        return None
    return begins if begins is not None and begins <= reference else None, ends


def _sentences(text: str) -> list[tuple[int, int]]:
    return [(start, end) for start, end in gate.split(text) if text[start:end].strip(" .!?\n")]


def _expiry(sentence: str, offset: int, mentions: Sequence[Mention], reference: datetime) -> datetime | None:
    """When what a sentence says is over; None for a record, a habit or a fact without an end."""
    habit = any(m.kind == "set" for m in mentions) or tense.is_habit(sentence) or _recurs(sentence, mentions, offset)
    ends = []
    for mention in mentions:
        if mention.kind == "duration" and not habit and (end := _lasting(sentence, mention, offset, reference)):
            ends.append(end)
        if mention.ends_at is None or mention.kind in ("set", "duration"):
            continue
        end = _end(mention)
        if (
            mention.ends_at >= reference
            and end > reference
            and _bound(sentence, mention, offset, reference, habit=habit)
        ):
            ends.append(end)
    return max(ends, default=None)


def _recurs(sentence: str, mentions: Sequence[Mention], offset: int) -> bool:
    """Whether its times may be those of every week, and no verb or plan says otherwise: "there Monday to Thursday",
    "yoga is Tuesday and Thursday"."""
    lean = tense.leaning(sentence)
    bare = [m for m in mentions if recurring.may_recur(m.text) and lean(m.start - offset) is Lean.NONE]
    several = any(recurring.spans(m.text) for m in bare) or len({m.text.lower() for m in bare}) > 1
    return several and not _PASSING_STATE.search(sentence)


def _lasting(sentence: str, mention: Mention, offset: int, reference: datetime) -> datetime | None:
    """The end of "away for two weeks", "valid for 90 days", counted from `reference` (aware, local)."""
    before = sentence[: mention.start - offset]
    amount = recurring.length(mention.text)
    lean = tense.lean(sentence, mention.start - offset)
    holds = _HOLDING.search(before) or (lean is Lean.FUTURE and _FOR.search(before) and _BE.search(before))
    if amount is None or lean is Lean.PAST or not holds:
        return None
    count, unit = amount
    try:
        if unit in calendar.SECONDS_OF or count != int(count):
            hours = {"day": 24, "week": 168, "month": 730, "year": 8766}.get(unit, 0)
            return reference.astimezone(UTC) + timedelta(seconds=count * calendar.SECONDS_OF.get(unit, hours * 3600))
        return calendar.shift(reference, int(count), unit)
    except (ValueError, OverflowError, KeyError):
        return None


def _end(mention: Mention) -> datetime:
    """Where an instant is an appointment, its end; a deadline and a range end where they say."""
    assert mention.ends_at
    if mention.kind in _INSTANTS and mention.begins_at == mention.ends_at and mention.ends_at.second == 0:
        return mention.ends_at + APPOINTMENT
    return mention.ends_at


def _bound(sentence: str, mention: Mention, offset: int, reference: datetime, *, habit: bool) -> bool:
    """Whether the sentence holds only as long as the mentioned time does."""
    position = mention.start - offset
    if _LIMIT.match(mention.text.lower()) and mention.begins_at is None:
        return not _recorded(sentence, position)
    if habit or (mention.kind == "time" and not _PLAN.search(sentence)):
        return False
    return not _recorded(sentence, position) or (mention.begins_at or reference) > reference


def _recorded(sentence: str, position: int) -> bool:
    """Whether a past verb governs what stands at a position: "finished it this week", "was out until Friday"."""
    return tense.lean(sentence, position) is Lean.PAST
