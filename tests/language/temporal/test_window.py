"""Which stretch of the past does a question mean?"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from service.language import temporal

WEDNESDAY = datetime(2026, 11, 11, 14, 30, tzinfo=UTC)


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


@pytest.mark.parametrize(
    ("query", "begins", "ends"),
    [
        ("last week", "2026-11-02", "2026-11-09"),
        ("yesterday", "2026-11-10", "2026-11-11"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("in May", "2026-05-01", "2026-06-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("2024", "2024-01-01", "2025-01-01"),
        ("since March", "2026-03-01", None),
        ("before 2022", None, "2022-01-01"),
        ("since 2020 and before 2023", "2020-01-01", "2023-01-01"),
        ("between March and June", "2026-03-01", "2026-07-01"),
        ("what did I do on Friday", "2026-11-06", "2026-11-07"),
        ("what am I doing on Friday", "2026-11-13", "2026-11-14"),
        ("what is planned for Friday?", "2026-11-13", "2026-11-14"),
        ("meetings next week", "2026-11-16", "2026-11-23"),
        ("the last three days", "2026-11-08", "2026-11-11T14:30"),
        ("who called at 3pm yesterday", "2026-11-10T15:00", "2026-11-10T16:00"),
        ("summer of 2019", "2019-06-01", "2019-09-01"),
        ("in 2021 and in 2023", "2021-01-01", "2024-01-01"),
        ("a week ago", "2026-11-04", "2026-11-05"),
        ("more than a week ago", None, "2026-11-04"),
        ("what did I say over a week ago?", None, "2026-11-04"),
        ("at least 2 hours ago", None, "2026-11-11T12:30"),
        ("less than a week ago", "2026-11-04", None),
        ("not more than a week ago", "2026-11-04", None),
        ("less than 2 hours ago", "2026-11-11T12:30", None),
        ("what did we do in May and June 2023?", "2023-05-01", "2023-07-01"),
        ("May, June or July 2023", "2023-05-01", "2023-08-01"),
        ("in May 2022 and June 2023", "2022-05-01", "2023-07-01"),
        ("3 to 5 days ago", "2026-11-06", "2026-11-09"),
        ("between two and three weeks ago", "2026-10-21", "2026-10-29"),
        ("May 2023 to now", "2023-05-01", None),
        ("how did it change from May 2023 until today?", "2023-05-01", None),
        ("between yesterday and today", "2026-11-10", None),
        ("a week ago today", "2026-11-04", "2026-11-05"),
        ("the first Monday of May 2023", "2023-05-01", "2023-05-02"),
        ("who came on the last Friday of June 2019?", "2019-06-28", "2019-06-29"),
        ("the fifth Monday of May 2023", "2023-05-29", "2023-05-30"),
    ],
)
def test_understood(query: str, begins: str | None, ends: str | None) -> None:
    assert temporal.window(query, WEDNESDAY, ZoneInfo("UTC")) == (moment(begins), moment(ends))


@pytest.mark.parametrize("query", ["", "who is Ada", "what does she do every Monday", "for two weeks"])
def test_not_understood(query: str) -> None:
    assert temporal.window(query, WEDNESDAY, ZoneInfo("UTC")) is None


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
    ],
)
def test_floods_are_read_in_no_time(flood: str) -> None:
    began = time.thread_time()
    temporal.window(flood, WEDNESDAY, ZoneInfo("UTC"))
    assert time.thread_time() - began < 2
