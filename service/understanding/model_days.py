"""The language model under the day's budget of a workspace.

The most that a call may use is reserved before it and replaced by its actual use after it, each in a separate short
transaction (docs/decisions/064-model-budget.md). Without limits nothing is reserved, but the use is still counted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC
from uuid import UUID

from prometheus_client import Counter
from uuid_utils.compat import uuid7

from service.access.statements import model_days
from service.access.statements.model_days import ModelCall
from service.domain.errors import LlmError, ModelBudgetSpent, ServiceError
from service.domain.model_budget import day_end
from service.observability import metrics
from service.providers.budget import estimate_prompt
from service.providers.protocols import Llm, LlmReply, LlmRequest, TokenUsage
from service.runtime.resources import Resources
from service.understanding import model_calls

RESERVED_AFTER_S = 10.0
"""How long after the deadline of its call an unsettled reservation ends, because its process was killed."""

REFUSED = Counter("loxodon_model_budget_refused_total", "Calls of the language model that a budget refused", ["work"])
NOTHING = TokenUsage()
ANSWERS = "answers"
PROBE = LlmRequest("extract", "You are asked whether you are there.", "Say OK.", max_tokens=500, deadline_s=15.0)

log = logging.getLogger(__name__)


async def probe(res: Resources) -> None:
    """Checks whether the language model is available, and records and logs the result. On no workspace's account."""
    if res.llm is not None:
        try:
            await res.llm.complete(PROBE)
            res.model_status.result = ANSWERS
        except LlmError as exc:
            res.model_status.result = f"{exc.detail} {exc.provider_message}".strip()
            log.warning("the language model does not answer, so rules read what is stored: %s", res.model_status.result)


@dataclass(frozen=True, slots=True)
class DayLimitedLlm:
    """The model on the account of a workspace; implements `protocols.Llm`. Made per call."""

    llm: Llm
    res: Resources
    workspace_id: UUID

    @property
    def model(self) -> str:
        return self.llm.model

    async def complete(self, request: LlmRequest) -> LlmReply:
        """The model's answer. Raises LlmError, and ModelBudgetSpent where too little is left for this call."""
        budget = self.res.context.budget
        budget.check(request)  # what it refuses needs no statement
        call = ModelCall(self.workspace_id, self.res.clock().astimezone(UTC).date(), uuid7())
        estimate = TokenUsage(estimate_prompt(request), request.max_tokens)
        reserved = await self._reserve(call, estimate, request.deadline_s)
        try:
            reply = await budget.complete(self.llm, request)
        except LlmError as exc:
            self.res.model_status.result = exc.detail
            used = TokenUsage(*exc.tokens) if exc.tokens is not None else estimate
            if reserved or used != NOTHING:
                await self._settle(call, used, request.task)
            raise
        except BaseException:  # cancelled: the provider may go on
            await self._settle(call, estimate, request.task)
            raise
        self.res.model_status.result = ANSWERS
        await self._settle(call, estimate if reply.usage == NOTHING else reply.usage, request.task)
        return reply

    async def close(self) -> None:
        """Does nothing: the model belongs to the process."""

    async def _reserve(self, call: ModelCall, estimate: TokenUsage, deadline_s: float) -> bool:
        """Reserves the estimate of a call; False if no limit applies. Raises ModelBudgetSpent."""
        now, background = self.res.clock(), self.res.context.background
        limit = self.res.settings.llm.budget.limit(background=background)
        if limit is None:
            return False
        tokens = estimate.prompt_tokens + estimate.completion_tokens
        ends_s = now.timestamp() + deadline_s + RESERVED_AFTER_S
        database = self.res.db.without_wall()  # a key made for one user has no right on the account
        if await model_days.reserve(database, call, limit, tokens=tokens, now=now, ends_s=ends_s):
            return True
        REFUSED.labels("background" if background else "request").inc()
        resets_at = day_end(call.day)
        raise ModelBudgetSpent(
            f"The workspace's budget for the language model is used up until {resets_at:%Y-%m-%d %H:%M} UTC.",
            retry_after_s=(resets_at - now).total_seconds(),
        )

    async def _settle(self, call: ModelCall, used: TokenUsage, task: str) -> None:
        """Never raises for the database: the answer exists, and a reservation ends by itself."""
        cost = self.res.settings.llm.budget.cost(used.prompt_tokens, used.completion_tokens)
        metrics.MODEL_COST.labels(*model_calls.name_model(self.res, task).split(":", 1)).inc(cost)
        try:
            await model_days.settle(
                self.res.db.without_wall(),
                call,
                calls=int(used != NOTHING),
                prompt_tokens=used.prompt_tokens,
                completion_tokens=used.completion_tokens,
                cost=cost,
            )
        except ServiceError as exc:
            log.warning("tokens of a call of the language model were not counted: %s", exc.code)
