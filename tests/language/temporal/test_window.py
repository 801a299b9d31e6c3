"""Which stretch of the past does a question mean?"""

from __future__ import annotations

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
