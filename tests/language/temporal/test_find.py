"""Are times found where they stand, and read as a note-taker means them?"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.temporal import Mention
from service.language import temporal
from service.language.temporal import gate, scan, tense
from service.language.temporal.pieces import TimeContext

WEDNESDAY = datetime(2026, 11, 11, 14, 30, tzinfo=UTC)
LONDON, NEW_YORK, KOLKATA = ZoneInfo("UTC"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")


def local(moment: datetime | None, zone: ZoneInfo) -> str | None:
    """A moment as the tables write it: "2026-11-12" for midnight, else with its time."""
    if moment is None:
        return None
    text = moment.astimezone(zone).isoformat(timespec="seconds")[:19]
    return text[:10] if text.endswith("T00:00:00") else text[:16] if text.endswith(":00") else text


def one(text: str, reference: datetime = WEDNESDAY, zone: ZoneInfo = LONDON) -> Mention:
    found = temporal.find(text, reference, zone)
    assert len(found) == 1, found
    return found[0]


Case = tuple[str, str | None, str | None]
DAYS: list[Case] = [
    ("Pick up the parcel today", "2026-11-11", "2026-11-12"),
    ("Parcel arrives tomorrow", "2026-11-12", "2026-11-13"),
    ("We spoke yesterday", "2026-11-10", "2026-11-11"),
    ("Leaving the day after tomorrow", "2026-11-13", "2026-11-14"),
    ("Released 2024-03-05", "2024-03-05", "2024-03-06"),
    ("Signed on 3/4/2024", "2024-03-04", "2024-03-05"),
    ("Signed on 25/4/2024", "2024-04-25", "2024-04-26"),
    ("Signed on 25.4.2024", "2024-04-25", "2024-04-26"),
    ("She was hired on March 5, 2019", "2019-03-05", "2019-03-06"),
    ("The audit is on the 3rd of December", "2026-12-03", "2026-12-04"),
    ("The audit was on the 3rd of December", "2025-12-03", "2025-12-04"),
    ("We'll meet on June twenty second", "2027-06-22", "2027-06-23"),
    ("I will call on Friday", "2026-11-13", "2026-11-14"),
    ("I called on Friday", "2026-11-06", "2026-11-07"),
    ("Shipped last Friday", "2026-11-06", "2026-11-07"),
    ("Demo next Friday", "2026-11-20", "2026-11-21"),
    ("Demo this Friday", "2026-11-13", "2026-11-14"),
    ("Rehearsal on Friday, November 20", "2026-11-20", "2026-11-21"),
    ("Rehearsal Friday the 20th", "2026-11-20", "2026-11-21"),
    ("He moved out 3 weeks ago", "2026-10-21", "2026-10-22"),
    ("The contract ends in two months", "2027-01-11", "2027-01-12"),
    ("Review a week from Friday", "2026-11-20", "2026-11-21"),
    ("Due two days before Christmas", "2026-12-23", "2026-12-24"),
    ("Flying home on Thanksgiving", "2026-11-26", "2026-11-27"),
    ("Paid on the 1st", "2026-11-01", "2026-11-02"),
    ("Payable on the 31st, please", "2026-12-31", "2027-01-01"),
    ("Closing on the last day of the month", "2026-11-30", "2026-12-01"),
    ("The plan was drawn up on 6 April nineteen eighty four", "1984-04-06", "1984-04-07"),
]

PERIODS: list[Case] = [
    ("Busy this week", "2026-11-09", "2026-11-16"),
    ("Busy next week", "2026-11-16", "2026-11-23"),
    ("We talk the week after next", "2026-11-23", "2026-11-30"),
    ("Ill the week before last", "2026-10-26", "2026-11-02"),
    ("Skiing this weekend", "2026-11-14", "2026-11-16"),
    ("Numbers for last month", "2026-10-01", "2026-11-01"),
    ("Off for the next three days", "2026-11-12", "2026-11-15"),
    ("In the last two weeks sales fell", "2026-10-28", "2026-11-11"),
    ("Revenue of Q3 2024", "2024-07-01", "2024-10-01"),
    ("Revenue of 2024-Q3", "2024-07-01", "2024-10-01"),
    ("Revenue in the third quarter of 2024", "2024-07-01", "2024-10-01"),
    ("Revenue in H1 2025", "2025-01-01", "2025-07-01"),
    ("In the summer of 2019 we met", "2019-06-01", "2019-09-01"),
    ("Last winter was cold", "2025-12-01", "2026-03-01"),
    ("Music from the 90s", "1990-01-01", "2000-01-01"),
    ("Cars from the early 1980s", "1980-01-01", "1985-01-01"),
    ("He studied there in 2011", "2011-01-01", "2012-01-01"),
    ("Hired in May 2023", "2023-05-01", "2023-06-01"),
    ("We launched in May", "2026-05-01", "2026-06-01"),
    ("We will launch in May", "2027-05-01", "2027-06-01"),
    ("Renovation at the end of the month", "2026-11-16", "2026-12-01"),
    ("Renovation early next month", "2026-12-01", "2026-12-16"),
    ("The first week of December is free", "2026-11-30", "2026-12-07"),
    ("The week of December 17 is free", "2026-12-14", "2026-12-21"),
    ("On leave from Monday to Wednesday", "2026-11-09", "2026-11-12"),
    ("On leave December 24-26", "2026-12-24", "2026-12-27"),
    ("On leave from December 28 to January 4", "2026-12-28", "2027-01-05"),
    ("It ran from November to February 2017", "2016-11-01", "2017-03-01"),
    ("He was chair from 2014 to 2018", "2014-01-01", "2019-01-01"),
    ("Anything in the coming weeks", "2026-11-12", "2026-12-03"),
]

CLOCKS: list[Case] = [
    ("Meeting at 3pm tomorrow", "2026-11-12T15:00", "2026-11-12T15:00"),
    ("Meeting tomorrow at 3", "2026-11-12T15:00", "2026-11-12T15:00"),
    ("Meeting tomorrow at 9", "2026-11-12T09:00", "2026-11-12T09:00"),
    ("Dinner tomorrow at 7", "2026-11-12T19:00", "2026-11-12T19:00"),
    ("Standup on Friday at 9:15", "2026-11-13T09:15", "2026-11-13T09:15"),
    ("Half past 3 tomorrow works", "2026-11-12T15:30", "2026-11-12T15:30"),
    ("Lunch on Friday at noon", "2026-11-13T12:00", "2026-11-13T12:00"),
    ("Back in half an hour", "2026-11-11T15:00", "2026-11-11T15:00"),
    ("It broke 20 minutes ago", "2026-11-11T14:10", "2026-11-11T14:10"),
    ("Call me tonight at 8", "2026-11-11T20:00", "2026-11-11T20:00"),
    ("Workshop tomorrow from 2 to 4:30pm", "2026-11-12T14:00", "2026-11-12T16:30"),
    ("Workshop Friday morning", "2026-11-13T08:00", "2026-11-13T12:00"),
    ("Logged 2024-03-05T10:00+02:00", "2024-03-05T08:00", "2024-03-05T08:00"),
    ("Due by EOD", None, "2026-11-11T23:59:59"),
    ("The show will be at 8pm", "2026-11-11T20:00", "2026-11-11T20:00"),
]

OPEN: list[Case] = [
    ("Vegan since Sunday", "2026-11-08", None),
    ("Vegan since 2019", "2019-01-01", None),
    ("From next month she leads the team", "2026-12-01", None),
    ("Everything before 2022 is archived", None, "2022-01-01"),
    ("Everything after 2022 is new", "2023-01-01", None),
    ("On call through Friday", None, "2026-11-14"),
    ("Valid until March 3", None, "2027-03-04"),
    ("Send it by the end of next month", None, "2027-01-01"),
    ("Away until next week", None, "2026-11-16"),
]


@pytest.mark.parametrize(("text", "begins", "ends"), DAYS + PERIODS + CLOCKS + OPEN)
def test_readings(text: str, begins: str | None, ends: str | None) -> None:
    mention = one(text)
    assert (local(mention.begins_at, LONDON), local(mention.ends_at, LONDON)) == (begins, ends)


@pytest.mark.parametrize(
    "text",
    [
        "I go swimming every Monday at 9",
        "Backups run daily",
        "She calls twice a week",
        "Closed on Sundays",
    ],
)
def test_what_recurs_has_no_bounds(text: str) -> None:
    mention = one(text)
    assert (mention.kind, mention.begins_at, mention.ends_at) == ("set", None, None)


@pytest.mark.parametrize(
    "text",
    [
        "This may take a while",
        "We march on",
        "The second draft is better",
        "Now that we use Redis, latency is fine",
        "Support is there 24/7",
        "About 3/4 of the users agreed",
        "Call 555-0143 or 138-2010-2015",
        "Release 3.2.1 is out",
        "It costs $2021",
        "There were 2000 people",
        "The rope may fall and spring back",
        "A ratio of 16:9 and a room 204",
        "He is 5 years old",
        "Bring 3 to 5 people",
        "The sun sat low, they wed",
        "April likes cats",
        "Port 8080 on 192.168.1.20",
        "Until further notice",
        "February 30",
        "The Christmas tree is green",
        "She ran it in 3 hours flat before",
        "Rows two kilometres in nine minutes",
        "Gets to the office in 20 minutes by tram",
        "I can type a page in four minutes",
        "Our oven bakes a loaf in 35 minutes",
    ],
)
def test_words_and_numbers_that_are_no_times(text: str) -> None:
    assert [m for m in temporal.find(text, WEDNESDAY, LONDON) if m.begins_at or m.ends_at] == []


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("text", "now", "zone", "begins", "ends"),
    [
        # The night the clocks go forward in New York: 2026-03-08, 2 o'clock does not exist.
        ("tomorrow at 3pm", "2026-03-07T15:00-05:00", NEW_YORK, "2026-03-08T15:00-04:00", "2026-03-08T15:00-04:00"),
        ("tomorrow at 2:30am", "2026-03-07T15:00-05:00", NEW_YORK, "2026-03-08T03:30-04:00", "2026-03-08T03:30-04:00"),
        ("in 24 hours", "2026-03-07T15:00-05:00", NEW_YORK, "2026-03-08T16:00-04:00", "2026-03-08T16:00-04:00"),
        ("in one day", "2026-03-07T15:00-05:00", NEW_YORK, "2026-03-08T00:00-05:00", "2026-03-09T00:00-04:00"),
        # The night they go back: the day has 25 hours.
        ("tomorrow", "2026-10-31T16:00-04:00", NEW_YORK, "2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00"),
        # Half past one at night on New Year's Day in Kolkata is still the old year in UTC.
        ("today", "2026-12-31T20:00+00:00", KOLKATA, "2027-01-01T00:00+05:30", "2027-01-02T00:00+05:30"),
        ("this year", "2026-12-31T20:00+00:00", KOLKATA, "2027-01-01T00:00+05:30", "2028-01-01T00:00+05:30"),
        ("last month", "2026-12-31T20:00+00:00", KOLKATA, "2026-12-01T00:00+05:30", "2027-01-01T00:00+05:30"),
        ("tomorrow at 9", "2026-12-31T20:00+00:00", KOLKATA, "2027-01-02T03:30+00:00", "2027-01-02T03:30+00:00"),
        # Leap years and the ends of months.
        ("a year ago", "2024-02-29T12:00+00:00", LONDON, "2023-02-28T00:00+00:00", "2023-03-01T00:00+00:00"),
        ("in a month", "2026-01-31T12:00+00:00", LONDON, "2026-02-28T00:00+00:00", "2026-03-01T00:00+00:00"),
        ("February 29", "2026-01-31T12:00+00:00", LONDON, "2028-02-29T00:00+00:00", "2028-03-01T00:00+00:00"),
        ("next month", "2026-12-31T12:00+00:00", LONDON, "2027-01-01T00:00+00:00", "2027-02-01T00:00+00:00"),
    ],
)
def test_zones_clocks_and_calendars(text: str, now: str, zone: ZoneInfo, begins: str, ends: str) -> None:
    mention = one(text, at(now), zone)
    assert (mention.begins_at, mention.ends_at) == (at(begins), at(ends))
    assert mention.begins_at is not None
    assert mention.begins_at.tzinfo is UTC


def test_several_times_keep_their_places() -> None:
    text = "Yesterday we met; on Friday at 3pm we will meet again. By March 3, all is done."
    found = temporal.find(text, WEDNESDAY, LONDON)
    assert [m.text for m in found] == ["Yesterday", "Friday at 3pm", "By March 3"]
    assert all(text[m.start : m.end] == m.text for m in found)


def test_spans_survive_letters_whose_lower_case_is_longer() -> None:
    mention = one("İİİ İstanbul trip tomorrow")
    assert (mention.text, mention.start) == ("tomorrow", 18)


@pytest.mark.parametrize("year", [1, 9999])
def test_the_edges_of_the_calendar_find_nothing(year: int) -> None:
    reference = datetime(year, 1 if year == 1 else 12, 1 if year == 1 else 31, 12, tzinfo=UTC)
    text = "yesterday, last year, next decade, tomorrow, in 3000 years, 100 years ago, in May, on Friday"
    for mention in temporal.find(text, reference, NEW_YORK):
        assert mention.text in text


def test_a_naive_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        temporal.find("tomorrow", datetime(2026, 1, 1), LONDON)  # noqa: DTZ001


def test_a_megabyte_stays_bounded() -> None:
    text = ("We met on Monday and talked. " * 40_000)[:1_000_000]
    assert 0 < len(temporal.find(text, WEDNESDAY, LONDON)) <= 200
    assert not temporal.may_have_time("lorem ipsum dolor " * 50_000)


@pytest.mark.parametrize(("text", "begins", "ends"), DAYS + PERIODS + CLOCKS + OPEN)
def test_the_gate_and_the_list_of_first_words_miss_nothing(
    text: str, begins: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert temporal.may_have_time(text)
    scene = TimeContext(text.lower(), text, WEDNESDAY, LONDON, tense.leaning(text.lower()))
    listed = list(scan.pieces(scene))
    everything = frozenset(word for word in text.lower().replace(",", " ").split())
    monkeypatch.setattr(scan, "_STARTS", scan._STARTS | everything)
    assert list(scan.pieces(scene)) == listed


def test_sentences_end_where_sentences_end() -> None:
    text = "See you at 3 p.m. on Monday. Dr. Who came on Oct. 5 too. Nothing here."
    assert [text[a:b] for a, b in gate.sentences(text)] == [
        "See you at 3 p.m. on Monday.",
        "Dr. Who came on Oct. 5 too.",
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
