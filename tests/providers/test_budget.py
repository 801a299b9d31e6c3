from __future__ import annotations

import asyncio
from dataclasses import asdict

import pytest

from service.domain.errors import LlmError
from service.providers.budget import Budget, Limits, RequestUsage, estimate
from service.providers.protocols import LlmReply, LlmRequest, TokenUsage

ASK = LlmRequest("extract", "s" * 40, "u" * 60, max_tokens=100)
WIDE = Limits(max_calls=10, max_tokens=10_000, deadline_s=30)


class SlowLlm:
    """Answers after a moment, with a usage; or fails."""

    model = "test:scripted"

    def __init__(self) -> None:
        self.requests: list[LlmRequest] = []
        self.broken = False

    async def complete(self, request: LlmRequest) -> LlmReply:
        self.requests.append(request)
        await asyncio.sleep(0.01)
        if self.broken:
            raise LlmError("down")
        return LlmReply("fine", usage=TokenUsage(30, 5))

    async def close(self) -> None: ...


def test_the_estimate_counts_prompt_and_answer() -> None:
    assert estimate(ASK) == 125


async def test_calls_are_limited() -> None:
    llm, budget = SlowLlm(), Budget(Limits(max_calls=2, max_tokens=10_000, deadline_s=30))
    await budget.complete(llm, ASK)
    await budget.complete(llm, ASK)
    with pytest.raises(LlmError, match="llm_budget_calls"):
        await budget.complete(llm, ASK)
    assert budget.used == RequestUsage(llm_calls=2, prompt_tokens=60, completion_tokens=10)


async def test_tokens_are_reserved_before_the_call() -> None:
    llm, budget = SlowLlm(), Budget(Limits(max_calls=10, max_tokens=300, deadline_s=30))
    results = await asyncio.gather(*(budget.complete(llm, ASK) for _ in range(3)), return_exceptions=True)
    assert [isinstance(result, LlmError) for result in results] == [False, False, True]
    await budget.complete(llm, ASK)  # the reservations were replaced by what was used
    assert asdict(budget.used) == {
        "llm_calls": 3,
        "prompt_tokens": 90,
        "completion_tokens": 15,
        "embedded_texts": 0,
        "cached": 0,
    }


async def test_the_deadline_is_cut_to_what_is_left() -> None:
    llm = SlowLlm()
    await Budget(Limits(max_calls=10, max_tokens=10_000, deadline_s=2)).complete(llm, ASK)
    assert 1.5 < llm.requests[0].deadline_s <= 2


def test_after_the_deadline_nothing_is_asked() -> None:
    now = 100.0
    budget = Budget(WIDE, clock=lambda: now)
    assert budget.remaining_s == 30
    now = 131.0
    assert budget.remaining_s == 0
    with pytest.raises(LlmError, match="llm_budget_deadline"):
        budget.check(ASK)


async def test_a_failed_call_gives_its_tokens_back() -> None:
    llm, budget = SlowLlm(), Budget(Limits(max_calls=10, max_tokens=130, deadline_s=30))
    llm.broken = True
    for _ in range(3):
        with pytest.raises(LlmError, match="down"):
            await budget.complete(llm, ASK)
    assert budget.used == RequestUsage(llm_calls=3)


def test_notes_add_up() -> None:
    budget = Budget(WIDE)
    budget.note(embedded_texts=3, cached=1)
    budget.note(cached=2)
    assert (budget.used.embedded_texts, budget.used.cached) == (3, 3)
