"""Calls of the language model through the workspace's answer cache and the budgets of request and day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel

from service.errors import LlmError
from service.providers.caches import CachedLlm
from service.providers.json_reply import validate
from service.providers.protocols import Llm, LlmReply, LlmRequest
from service.resources import Resources
from service.settings import Settings

Model = TypeVar("Model", bound=BaseModel)


async def complete(
    res: Resources, workspace_id: UUID, prompt: LlmRequest, usable: Callable[[LlmReply], bool] | None = None
) -> LlmReply:
    """The model's answer; raises LlmError. The caller has checked that there is a model. A `usable` answer is
    stored for the next equal prompt."""
    from service.db.caches import AnswerTable  # the processes for rules do without the database

    store = AnswerTable(res.db, ttl_s=res.settings.llm_cache_ttl_s, clock=res.clock)
    return await CachedLlm(_metered(res, workspace_id), store, workspace_id, usable).complete(
        tuned(prompt, res.settings)
    )


def _metered(res: Resources, workspace_id: UUID) -> Llm:
    from service.curator.model_days import DayLimitedLlm  # needs the database too

    assert res.llm is not None
    return DayLimitedLlm(res.llm, res, workspace_id)


def tuned(prompt: LlmRequest, settings: Settings) -> LlmRequest:
    """The prompt under the deployment's settings; a task with a temperature of its own keeps it."""
    return replace(
        prompt,
        temperature=prompt.temperature or settings.llm_temperature,
        max_tokens=min(prompt.max_tokens, settings.llm_max_tokens),
        deadline_s=min(prompt.deadline_s, settings.llm_timeout_s),
    )


async def complete_uncached(res: Resources, workspace_id: UUID, prompt: LlmRequest) -> LlmReply:
    """The same without the cache, for a prompt that will hardly be sent again."""
    return await _metered(res, workspace_id).complete(tuned(prompt, res.settings))


async def complete_as(
    res: Resources, workspace_id: UUID, prompt: LlmRequest, shape: type[Model]
) -> tuple[Model, LlmReply]:
    """The answer read as `shape`; raises LlmError when nothing in it fits."""
    seen: dict[str, Model | None] = {}

    def fitting(reply: LlmReply) -> Model | None:
        if reply.text not in seen:
            seen[reply.text] = validate(reply.text, shape)
        return seen[reply.text]

    reply = await complete(res, workspace_id, prompt, lambda reply: fitting(reply) is not None)
    found = fitting(reply)
    if found is None:
        raise LlmError("The language model's answer could not be read.")
    return found, reply
