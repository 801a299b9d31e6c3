"""How much may one request spend on models, and what did it spend?

A request (or a job) opens a budget with `spending(limits)`; every `MeteredLlm` called inside it, in whatever task,
reserves before the call and settles after it, so parallel calls cannot overdraw together. Going over is an LlmError:
the callers fall back to rules, as for any other failure of the model. Outside a budget nothing is limited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace

from service.errors import LlmError
from service.providers.protocols import Ask, Llm, Reply, Usage

CHARS_PER_TOKEN = 4
"""OpenAI's rule of thumb for English; only for the reservation, the provider's own count replaces it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Per request. `max_tokens` counts prompts and answers together; `deadline_s` runs from the opening. `last_s`: the
    same for an embedder or a reranker that is asked after the language model; None for no limit."""

    max_calls: int
    max_tokens: int
    deadline_s: float
    last_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """The `usage` of an answer. `cached`: texts and questions that a cache answered instead of a model."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    embedded_texts: int = 0
    cached: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class Budget:
    """The account of one request. Not for several threads at once."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._ends_at = self._began + limits.deadline_s
        self._reserved_tokens = 0
        self.spent = Spent()

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline, never below 0."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def left_s(self) -> float | None:
        """Seconds until `last_s`, never below 0."""
        last_s = self._limits.last_s
        return None if last_s is None else max(0.0, self._began + last_s - self._clock())

    def reserve(self, ask: Ask) -> Ask:
        """The question with its deadline cut to what is left. Raises LlmError when it cannot be afforded."""
        if self.spent.llm_calls >= self._limits.max_calls:
            raise _exceeded("llm_budget_calls", f"{self._limits.max_calls} calls")
        used = self.spent.prompt_tokens + self.spent.completion_tokens + self._reserved_tokens
        if used + estimate(ask) > self._limits.max_tokens:
            raise _exceeded("llm_budget_tokens", f"{self._limits.max_tokens} tokens")
        if self.remaining_s <= 0:
            raise _exceeded("llm_budget_deadline", f"{self._limits.deadline_s:g} s")
        self.spent = replace(self.spent, llm_calls=self.spent.llm_calls + 1)
        self._reserved_tokens += estimate(ask)
        return replace(ask, deadline_s=min(ask.deadline_s, self.remaining_s))

    def settle(self, ask: Ask, usage: Usage) -> None:
        """Replaces the reservation for `ask` by what the call used; a failed one used nothing that we know of."""
        self._reserved_tokens -= estimate(ask)
        self.spent = replace(
            self.spent,
            prompt_tokens=self.spent.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.spent.completion_tokens + usage.completion_tokens,
        )

    def note(self, *, embedded_texts: int = 0, cached: int = 0) -> None:
        """Adds to the counts that are not limited."""
        self.spent = replace(
            self.spent,
            embedded_texts=self.spent.embedded_texts + embedded_texts,
            cached=self.spent.cached + cached,
        )


def estimate(ask: Ask) -> int:
    """The most tokens that `ask` is likely to use, answer included."""
    return (len(ask.system) + len(ask.user)) // CHARS_PER_TOKEN + ask.max_tokens


def _exceeded(code: str, limit: str) -> LlmError:
    return LlmError(f"{code}: this request may use no more than {limit} of the language model.")


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def spending(limits: Limits) -> Iterator[Budget]:
    """Opens the budget that all model calls inside the block, and in tasks started inside it, are charged to."""
    budget = Budget(limits)
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def current() -> Budget | None:
    """The budget of the running request, if one is open."""
    return _current.get()


def left_s() -> float | None:
    """Seconds that an embedder or a reranker has in the running request; None where nothing limits it."""
    budget = current()
    return None if budget is None else budget.left_s


def note(*, embedded_texts: int = 0, cached: int = 0) -> None:
    """Counts for the running request; nothing happens outside of one."""
    if (budget := current()) is not None:
        budget.note(embedded_texts=embedded_texts, cached=cached)


class MeteredLlm:
    """An Llm that charges the running request; implements `protocols.Llm`."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    @property
    def model(self) -> str:
        return self._llm.model

    async def complete(self, ask: Ask) -> Reply:
        """The model's answer. Raises LlmError, also when the budget is used up."""
        budget = current()
        if budget is None:
            return await self._llm.complete(ask)
        usage = Usage()
        bounded = budget.reserve(ask)
        try:
            reply = await self._llm.complete(bounded)
            usage = reply.usage
        finally:
            budget.settle(ask, usage)
        return reply

    async def close(self) -> None:
        await self._llm.close()
