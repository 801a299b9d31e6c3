"""Calls of the language model through the workspace's answer cache and the budgets of request and day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel

from service.domain.errors import UnusableAnswer
from service.kit.settings import Settings
from service.providers.caches import CachedLlm
from service.providers.json_reply import validate
from service.providers.protocols import Llm, LlmReply, LlmRequest
from service.runtime.resources import Resources
from service.runtime.statements.caches import AnswerTable

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)


async def complete(
    res: Resources, workspace_id: UUID, prompt: LlmRequest, usable: Callable[[LlmReply], bool] | None = None
) -> LlmReply:
    """The model's answer; raises LlmError. The caller has checked that there is a model. A `usable` answer is
    stored for the next equal prompt."""
    store = AnswerTable(res.db, res.clock, res.context.deferred)
    llm = CachedLlm(_limit_by_day(res, workspace_id), store, workspace_id, usable, res.context.budget)
    return await llm.complete(tune(prompt, res.settings))


def _limit_by_day(res: Resources, workspace_id: UUID) -> Llm:
    from service.understanding.model_days import DayLimitedLlm  # it imports this module

    assert res.llm is not None
    return DayLimitedLlm(res.llm, res, workspace_id)


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


async def complete_uncached(res: Resources, workspace_id: UUID, prompt: LlmRequest) -> LlmReply:
    """Completes a prompt without the cache, as it will hardly be sent again."""
    return await _limit_by_day(res, workspace_id).complete(tune(prompt, res.settings))


async def complete_read(
    res: Resources, workspace_id: UUID, prompt: LlmRequest, read: Callable[[str], T | None]
) -> tuple[T | None, LlmReply]:
    """The answer and what `read` makes of it (None: nothing); raises LlmError."""
    read_once = cache(read)  # to be kept for the next equal prompt, and to be used
    reply = await complete(res, workspace_id, prompt, lambda reply: read_once(reply.text) is not None)
    return read_once(reply.text), reply


async def complete_as(
    res: Resources, workspace_id: UUID, prompt: LlmRequest, shape: type[Model]
) -> tuple[Model, LlmReply]:
    """The answer read as `shape`; raises LlmError when nothing in it fits."""
    model, reply = await complete_read(res, workspace_id, prompt, lambda text: validate(text, shape))
    if model is None:
        raise UnusableAnswer(f"The answer of {name_model(res, prompt.task)} could not be read.")
    return model, reply
