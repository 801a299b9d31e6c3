"""Does what is bound to a time expire with it, and nothing else?"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from service.domain.temporal import TemporalTag, TemporalType
from service.language import temporal

WEDNESDAY = datetime(2026, 11, 11, 14, 30, tzinfo=UTC)
LONDON, NEW_YORK = ZoneInfo("UTC"), ZoneInfo("America/New_York")


def expiry(text: str, zone: ZoneInfo = LONDON) -> datetime | None:
    found = temporal.find(text, WEDNESDAY, zone)
    kind, until = temporal.validity(text, found, WEDNESDAY, zone)
    assert (kind is TemporalType.TEMPORAL) == (until is not None)
    return until


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("Meeting at 3pm tomorrow", "2026-11-12T16:00"),
        ("Meeting at 3pm tomorrow for two hours", "2026-11-12T17:00"),
        ("On-call rotation through Friday", "2026-11-14T00:00"),
        ("The voucher is valid until March 3", "2027-03-04T00:00"),
        ("Staying with Ola for the next two weeks", "2026-11-26T00:00"),
        ("This week I'm in Porto", "2026-11-16T00:00"),
        ("I'll be away for two weeks", "2026-11-25T14:30"),
        ("The pass is valid for 90 days", "2027-02-09T14:30"),
        ("I booked a table for December 3", "2026-12-04T00:00"),
        ("Submit the form by April 15", "2027-04-16T00:00"),
        ("The trial expires in 14 days", "2026-11-26T00:00"),
        ("We will migrate the cluster in Q1 2027", "2027-04-01T00:00"),
        ("Choir every Tuesday until December 15", "2026-12-16T00:00"),
        ("Call the bank at 5pm", "2026-11-11T18:00"),
        ("The ferry leaves in 20 minutes", "2026-11-11T15:50"),
        ("Solve the captcha in two hours", "2026-11-11T17:30"),
        ("Dinner with Ada tomorrow at 7. Bring wine.", "2026-11-12T20:00"),
    ],
)
def test_bound_to_a_time(text: str, until: str) -> None:
    assert expiry(text) == datetime.fromisoformat(until).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Client prefers async standups",
        "Postgres is the primary database",
        "I was born in 1990",
        "My birthday is on May 3",
        "We moved to Postgres in 2021",
        "She prefers tea since May",
        "I go running every Monday at 9",
        "I wake up at 6am",
        "The shop opens at 9am",
        "I met Ben yesterday for lunch",
        "I finished the report this week",
        "She was on leave until last Friday",
        "It broke half an hour ago",
        "From next month Ines leads the team",
        "I have worked here since 2019",
        "I'm allergic to nuts. Dinner tomorrow at 7.",
        "The second floor may be free",
    ],
)
def test_durable(text: str) -> None:
    assert expiry(text) is None


def test_the_end_of_a_day_is_local() -> None:
    assert expiry("On call through Friday", NEW_YORK) == datetime(2026, 11, 14, 5, tzinfo=UTC)


def test_documents_do_not_expire() -> None:
    assert expiry("Meeting tomorrow at 3pm. " * 100) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Works at Acme", TemporalTag.CURRENT),
        ("Plays a cello from 1911", TemporalTag.CURRENT),
        ("She rides a motorbike from 2015", TemporalTag.CURRENT),
        ("Rows two kilometres in nine minutes", TemporalTag.CURRENT),
        ("Milo is getting engaged on 2 May", TemporalTag.FUTURE),
        ("Played a concert in 2015", TemporalTag.PAST),
        ("Has lived in Oslo since 2019", TemporalTag.CURRENT),
        ("Was born in 1990", TemporalTag.CURRENT),
        ("This week she is in Porto", TemporalTag.CURRENT),
        ("Moved to Berlin", TemporalTag.CURRENT),
        ("I wear glasses with a broken and glued frame", TemporalTag.CURRENT),
        ("I never eat in crowded places", TemporalTag.CURRENT),
        ("User likes dried apricots", TemporalTag.CURRENT),
        ("I do not want to hear about football", TemporalTag.CURRENT),
        ("I think he walked here", TemporalTag.PAST),
        ("I walked here", TemporalTag.PAST),
        ("I play chess and will join a club", TemporalTag.FUTURE),
        ("Used to work at Acme", TemporalTag.PAST),
        ("No longer eats meat", TemporalTag.PAST),
        ("Went hiking on Saturday", TemporalTag.PAST),
        ("The team moved to Postgres in 2021", TemporalTag.PAST),
        ("Will join in March", TemporalTag.FUTURE),
        ("From next month Ines leads the team", TemporalTag.FUTURE),
        ("Plans to learn Greek", TemporalTag.FUTURE),
        ("Flight to Rome on December 3", TemporalTag.FUTURE),
    ],
)
def test_tags(text: str, expected: TemporalTag) -> None:
    assert temporal.tag(text, temporal.find(text, WEDNESDAY, LONDON), WEDNESDAY) is expected
