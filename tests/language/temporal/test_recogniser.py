"""Does the second step help where our rules end, and never hurt?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from service.language import temporal
from service.language.temporal import recogniser

WEDNESDAY = datetime(2026, 11, 11, 14, 30, tzinfo=UTC)
LONDON = ZoneInfo("UTC")


class Broken:
    def parse(self, text: str, reference: datetime) -> Any:
        raise IndexError(text)


def test_it_reads_what_our_rules_do_not() -> None:
    found = temporal.find("The boat sails tomorrow at six forty five", WEDNESDAY, LONDON)
    assert [m.begins_at for m in found] == [datetime(2026, 11, 12, 18, 45, tzinfo=UTC)]


def test_a_failing_recogniser_leaves_our_own_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recogniser, "_model", Broken)
    found = temporal.find("The boat sails tomorrow at six forty five", WEDNESDAY, LONDON)
    assert [m.text for m in found] == ["tomorrow"]


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("lunch \x00\x00\x00 with ada", False),
        ("what a day it was for the second team", False),
        ("three weeks after the launch", True),
        ("on ramadan we rest", True),
        ("the easter egg", False),
    ],
)
def test_it_is_asked_seldom(text: str, worth: bool) -> None:
    assert recogniser.worth_asking(text) is worth


@pytest.mark.parametrize(
    ("times", "asked"),
    [
        ("two weeks ago " * 4, True),  # its work doubles with each: with 28 of them it took 10 GB
        ("two weeks ago " * 9, False),
        ("2023-05-01 2023-05-03 " * 4, True),
        ("2023-05-01 2023-05-03 " * 5, False),
    ],
)
def test_it_is_never_asked_about_a_list_of_times(monkeypatch: pytest.MonkeyPatch, times: str, asked: bool) -> None:
    seen: list[str] = []

    class Listening:
        def parse(self, text: str, reference: datetime) -> list[Any]:
            seen.append(text)
            return []

    monkeypatch.setattr(recogniser, "_model", Listening)
    assert temporal.find(f"It was {times}then", WEDNESDAY, LONDON)
    assert bool(seen) is asked


def test_the_lists_of_time_zones_are_read_once() -> None:
    from ms_recognizers_date_time.date_time.english import timezone_extractor_config  # type: ignore[import-untyped]

    recogniser.warm()
    one, other = (timezone_extractor_config.EnglishTimeZoneExtractorConfiguration() for _ in range(2))
    assert one.timezone_matcher is other.timezone_matcher
    assert one.location_matcher.find("new york")
