"""Times in texts: places, zones, the edges of the calendar, and that no text breaks the reading."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.language import sentences, temporal
from tests.language.checks.temporal import (
    BERLIN,
    NEW_YORK,
    UTC_ZONE,
    WEDNESDAY,
    WEDNESDAY_IN_BERLIN,
    expiry_of,
    local,
    the_only,
)


def test_a_night_goes_on_to_the_morning_across_a_change_of_clocks() -> None:
    """Clocks went forward in the night to 31 March 2024: it has nine hours."""
    sunday = datetime(2024, 3, 31, 12, tzinfo=BERLIN)
    assert temporal.window("last night", sunday, BERLIN) == (
        datetime(2024, 3, 30, 19, tzinfo=UTC),
        datetime(2024, 3, 31, 4, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("query", "begins"),
    [("what did I say tonight?", "2024-05-14T20:00"), ("what am I going to do tonight?", "2024-05-15T20:00")],
)
def test_tonight_after_midnight_is_the_night_that_runs(query: str, begins: str) -> None:
    found = temporal.window(query, WEDNESDAY_IN_BERLIN.replace(hour=2), BERLIN)
    assert found is not None
    assert local(found[0], BERLIN) == begins


def test_a_week_53() -> None:
    found = temporal.window("week 53", datetime(2020, 12, 30, 12, tzinfo=BERLIN), BERLIN)
    assert found is not None
    assert (local(found[0], BERLIN), local(found[1], BERLIN)) == ("2020-12-28", "2021-01-04")


def test_a_note_keeps_its_readings() -> None:
    """What a note says until when it holds is another question: its night ends with the day."""
    (mention,) = temporal.find("The pump runs tonight", WEDNESDAY_IN_BERLIN, BERLIN)
    assert (local(mention.begins_at, BERLIN), local(mention.ends_at, BERLIN)) == (
        "2024-05-15T20:00",
        "2024-05-15T23:59:59",
    )


@pytest.mark.parametrize("year", [1, 9999])
@pytest.mark.parametrize(
    "query",
    ["a year ago", "in a month", "2 hours ago", "tonight", "last night", "this time last year", "week 1", "in 3 hours"],
)
def test_windows_at_the_edges_of_the_calendar(query: str, year: int) -> None:
    reference = datetime(year, 1 if year == 1 else 12, 1 if year == 1 else 31, 12, tzinfo=UTC)
    temporal.window(query, reference, BERLIN)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("I sleep badly since my operation in August", "2026-08-01"),
        ("We heat with wood since the repair of the boiler in December", "2025-12-01"),
        ("We can't come since I'm flying in August", "2027-08-01"),
        ("Our dog turns 12 in February", "2027-02-01"),
    ],
)
def test_a_month_behind_since_is_past(text: str, begins: str) -> None:
    assert local(the_only(text).begins_at, UTC_ZONE) == begins


@pytest.mark.parametrize("text", ["It was cold, the longest frost in 20 years", "I won, first time in six years"])
def test_a_record_looks_back(text: str) -> None:
    assert all(mention.kind == "duration" for mention in temporal.find(text, WEDNESDAY, UTC_ZONE))


def test_several_times_keep_their_places() -> None:
    text = "Yesterday we met; on Friday at 3pm we will meet again. By March 3, all is done."
    found = temporal.find(text, WEDNESDAY, UTC_ZONE)
    assert [m.text for m in found] == ["Yesterday", "Friday at 3pm", "By March 3"]
    assert all(text[m.start : m.end] == m.text for m in found)


def test_spans_survive_letters_whose_lower_case_is_longer() -> None:
    mention = the_only("İİİ İstanbul trip tomorrow")
    assert (mention.text, mention.start) == ("tomorrow", 18)


@pytest.mark.parametrize("year", [1, 9999])
def test_the_edges_of_the_calendar_find_nothing(year: int) -> None:
    reference = datetime(year, 1 if year == 1 else 12, 1 if year == 1 else 31, 12, tzinfo=UTC)
    text = "yesterday, last year, next decade, tomorrow, in 3000 years, 100 years ago, in May, on Friday"
    for mention in temporal.find(text, reference, NEW_YORK):
        assert mention.text in text


def test_a_naive_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        temporal.find("tomorrow", datetime(2026, 1, 1), UTC_ZONE)  # noqa: DTZ001


def test_a_megabyte_stays_bounded() -> None:
    text = ("We met on Monday and talked. " * 40_000)[:1_000_000]
    assert 0 < len(temporal.find(text, WEDNESDAY, UTC_ZONE)) <= 300


def test_sentences_end_where_sentences_end() -> None:
    text = "See you at 3 p.m. on Monday. Dr. Meyer came on Oct. 5 too. Nothing here."
    assert [text[a:b] for a, b in sentences.split(text)] == [
        "See you at 3 p.m. on Monday.",
        "Dr. Meyer came on Oct. 5 too.",
        "Nothing here.",
    ]


PIECES = (
    "on at from to between until since before after the a last next this may march Friday Tue 5 5th 3pm 12:30 2024 99 "
    "Q3 week months of end early in ago and - , . / : every 90s Feb 29 30 31 noon tonight weekend half an hour two 3/4 "
    "7/13/2025"
)


WORDS = st.sampled_from(str.split(PIECES))


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    found = temporal.find(text, WEDNESDAY, NEW_YORK)
    ends = [0, *(m.end for m in found)]
    assert all(m.start >= end and m.text == text[m.start : m.end] for m, end in zip(found, ends, strict=False))
    assert all(m.begins_at <= m.ends_at for m in found if m.begins_at and m.ends_at)
    temporal.validity(text, found, WEDNESDAY, NEW_YORK)
    temporal.tag(text, found, WEDNESDAY)
    temporal.window(text, WEDNESDAY, NEW_YORK)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("I worked at Netflix from 2016 to 2020.", True),
        ("I collect stamps from 1920 to 1945.", False),
        ("The museum shows paintings from 1900 to 1950.", False),
        ("The deadline was moved from 10 March to 17 March.", False),
        ("The trip is postponed from 3 May to 20 May.", False),
        ("I'm in Oslo from 3 May to 20 May.", True),
        ("I moved to Oslo from 3 May to 20 May.", True),
        ("They've given us until July 17.", False),
        ("I have until Friday to hand it in.", False),
        ("We got until December 15 to appeal.", False),
        ("He gave me until Monday to decide.", False),
        ("I've only got until tomorrow to answer.", False),
        ("We\u2019ve until next week to reply.", False),
        ("Ben has been given until March 3.", False),
        ("You have time until Friday.", False),
        ("We're in Rome until Sunday.", True),
        ("I have the car until Friday.", True),
        ("They're giving us the hall until December 15.", True),
        ("She has been in Oslo until today.", False),
        ("I'm home until 5.", False),
        ("I'll be at the desk until 2.", False),
        ("I'm on call from 6 to 2.", False),
        ("We'll be open from Monday to Friday.", False),
        ("I'll be away from Monday to Friday next week.", True),
        ("We'll be in Rome from Friday to December 3.", True),
    ],
)
def test_only_the_time_of_a_statement_is_its_validity(text: str, held: bool) -> None:
    found = temporal.find(text, WEDNESDAY, NEW_YORK)
    assert (temporal.find_held(text, found, WEDNESDAY) is not None) is held


def test_the_end_of_a_day_is_local() -> None:
    assert expiry_of("On call through Friday", NEW_YORK) == datetime(2026, 11, 14, 5, tzinfo=UTC)


def test_documents_do_not_expire() -> None:
    assert expiry_of("Meeting tomorrow at 3pm. " * 100) is None


def test_the_zone_counts() -> None:
    found = temporal.window("yesterday", WEDNESDAY, ZoneInfo("Asia/Kolkata"))
    assert found == (datetime(2026, 11, 9, 18, 30, tzinfo=UTC), datetime(2026, 11, 10, 18, 30, tzinfo=UTC))


def test_a_day_of_a_month_is_local() -> None:
    """Clocks went forward on 31 March 2024, the last Sunday."""
    found = temporal.window("the last Sunday of March 2024", WEDNESDAY, ZoneInfo("Europe/Berlin"))
    assert found == (datetime(2024, 3, 30, 23, tzinfo=UTC), datetime(2024, 3, 31, 22, tzinfo=UTC))


@pytest.mark.parametrize(
    "flood",
    [
        "may, " * 20_000,
        "the last Friday of " * 5_000,
        "from " * 20_000,
        f"from{' ' * 90_000}to now",
        "1 to " * 20_000,
        " " * 99_000 + "now",
        "two nights ago " * 5_000,
        "in 5 days " * 5_000,
    ],
)
def test_floods_are_read_in_no_time(flood: str) -> None:
    began = time.thread_time()
    temporal.window(flood, WEDNESDAY, ZoneInfo("UTC"))
    assert time.thread_time() - began < 2
