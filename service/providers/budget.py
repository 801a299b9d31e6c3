"""The model budget of one request: limits on calls, tokens and time, and what was used.

Every call of the language model reserves tokens before it and charges the real ones after it, so parallel calls cannot
overdraw together. Going over is an LlmError: the callers fall back to rules, as for any other failure of the model.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from service.domain.errors import LlmError
from service.providers.protocols import Llm, LlmReply, LlmRequest

CHARS_PER_TOKEN = 4
"""OpenAI's rule of thumb for English; only for the reservation, the provider's own count replaces it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Per request; without any nothing is limited. `max_tokens` counts prompts and answers together. Both deadlines run
    from the opening: `deadline_s` for the language model, `overall_deadline_s` for an embedder called after
    it (None for no limit)."""

    max_calls: float = math.inf
    max_tokens: float = math.inf
    deadline_s: float = math.inf
    overall_deadline_s: float | None = None


@dataclass(slots=True)
class RequestUsage:
    """The `usage` of a response. `cached`: texts and prompts that a cache answered instead of a model."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    embedded_texts: int = 0
    cached: int = 0


class Budget:
    """The account of one request. Not for several threads at once."""

    def __init__(self, limits: Limits = Limits(), clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._ends_at = self._began + limits.deadline_s
        self._reserved_tokens = 0
        self.used = RequestUsage()

    @property
    def remaining_s(self) -> float:
        """Seconds until the language model's deadline, never below 0."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def overall_remaining_s(self) -> float | None:
        """Seconds until the overall deadline, never below 0."""
        limit_s = self._limits.overall_deadline_s
        return None if limit_s is None else max(0.0, self._began + limit_s - self._clock())

    def check(self, request: LlmRequest) -> None:
        """Raises LlmError when the request exceeds the budget."""
        if self.used.llm_calls >= self._limits.max_calls:
            raise _exceeded("llm_budget_calls", f"{self._limits.max_calls} calls")
        tokens = self.used.prompt_tokens + self.used.completion_tokens + self._reserved_tokens
        if tokens + estimate(request) > self._limits.max_tokens:
            raise _exceeded("llm_budget_tokens", f"{self._limits.max_tokens} tokens")
        if self.remaining_s <= 0:
            raise _exceeded("llm_budget_deadline", f"{self._limits.deadline_s:g} s")

    async def complete(self, llm: Llm, request: LlmRequest) -> LlmReply:
        """The model's answer within what remains of the deadline. Its tokens are reserved during the call, and a failed
        call counts as none. Raises LlmError, also when the request exceeds the budget."""
        self.check(request)
        self.used.llm_calls += 1
        self._reserved_tokens += estimate(request)
        try:
            reply = await llm.complete(replace(request, deadline_s=min(request.deadline_s, self.remaining_s)))
        finally:
            self._reserved_tokens -= estimate(request)
        self.used.prompt_tokens += reply.usage.prompt_tokens
        self.used.completion_tokens += reply.usage.completion_tokens
        return reply

    def note(self, *, embedded_texts: int = 0, cached: int = 0) -> None:
        """Adds to the counts that are not limited."""
        self.used.embedded_texts += embedded_texts
        self.used.cached += cached


def estimate(request: LlmRequest) -> int:
    """The most tokens that `request` is likely to use, answer included."""
    return (len(request.system) + len(request.user)) // CHARS_PER_TOKEN + request.max_tokens


def estimate_prompt(request: LlmRequest) -> int:
    """The tokens that `request` is likely to send. By bytes and rounded up, because a character of another script is
    more of a token; with the schema of the answer, which is sent too."""
    texts = (request.system, request.user, json.dumps(request.schema, default=dict) if request.schema else "")
    return -(-sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // CHARS_PER_TOKEN)


def _exceeded(code: str, limit: str) -> LlmError:
    return LlmError(f"{code}: this request may use no more than {limit} of the language model.")
