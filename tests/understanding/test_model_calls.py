"""Answers of the language model, kept for equal prompts."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from sqlalchemy import text

from service.providers.protocols import LlmRequest, TokenUsage
from service.runtime.resources import Resources
from service.understanding.model_calls import complete, fingerprint
from tests.conftest import Tenant
from tests.support.scripted_model import with_scripted_model

ASK = LlmRequest("extract", "List the facts.", "I like tea.", schema={"type": "array"})


async def stored(resources: Resources, tenant: Tenant) -> list[str]:
    async with resources.db.read(tenant.workspace_id) as session:
        return list(await session.scalars(text("SELECT answer ->> 'text' FROM llm_cache")))


async def test_the_same_question_is_asked_once_per_tenant(
    resources: Resources, tenant: Tenant, stranger: Tenant
) -> None:
    async with with_scripted_model(resources, tenant, '["likes tea"]') as scripted:
        cached = scripted.resources.context.budget.used.cached
        await complete(scripted.resources, tenant.workspace_id, ASK, str)
        _, again = await complete(scripted.resources, tenant.workspace_id, ASK, str)
        await complete(scripted.resources, stranger.workspace_id, ASK, str)
        assert (again.text, again.usage) == ('["likes tea"]', TokenUsage(0, 0))
        assert len(scripted.server.chat.bodies) == 2
        assert scripted.resources.context.budget.used.cached == cached + 1


@pytest.mark.parametrize(
    ("answer", "finish_reason", "prompt", "is_kept"),
    [
        ('["likes te', "length", ASK, False),
        ('["a"]', "length", ASK, False),
        ("He likes tea.", "stop", replace(ASK, schema=None), True),
    ],
)
async def test_only_an_answer_that_can_be_used_is_kept(
    resources: Resources, tenant: Tenant, answer: str, finish_reason: str, prompt: LlmRequest, is_kept: bool
) -> None:
    async with with_scripted_model(resources, tenant, "") as scripted:
        scripted.server.chat.reply(answer, finish_reason=finish_reason)
        await complete(scripted.resources, tenant.workspace_id, prompt, str)
    assert await stored(resources, tenant) == ([answer] if is_kept else [])


async def test_the_caller_says_what_can_be_used(resources: Resources, tenant: Tenant) -> None:
    def find_tea(answer: str) -> str | None:
        return answer if "tea" in answer else None

    async with with_scripted_model(resources, tenant, '["likes chess"]') as scripted:
        await complete(scripted.resources, tenant.workspace_id, ASK, find_tea)
    assert await stored(resources, tenant) == []


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"deadline_s": 3.0}, True),
        ({"schema": MappingProxyType({"type": "array"})}, True),
        ({"user": "I like coffee."}, False),
        ({"system": "List them."}, False),
        ({"schema": None}, False),
        ({"temperature": 0.3}, False),
        ({"max_tokens": 50}, False),
    ],
)
def test_fingerprint(change: dict[str, Any], same: bool) -> None:
    assert (fingerprint(replace(ASK, **change)) == fingerprint(ASK)) is same
