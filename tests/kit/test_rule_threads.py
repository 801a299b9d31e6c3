"""Rules that read long texts run in threads, and the event loop and other workspaces go on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from service.domain.errors import PiiRejected, Unavailable
from service.kit.fair_gate import LONG_CHARS, RuleThreads


@pytest.fixture
def rules() -> Iterator[RuleThreads]:
    found = RuleThreads(threads=1, waiting=3)
    yield found
    found.close()


def burn(seconds: float) -> None:
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        pass


def refuse(field: str) -> None:
    raise PiiRejected("No.", field=field)


async def test_a_short_text_stays_in_place(rules: RuleThreads) -> None:
    here = threading.get_ident()
    assert await rules.run_if_long(LONG_CHARS, threading.get_ident) == here
    assert await rules.run_if_long(LONG_CHARS + 1, threading.get_ident) != here


async def test_an_error_is_raised_as_it_was(rules: RuleThreads) -> None:
    with pytest.raises(PiiRejected) as refused:
        await rules.run(refuse, "content")
    assert refused.value.field == "content"
    assert await rules.run(len, "abc") == 3


async def test_more_than_may_wait_is_refused_at_once(rules: RuleThreads) -> None:
    calls = [asyncio.ensure_future(rules.run(time.sleep, 0.2)) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await rules.run(len, "abc")
    await asyncio.gather(*calls)
    assert await rules.run(len, "abc") == 3


async def test_a_call_that_nobody_waits_for_keeps_its_place(rules: RuleThreads) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(rules.run(time.sleep, 0.2), 0.05)
    began = time.perf_counter()
    assert await rules.run(len, "abc") == 3
    assert time.perf_counter() - began > 0.1


async def test_the_event_loop_stays_free(rules: RuleThreads) -> None:
    call = asyncio.ensure_future(rules.run(burn, 0.25))
    worst = 0.0
    while not call.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - before)
    assert worst < 0.15
    await call
