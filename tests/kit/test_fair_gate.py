"""The gate that takes tenants in turn, and places that a request gives back while it waits for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from service.domain.errors import TooManyRequests, Unavailable
from service.kit import fair_gate
from service.kit.fair_gate import FairGate, RequestSlots


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Crowd:
    """Requests of tenants before a gate; `order` is who came in."""

    def __init__(self, gate: FairGate) -> None:
        self.gate = gate
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def comes(self, names: str) -> None:
        for name in names:
            self.tasks.append(asyncio.create_task(self._one(name)))
        await settle()

    async def _one(self, name: str) -> None:
        await self.gate.enter(name)
        self.order.append(name)

    async def leaves(self, names: str) -> None:
        for name in names:
            self.gate.leave(name)
            await settle()


@asynccontextmanager
async def crowd(gate: FairGate) -> AsyncIterator[Crowd]:
    found = Crowd(gate)
    yield found
    for task in found.tasks:
        task.cancel()
    await settle()


async def test_tenants_are_taken_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_gate, "RECENT_S", 0.0)
    async with crowd(FairGate(2)) as here:
        await here.comes("aaaaaabc")
        assert "".join(here.order) == "aa"
        await here.leaves("aaaa")
        assert "".join(here.order) == "aaabca"


async def test_no_tenant_has_all_places() -> None:
    async with crowd(FairGate(4, share=3)) as here:
        await here.comes("aaaaa")
        assert "".join(here.order) == "aaa"
        await here.comes("bb")
        assert "".join(here.order) == "aaab", "at once, past those who wait"
        await here.leaves("a")
        assert "".join(here.order) in ("aaaba", "aaabb")


async def test_half_is_left_while_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    async with crowd(FairGate(4)) as here:
        await here.comes("aaa")
        await here.comes("b")
        await here.leaves("b")
        await here.comes("a")
        assert "".join(here.order) == "aaab", "b may come again at any moment"
        monkeypatch.setattr(fair_gate, "RECENT_S", 0.0)
        await here.comes("a")
        assert "".join(here.order) == "aaaba"


async def test_a_full_queue_refuses_at_once() -> None:
    async with crowd(FairGate(1, waiting=4)) as here:
        await here.comes("aaaaa")
        with pytest.raises(TooManyRequests):
            await here.gate.enter("a")
        await here.comes("bc")
        with pytest.raises(Unavailable):
            await here.gate.enter("c")
        assert here.gate.waiting == 4


async def test_who_waits_most_makes_room_for_others() -> None:
    async with crowd(FairGate(1, waiting=4)) as here:
        await here.comes("aaaaa")
        await here.comes("b")
        assert here.gate.waiting == 4
        assert [each.done() for each in here.tasks] == [True, False, False, False, True, False], "the last that came"
        with pytest.raises(TooManyRequests):
            await here.tasks[4]
        await here.leaves("aab")
        assert "".join(here.order) == "aaba", "and the gate counts rightly afterwards"


async def test_who_comes_back_is_not_refused() -> None:
    async with crowd(FairGate(1, waiting=2)) as here:
        await here.comes("a")
        back = [asyncio.create_task(here.gate.enter("a", again=True)) for _ in range(3)]
        await settle()
        with pytest.raises(Unavailable):
            await here.gate.enter("b")
        assert not any(each.done() for each in back)
        for _ in back:
            here.gate.leave("a")
        await asyncio.gather(*back)


async def test_nobody_waits_for_ever() -> None:
    gate = FairGate(1)
    await gate.enter("a")
    with pytest.raises(Unavailable):
        await gate.enter("b", patience_s=0.01)
    with pytest.raises(TooManyRequests):
        await gate.enter("a", patience_s=0.01)
    gate.leave("a")
    await gate.enter("b", patience_s=0.01)


async def test_those_who_gave_up_take_no_place() -> None:
    gate = FairGate(1)
    await gate.enter("a")
    waiting = [asyncio.create_task(gate.enter(name)) for name in "bcd"]
    await settle()
    waiting[0].cancel()
    gate.leave("a")  # before the cancelled task has run
    waiting[1].cancel()
    await settle()
    assert waiting[2].done()
    gate.leave("d")
    async with asyncio.timeout(1):
        await gate.enter("e")


async def test_a_place_is_free_while_its_request_waits_elsewhere() -> None:
    gate, answered = FairGate(1), asyncio.Event()
    slots = RequestSlots("a", [gate])
    await slots.take()

    async def asks() -> None:
        async with fair_gate.outside():
            await answered.wait()

    with fair_gate.inside(slots):
        assert fair_gate.tenant() == "a"
        both = asyncio.gather(asks(), asks())
        await settle()
        await gate.enter("b", patience_s=0.1)
        answered.set()
        await settle()
        assert not both.done(), "it waits for its place"
        gate.leave("b")
        await both
        with pytest.raises(Unavailable):
            await gate.enter("b", patience_s=0.01)
    await gate.enter("b", patience_s=0.01)
    assert fair_gate.tenant() is None


async def test_a_request_that_ends_while_a_task_of_it_is_away() -> None:
    gate, answered = FairGate(1), asyncio.Event()
    slots = RequestSlots("a", [gate])
    await slots.take()

    async def asks() -> None:
        async with fair_gate.outside():
            await answered.wait()

    with fair_gate.inside(slots):
        left_behind = asyncio.create_task(asks())
        cancelled = asyncio.create_task(asks())
        await settle()
        cancelled.cancel()
    answered.set()
    await left_behind
    for _ in range(2):
        await gate.enter("b", patience_s=0.1)
        gate.leave("b")
