"""Rate limits and page sizes."""

from __future__ import annotations

from uuid import uuid4

import pytest

from service.http.admission import REMEMBERED, Buckets
from tests.fakes.ticks import Ticks


def test_a_burst_and_then_the_rate() -> None:
    clock, key = Ticks(), uuid4()
    buckets = Buckets(2, 3, clock)
    assert [buckets.take(key) for _ in range(4)] == [0, 0, 0, pytest.approx(0.5)]
    clock.now += 0.25
    assert buckets.take(key) == pytest.approx(0.25)
    clock.now += 0.25
    assert [buckets.take(key) for _ in range(2)] == [0, pytest.approx(0.5)]
    clock.now += 1_000.0
    assert [buckets.take(key) for _ in range(4)][2:] == [0, pytest.approx(0.5)]


def test_keys_do_not_share() -> None:
    buckets, one = Buckets(1, 1, Ticks()), uuid4()
    assert buckets.take(one) == 0
    assert buckets.take(one) > 0
    for _ in range(REMEMBERED):
        assert buckets.take(uuid4()) == 0
    assert buckets.take(one) == 0  # forgotten meanwhile
