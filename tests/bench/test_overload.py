"""What `make overload` calls good. What the service does with a burst: tests/http/test_admission.py."""

from __future__ import annotations

import pytest

from bench.clients import TimedResponse
from bench.overload import OverloadRun
from bench.pacing import PacedAnswer, PlannedRequest

ASKED = PlannedRequest("key", "POST", "/v1/memories")


def answer(status: int, ms: float, *, retry_after: bytes | None = b"1") -> PacedAnswer:
    waits = retry_after if status in (429, 503) else None
    return PacedAnswer(ASKED, 0.0, status, ms, TimedResponse(status, b"", ms, waits) if status else None)


NORMAL = [answer(201, 100.0)] * 100
GOOD = [answer(201, 290.0)] * 100 + [answer(429, 20.0)] * 200


def run(during: list[PacedAnswer] = GOOD, after: list[list[PacedAnswer]] | None = None) -> OverloadRun:
    return OverloadRun(NORMAL, 10.0, 30.0, during, [NORMAL] * 8 if after is None else after, 0.05)


def test_a_good_run() -> None:
    assert run().violations() == []
    assert run().recovered_s == 0
    assert "2.90 times the normal one" in str(run())


@pytest.mark.parametrize(
    ("during", "said"),
    [
        ([answer(201, 310.0)] * 100, "3.10 times"),
        ([*GOOD, answer(500, 1.0)], "{500: 1}"),
        ([*GOOD, answer(0, 1.0)], "{0: 1}"),
        ([*GOOD, answer(429, 1.0, retry_after=None)], "1 refusals say no Retry-After"),
        ([answer(201, 200.0), *[answer(503, 400.0)] * 50], "refusals take 400 ms"),
        ([answer(429, 1.0)], "nan times"),
    ],
)
def test_what_is_not_good(during: list[PacedAnswer], said: str) -> None:
    (found,) = run(during).violations()
    assert said in found


@pytest.mark.parametrize(("slow_seconds", "seconds"), [([], 0), ([1], 1), ([1, 5], 5), ([6], 6), ([8], None)])
def test_when_it_is_normal_again(slow_seconds: list[int], seconds: int | None) -> None:
    after = [[answer(201, 200.0)] if second in slow_seconds else NORMAL for second in range(1, 9)]
    found = run(after=after)
    assert found.recovered_s == seconds
    assert bool(found.violations()) == (seconds is None or seconds > 5)


def test_a_refusal_after_the_end_is_not_normal() -> None:
    assert run(after=[[*NORMAL, answer(429, 1.0)], *[NORMAL] * 7]).recovered_s == 1
