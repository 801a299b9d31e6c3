from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from service.providers.retry import CallFailed, FailureReason, delay_s, retry_after_s, run

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "150", "retry-after": "1"}, 0.15),
        ({"retry-after": "Mon, 04 May 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 04 May 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 04 May 2026 12:00:30"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


def test_delays_double() -> None:
    limited = CallFailed(FailureReason.RATE_LIMIT)
    assert [delay_s(limited, attempt, 1.0) for attempt in range(3)] == [1.0, 2.0, 4.0]
    assert delay_s(CallFailed(FailureReason.RATE_LIMIT, retry_after_s=0.5), 2, 1.0) == 0.5


def failing(*reasons: CallFailed | float) -> tuple[Callable[[], Awaitable[str]], list[float]]:
    """A call that fails in this way, one after the other, or takes so many seconds; and when it was tried."""
    tried: list[float] = []
    rest = list(reasons)

    async def call() -> str:
        tried.append(time.monotonic())
        step = rest.pop(0) if rest else 0.0
        if isinstance(step, CallFailed):
            raise step
        await asyncio.sleep(step)
        return "done"

    return call, tried


async def test_the_fourth_failure_is_raised() -> None:
    call, tried = failing(*[CallFailed(FailureReason.SERVER, status=500)] * 9)
    with pytest.raises(CallFailed, match=r"server error \(500\)"):
        await run(call, retries=3, base_delay_s=0.001, deadline_s=5)
    assert len(tried) == 4


async def test_cancelling_is_not_a_failure() -> None:
    call, _ = failing(60.0)
    task = asyncio.create_task(run(call, retries=3, base_delay_s=1.0, deadline_s=30))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_errors_of_ours_pass_through() -> None:
    async def broken() -> str:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await run(broken, retries=3, base_delay_s=1.0, deadline_s=5)
