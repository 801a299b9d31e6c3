"""Calls of the language model through the workspace's answer cache and the budgets of request and day.

The most that a call may use of the day's budget is reserved before it and replaced by its actual use after it, each in
a separate short transaction (docs/decisions/064-model-budget.md). Without limits nothing is reserved, but the use is
still counted.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from typing import TypeVar
from uuid import UUID

from prometheus_client import Counter
from pydantic import BaseModel
from uuid_utils.compat import uuid7

from service.access.statements import model_days
from service.access.statements.model_days import ModelCall
from service.domain.errors import LlmError, ModelBudgetSpent, ServiceError, UnusableAnswer
from service.domain.model_budget import day_end
from service.kit.settings import Settings
from service.observability import metrics
from service.providers.budget import estimate_prompt
from service.providers.json_reply import validate
from service.providers.protocols import LlmReply, LlmRequest, TokenUsage
from service.runtime.resources import Resources
from service.runtime.statements.caches import AnswerTable

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

RESERVED_AFTER_S = 10.0
"""How long after the deadline of its call an unsettled reservation ends, because its process was killed."""

REFUSED = Counter("loxodon_model_budget_refused_total", "Calls of the language model that a budget refused", ["work"])
NOTHING = TokenUsage()
ANSWERS = "answers"
PROBE = LlmRequest("extract", "You are asked whether you are there.", "Say OK.", max_tokens=500, deadline_s=15.0)

log = logging.getLogger(__name__)


async def complete(
    res: Resources, workspace_id: UUID, prompt: LlmRequest, read: Callable[[str], T | None]
) -> tuple[T | None, LlmReply]:
    """The stored answer to an equal prompt, with no token usage, or the model's, after what `read` makes of it (None:
    nothing); raises LlmError. The caller has checked that there is a model. Only an answer that can be read is stored,
    or a retry would get it again until it expires."""
    assert res.llm is not None
    prompt, answers = tune(prompt, res.settings), AnswerTable(res.db, res.clock, res.context.deferred)
    key = (workspace_id, prompt.task, res.llm.model, fingerprint(prompt))
    stored = await answers.get(*key)
    metrics.count_look_up("model_answer", hits=int(stored is not None), misses=int(stored is None))
    if stored is not None:
        res.context.budget.note(cached=1)
        return read(stored), LlmReply(stored, model=res.llm.model)
    reply = await complete_on_account(res, workspace_id, prompt)
    value = read(reply.text)
    if value is not None and not reply.truncated:
        await answers.put(*key, reply.text)
    return value, reply


def fingerprint(request: LlmRequest) -> bytes:
    """SHA-256 of everything that shapes the answer. The length before each part keeps two different requests apart."""
    options = json.dumps([request.schema, request.temperature, request.max_tokens], sort_keys=True, default=dict)
    digest = hashlib.sha256()
    for part in (request.system, request.user, options):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.digest()


def name_model(res: Resources, task: str) -> str:
    """The provider and model of a task."""
    assert res.llm is not None
    provider, _, usual = res.llm.model.partition(":")
    own = res.settings.llm.extraction_model if task == "extract" else None
    return f"{provider}:{own or usual}"


def tune(prompt: LlmRequest, settings: Settings) -> LlmRequest:
    """The prompt under the deployment's settings; a task with a temperature of its own keeps it."""
    return replace(
        prompt,
        temperature=prompt.temperature or settings.llm.temperature,
        max_tokens=min(prompt.max_tokens, settings.llm.max_tokens),
        deadline_s=min(prompt.deadline_s, settings.llm.timeout_s),
    )


async def complete_as(res: Resources, workspace_id: UUID, prompt: LlmRequest, shape: type[Model]) -> Model:
    """The answer read as `shape`; raises LlmError when nothing in it fits."""
    model, _ = await complete(res, workspace_id, prompt, lambda text: validate(text, shape))
    if model is None:
        raise UnusableAnswer(f"The answer of {name_model(res, prompt.task)} could not be read.")
    return model


# -- the budget of a day -----------------------------------------------------------------------------------------------


async def probe(res: Resources) -> None:
    """Checks whether the language model is available, and records and logs the result. On no workspace's account."""
    if res.llm is not None:
        try:
            await res.llm.complete(PROBE)
            res.model_status.result = ANSWERS
        except LlmError as exc:
            res.model_status.result = f"{exc.detail} {exc.provider_message}".strip()
            log.warning("the language model does not answer, so rules read what is stored: %s", res.model_status.result)


async def complete_on_account(res: Resources, workspace_id: UUID, request: LlmRequest) -> LlmReply:
    """The model's answer, on the account of the workspace. Raises LlmError, and ModelBudgetSpent where too little is
    left for this call."""
    assert res.llm is not None, "the caller asks only where there is a model"
    budget, request = res.context.budget, tune(request, res.settings)
    budget.check(request)  # what it refuses needs no statement
    call = ModelCall(workspace_id, res.clock().astimezone(UTC).date(), uuid7())
    estimate = TokenUsage(estimate_prompt(request), request.max_tokens)
    reserved = await _reserve(res, call, estimate, request.deadline_s)
    try:
        reply = await budget.complete(res.llm, request)
    except LlmError as exc:
        res.model_status.result = exc.detail
        used = TokenUsage(*exc.tokens) if exc.tokens is not None else estimate
        if reserved or used != NOTHING:
            await _settle(res, call, used, request.task)
        raise
    except BaseException:  # cancelled: the provider may go on
        await _settle(res, call, estimate, request.task)
        raise
    res.model_status.result = ANSWERS
    await _settle(res, call, estimate if reply.usage == NOTHING else reply.usage, request.task)
    return reply


async def _reserve(res: Resources, call: ModelCall, estimate: TokenUsage, deadline_s: float) -> bool:
    """Reserves the estimate of a call; False if no limit applies. Raises ModelBudgetSpent."""
    now, background = res.clock(), res.context.background
    limit = res.settings.llm.budget.limit(background=background)
    if limit is None:
        return False
    tokens = estimate.prompt_tokens + estimate.completion_tokens
    ends_s = now.timestamp() + deadline_s + RESERVED_AFTER_S
    database = res.db.without_wall()  # a key made for one user has no right on the account
    if await model_days.reserve(database, call, limit, tokens=tokens, now=now, ends_s=ends_s):
        return True
    REFUSED.labels("background" if background else "request").inc()
    resets_at = day_end(call.day)
    raise ModelBudgetSpent(
        f"The workspace's budget for the language model is used up until {resets_at:%Y-%m-%d %H:%M} UTC.",
        retry_after_s=(resets_at - now).total_seconds(),
    )


async def _settle(res: Resources, call: ModelCall, used: TokenUsage, task: str) -> None:
    """Never raises for the database: the answer exists, and a reservation ends by itself."""
    cost = res.settings.llm.budget.cost(used.prompt_tokens, used.completion_tokens)
    metrics.MODEL_COST.labels(*name_model(res, task).split(":", 1)).inc(cost)
    try:
        await model_days.settle(
            res.db.without_wall(),
            call,
            calls=int(used != NOTHING),
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            cost=cost,
        )
    except ServiceError as exc:
        log.warning("tokens of a call of the language model were not counted: %s", exc.code)
