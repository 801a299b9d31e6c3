"""Rules run in processes that can be stopped, and what they return, raise or use comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest

from service.errors import PiiRejected, TooCostly, Unavailable
from service.rule_processes import LONG_CHARS, RuleProcesses, cpu_limited


@pytest.fixture
def processes() -> Iterator[RuleProcesses]:
    found = RuleProcesses(workers=1, waiting=3, limit_s=0.3)
    yield found
    found.close()


def burn(seconds: float) -> int:
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass
    return os.getpid()


def refuse(field: str) -> None:
    raise PiiRejected("No.", field=field)


class OddError(Exception):
    """One that cannot be made again from its arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def fail() -> None:
    raise OddError("a", "b")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def test_the_result_comes_from_another_process(processes: RuleProcesses) -> None:
    first = await processes.run(os.getpid)
    assert first != os.getpid()
    assert await processes.run(os.getpid) == first, "a process serves many calls"
    assert await processes.run("".join, ["a", "b"]) == "ab"


async def test_a_short_text_stays_in_place(processes: RuleProcesses) -> None:
    assert await processes.run_if_long(LONG_CHARS, os.getpid) == os.getpid()
    assert await processes.run_if_long(LONG_CHARS + 1, os.getpid) != os.getpid()


async def test_an_error_is_raised_as_it_was(processes: RuleProcesses) -> None:
    with pytest.raises(PiiRejected) as refused:
        await processes.run(refuse, "content")
    assert refused.value.field == "content"
    with pytest.raises(RuntimeError, match="OddError"):
        await processes.run(fail)
    assert await processes.run(len, "abc") == 3


async def test_what_takes_too_much_is_stopped_and_the_next_call_served(processes: RuleProcesses) -> None:
    first = await processes.run(os.getpid)
    with pytest.raises(TooCostly):
        await processes.run(burn, 60)
    assert await processes.run(os.getpid) != first
    assert await processes.run(burn, 0.15)
    assert await processes.run(burn, 0.15), "the limit is that of one call"


async def test_a_request_has_one_account(processes: RuleProcesses) -> None:
    with cpu_limited(0.25):
        await processes.run(burn, 0.15)
        with pytest.raises(TooCostly):
            await processes.run(burn, 0.15)
        with pytest.raises(TooCostly):
            await processes.run(burn, 0.01)
    assert await processes.run(burn, 0.15)


async def test_waiting_counts_as_nothing(processes: RuleProcesses) -> None:
    """CPU is limited, not time: a text is not refused because the machine is busy."""
    await processes.run(time.sleep, 0.5)


async def test_a_process_that_dies_is_replaced(processes: RuleProcesses) -> None:
    with pytest.raises(Unavailable):
        await processes.run(die)
    assert await processes.run(len, "abc") == 3


async def test_more_than_may_wait_is_refused_at_once(processes: RuleProcesses) -> None:
    calls = [asyncio.ensure_future(processes.run(time.sleep, 0.2)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await processes.run(len, "abc")
    await asyncio.gather(*calls)
    assert await processes.run(len, "abc") == 3


async def test_the_event_loop_stays_free(processes: RuleProcesses) -> None:
    call = asyncio.ensure_future(processes.run(burn, 0.25))
    worst = 0.0
    while not call.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - before)
    assert worst < 0.15
    await call


async def test_none_is_left_behind() -> None:
    processes = RuleProcesses(workers=1)
    pid = await processes.run(os.getpid)
    processes.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
