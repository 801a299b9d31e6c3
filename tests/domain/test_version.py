"""Where a statement belongs among the versions of a value."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

from service.domain.version import Version, begins, place


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def version(value: str, *said: int, since: int | None = None, until: int | None = None, past: bool = True) -> Version:
    start, end = since and year(since), until and year(until)
    return Version(uuid4(), value, value, tuple(map(year, said)), start or None, end or None, past)


def places(line: list[Version], value: str, said: int, *, since: int | None = None, until: int | None = None) -> object:
    start, end = since and year(since), until and year(until)
    found = place(line, value, year(said), start or None, end or None)
    names: dict[UUID, str] = {each.id: each.text for each in line}
    sides = [names[each.id] if each else None for each in (found.before, found.after, found.known)]
    return (found.t_valid and found.t_valid.year, found.t_invalid and found.t_invalid.year, *sides, found.is_split)


def test_the_first_holds_since_ever_and_each_until_the_next() -> None:
    line = [version("berlin", 2018, until=2020), version("paris", 2020, since=2020, past=False)]
    assert places(line, "rome", 2016) == (None, 2018, None, "berlin", None, False)
    assert places(line, "rome", 2019) == (2019, 2020, "berlin", "paris", None, False)
    assert places(line, "rome", 2021) == (2021, None, "paris", None, None, False)
    assert places([], "rome", 2021) == (None, None, None, None, None, False)


def test_what_a_neighbour_says_already_is_known() -> None:
    line = [version("berlin", 2018, until=2020), version("paris", 2020, since=2020, past=False)]
    assert places(line, "berlin", 2019)[-2] == "berlin"  # type: ignore[index]
    assert places(line, "paris", 2019)[-2] == "paris"  # type: ignore[index]
    assert places(line, "berlin", 2018)[-2] == "berlin"  # type: ignore[index]


def test_a_value_said_before_and_after_is_split() -> None:
    line = [version("berlin", 2018, 2022, past=False)]
    assert places(line, "paris", 2020) == (2020, 2022, "berlin", None, None, True)


def test_own_times_count_before_the_time_of_saying() -> None:
    line = [version("google", 2021, past=False)]
    assert places(line, "netflix", 2026, since=2016, until=2020) == (2016, 2020, None, "google", None, False)
    assert places(line, "netflix", 2026, since=2016) == (2016, 2021, None, "google", None, False)
    assert places(line, "netflix", 2026, until=2020) == (None, 2020, None, "google", None, False)
    assert begins(year(2026), None, year(2030)) == year(2026)
