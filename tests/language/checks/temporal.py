"""Checks of tests/corpora/temporal: times in notes and in questions."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from unittest.mock import patch
from zoneinfo import ZoneInfo

from service.domain.temporal import TemporalType, TimeMention
from service.language import temporal
from service.language.talk import dates
from service.language.temporal import tense, words
from service.language.temporal.find import pieces
from service.language.temporal.pieces import TimeContext

UTC_ZONE, BERLIN, NEW_YORK = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
WEDNESDAY = datetime(2026, 11, 11, 14, 30, tzinfo=UTC)
WEDNESDAY_IN_MARCH = datetime(2026, 3, 4, 10, tzinfo=UTC)
WEDNESDAY_IN_BERLIN = datetime(2024, 5, 15, 14, 30, tzinfo=BERLIN)
SUNDAY_IN_NEW_YORK = datetime(2025, 3, 2, 9, 15, tzinfo=NEW_YORK)


def local(moment: datetime | None, zone: ZoneInfo) -> str | None:
    """A moment as the corpora write it: "2026-11-12" for midnight, else with its time."""
    if moment is None:
        return None
    text = moment.astimezone(zone).isoformat(timespec="seconds")[:19]
    return text[:10] if text.endswith("T00:00:00") else text.removesuffix(":00")


def at(text: str) -> datetime:
    """A moment with an offset, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def the_only(text: str, now: datetime = WEDNESDAY, zone: ZoneInfo = UTC_ZONE) -> TimeMention:
    """The only time named in a text."""
    [mention] = temporal.find(text, now, zone)
    return mention


def window_of(query: str, now: datetime, zone: ZoneInfo) -> tuple[str | None, str | None]:
    found = temporal.window(query, now, zone)
    assert found is not None
    return local(found[0], zone), local(found[1], zone)


def check_window_in_berlin(query: str, begins: str | None, ends: str | None) -> None:
    """On a Wednesday in May."""
    assert window_of(query, WEDNESDAY_IN_BERLIN, BERLIN) == (begins, ends)


def check_window_in_new_york(query: str, begins: str | None, ends: str | None) -> None:
    """On a Sunday in March."""
    assert window_of(query, SUNDAY_IN_NEW_YORK, NEW_YORK) == (begins, ends)


def check_window_in_utc(query: str, begins: str | None, ends: str | None) -> None:
    assert window_of(query, WEDNESDAY, UTC_ZONE) == (begins, ends)


def check_window_none(query: str) -> None:
    assert temporal.window(query, WEDNESDAY_IN_BERLIN, BERLIN) is None


def check_repeats(phrase: str) -> None:
    """A row of one phrase is read in little CPU time; test_temporal.py reads whole floods."""
    began_s = time.thread_time()
    temporal.window(phrase * 300, WEDNESDAY_IN_BERLIN, BERLIN)
    assert time.thread_time() - began_s < 0.5


def check_find(text: str, begins: str | None, ends: str | None) -> None:
    """The reading, and that the list of first words would not have missed it."""
    mention = the_only(text)
    assert (local(mention.begins_at, UTC_ZONE), local(mention.ends_at, UTC_ZONE)) == (begins, ends)
    context = TimeContext(text.lower(), text, WEDNESDAY, UTC_ZONE, tense.leaning(text.lower()))
    listed = list(pieces(context))
    every_word = frozenset(word[: words.START_CHARS] for word in text.lower().replace(",", " ").split())
    with patch.object(words, "STARTS", words.STARTS | every_word):
        assert list(pieces(context)) == listed


def check_recurring(text: str) -> None:
    """What recurs has no bounds."""
    mention = the_only(text)
    assert (mention.kind, mention.begins_at, mention.ends_at) == ("set", None, None)


def check_no_times(text: str) -> None:
    assert [each for each in temporal.find(text, WEDNESDAY, UTC_ZONE) if each.begins_at or each.ends_at] == []


def check_dated(text: str, dated: str) -> None:
    """Only expressions that certainly mean a date have it written after them."""
    assert dates.date_expressions(text, WEDNESDAY_IN_MARCH, UTC_ZONE) == dated


def check_zones(text: str, now: str, zone: str, begins: str, ends: str, why: str = "") -> None:
    mention = the_only(text, at(now), ZoneInfo(zone))
    assert (mention.begins_at, mention.ends_at) == (at(begins), at(ends)), why
    assert mention.begins_at is not None
    assert mention.begins_at.tzinfo is UTC


def expiry_of(text: str, zone: ZoneInfo = UTC_ZONE) -> datetime | None:
    kind, until = temporal.validity(text, temporal.find(text, WEDNESDAY, zone), WEDNESDAY, zone)
    assert (kind is TemporalType.TEMPORAL) == (until is not None)
    return until


def check_expiry(text: str, until: str) -> None:
    assert expiry_of(text) == datetime.fromisoformat(until).replace(tzinfo=UTC)


def check_durable(text: str) -> None:
    assert expiry_of(text) is None


def check_tags(text: str, expected: str) -> None:
    assert temporal.tag(text, temporal.find(text, WEDNESDAY, UTC_ZONE), WEDNESDAY) == expected
