"""Percentiles, means and tables of measurements, and the speed of cores."""

from __future__ import annotations

import math
import os

import pytest

from bench.core_speed import Sample, slowest_core_ms, steady
from bench.numbers import Pace, percentile, shown, table


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([5.0], 0.99, 5.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
        ([float(n) for n in range(1, 101)], 0.95, 95.0),
        ([float(n) for n in range(1, 101)], 0.99, 99.0),
        ([1.0, 2.0], 0.0, 1.0),
        ([1.0, 2.0], 1.0, 2.0),
    ],
)
def test_percentile_is_a_measured_value(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_nothing_measured() -> None:
    assert math.isnan(percentile([], 0.5))


def test_the_median_of_runs_is_taken_figure_by_figure() -> None:
    runs = [Pace(10, 1, 9, 20), Pace(30, 3, 5, 60), Pace(20, 2, 7, 40)]
    assert Pace.median(runs) == Pace(20, 2, 7, 40)


def test_pace_of_a_run() -> None:
    assert Pace.of([10.0, 20.0, 30.0, 40.0], 2.0) == Pace(2.0, 20.0, 40.0, 40.0)


@pytest.mark.parametrize(
    ("cell", "text"), [(1234.5, "1234"), (12.34, "12.3"), (1.234, "1.23"), (math.nan, "-"), (3, "3"), ("a", "a")]
)
def test_digits(cell: object, text: str) -> None:
    assert shown(cell) == text


def test_columns_stand_below_each_other() -> None:
    assert table(["load", "ms"], [["one", 1.5], ["sixteen", 120.0]]).splitlines() == [
        "load       ms",
        "one      1.50",
        "sixteen   120",
    ]


# -- speed of cores ----------------------------------------------------------------------------------------------------


def test_samples_of_slow_moments_are_left_out() -> None:
    took = [Sample(50.0, 2.0), Sample(48.0, 2.39), Sample(80.0, 2.41), Sample(90.0, 4.0)]
    assert steady(took) == [50.0, 48.0]
    assert steady([]) == []


def test_every_core_is_asked_and_the_process_may_use_all_of_them_afterwards() -> None:
    ours = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    assert slowest_core_ms() > 0
    if ours is not None:
        assert os.sched_getaffinity(0) == ours
