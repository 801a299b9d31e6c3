"""Samples of slow moments are left out, and the process may use every core afterwards."""

from __future__ import annotations

import os

from bench.core_speed import Sample, slowest_core_ms, steady


def test_samples_of_slow_moments_are_left_out() -> None:
    took = [Sample(50.0, 2.0), Sample(48.0, 2.39), Sample(80.0, 2.41), Sample(90.0, 4.0)]
    assert steady(took) == [50.0, 48.0]
    assert steady([]) == []


def test_every_core_is_asked_and_the_process_may_use_all_of_them_afterwards() -> None:
    ours = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    assert slowest_core_ms() > 0
    if ours is not None:
        assert os.sched_getaffinity(0) == ours
