from __future__ import annotations

import asyncio

import pytest

from service.domain.errors import LlmError
from service.providers.budget import Budget, Limits, MeteredLlm, RequestUsage, current, estimate, note, spending
from service.providers.protocols import LlmReply, LlmRequest, TokenUsage

ASK = LlmRequest("extract", "s" * 40, "u" * 60, max_tokens=100)
WIDE = Limits(max_calls=10, max_tokens=10_000, deadline_s=30)


class SlowLlm:
    """Answers after a moment, with a usage; or fails."""

    model = "test:scripted"

    def __init__(self) -> None:
        self.requests: list[LlmRequest] = []
        self.broken = False
        self.closed = False

    async def complete(self, request: LlmRequest) -> LlmReply:
        self.requests.append(request)
        await asyncio.sleep(0.01)
        if self.broken:
            raise LlmError("down")
        return LlmReply("fine", usage=TokenUsage(30, 5))

    async def close(self) -> None:
        self.closed = True


def test_the_estimate_counts_prompt_and_answer() -> None:
    assert estimate(ASK) == 125


async def test_calls_are_limited() -> None:
    llm = MeteredLlm(SlowLlm())
    with spending(Limits(max_calls=2, max_tokens=10_000, deadline_s=30)) as budget:
        await llm.complete(ASK)
        await llm.complete(ASK)
        with pytest.raises(LlmError, match="llm_budget_calls"):
            await llm.complete(ASK)
    assert budget.used == RequestUsage(llm_calls=2, prompt_tokens=60, completion_tokens=10)


async def test_tokens_are_reserved_before_the_call() -> None:
    scripted = SlowLlm()
    llm = MeteredLlm(scripted)
    with spending(Limits(max_calls=10, max_tokens=300, deadline_s=30)) as budget:
        results = await asyncio.gather(*(llm.complete(ASK) for _ in range(3)), return_exceptions=True)
        assert [isinstance(result, LlmError) for result in results] == [False, False, True]
        await llm.complete(ASK)  # the reservations were replaced by what was used
    assert budget.used.as_dict() == {
        "llm_calls": 3,
        "prompt_tokens": 90,
        "completion_tokens": 15,
        "embedded_texts": 0,
        "cached": 0,
    }


async def test_the_deadline_is_cut_to_what_is_left() -> None:
    scripted = SlowLlm()
    with spending(Limits(max_calls=10, max_tokens=10_000, deadline_s=2)):
        await MeteredLlm(scripted).complete(ASK)
    assert 1.5 < scripted.requests[0].deadline_s <= 2


def test_after_the_deadline_nothing_is_asked() -> None:
    now = 100.0
    budget = Budget(WIDE, clock=lambda: now)
    assert budget.remaining_s == 30
    now = 131.0
    assert budget.remaining_s == 0
    with pytest.raises(LlmError, match="llm_budget_deadline"):
        budget.reserve(ASK)


async def test_a_failed_call_gives_its_tokens_back() -> None:
    scripted = SlowLlm()
    scripted.broken = True
    with spending(Limits(max_calls=10, max_tokens=130, deadline_s=30)) as budget:
        for _ in range(3):
            with pytest.raises(LlmError, match="down"):
                await MeteredLlm(scripted).complete(ASK)
    assert budget.used == RequestUsage(llm_calls=3)


async def test_requests_do_not_share_a_budget() -> None:
    llm = MeteredLlm(SlowLlm())

    async def request(calls: int) -> int:
        with spending(WIDE) as budget:
            for _ in range(calls):
                await llm.complete(ASK)
            return budget.used.llm_calls

    assert list(await asyncio.gather(request(1), request(2), request(3))) == [1, 2, 3]
    assert current() is None


async def test_outside_of_a_request_nothing_is_limited() -> None:
    note(embedded_texts=3)
    assert (await MeteredLlm(SlowLlm()).complete(ASK)).text == "fine"


def test_notes_add_up() -> None:
    with spending(WIDE) as budget:
        note(embedded_texts=3, cached=1)
        note(cached=2)
    assert (budget.used.embedded_texts, budget.used.cached) == (3, 3)


async def test_closing_reaches_the_model() -> None:
    scripted = SlowLlm()
    await MeteredLlm(scripted).close()
    assert scripted.closed
