from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

import pytest

from service.providers.budget import Budget, Limits
from service.providers.caches import CachedLlm, fingerprint
from service.providers.protocols import LlmReply, LlmRequest, TokenUsage, ToolSpec

ONE, OTHER = UUID(int=1), UUID(int=2)
ASK = LlmRequest("extract", "List the facts.", "I like tea.", schema={"type": "array"})


class OneReplyLlm:
    model = "test:scripted"

    def __init__(self, reply: LlmReply) -> None:
        self.reply = reply
        self.calls = 0
        self.closed = False

    async def complete(self, request: LlmRequest) -> LlmReply:
        self.calls += 1
        return self.reply

    async def close(self) -> None:
        self.closed = True


class FakeAnswerStore:
    def __init__(self) -> None:
        self.rows: dict[tuple[UUID, str, str, bytes], str] = {}

    async def get(self, owner: UUID, task: str, model: str, prompt_sha256: bytes) -> str | None:
        return self.rows.get((owner, task, model, prompt_sha256))

    async def put(self, owner: UUID, task: str, model: str, prompt_sha256: bytes, answer: str) -> None:
        self.rows[owner, task, model, prompt_sha256] = answer


async def test_the_same_question_is_asked_once_per_tenant() -> None:
    llm, table = OneReplyLlm(LlmReply('["likes tea"]', usage=TokenUsage(10, 4))), FakeAnswerStore()
    budget = Budget(Limits(max_calls=9, max_tokens=9_000, deadline_s=9))
    await CachedLlm(llm, table, ONE, budget=budget).complete(ASK)
    again = await CachedLlm(llm, table, ONE, budget=budget).complete(ASK)
    await CachedLlm(llm, table, OTHER, budget=budget).complete(ASK)
    assert (again.text, again.usage) == ('["likes tea"]', TokenUsage(0, 0))
    assert llm.calls == 2
    assert budget.used.cached == 1


@pytest.mark.parametrize(
    "reply",
    [LlmReply('["likes te', truncated=True), LlmReply('["a"]', truncated=True), LlmReply("I found no facts to list.")],
)
async def test_a_bad_answer_is_not_kept(reply: LlmReply) -> None:
    llm, table = OneReplyLlm(reply), FakeAnswerStore()
    await CachedLlm(llm, table, ONE).complete(ASK)
    assert table.rows == {}


async def test_a_request_does_not_close_the_model() -> None:
    llm = OneReplyLlm(LlmReply("[]"))
    await CachedLlm(llm, FakeAnswerStore(), ONE).close()
    assert not llm.closed


async def test_prose_is_kept_where_prose_was_asked() -> None:
    llm, table = OneReplyLlm(LlmReply("He likes tea.")), FakeAnswerStore()
    await CachedLlm(llm, table, ONE).complete(replace(ASK, schema=None))
    assert list(table.rows.values()) == ["He likes tea."]


async def test_tool_calls_are_not_kept() -> None:
    llm, table = OneReplyLlm(LlmReply("[]")), FakeAnswerStore()
    await CachedLlm(llm, table, ONE).complete(replace(ASK, tools=(ToolSpec("add", "Adds.", {}),)))
    assert table.rows == {}


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
def test_fingerprint(change: dict[str, object], same: bool) -> None:
    assert (fingerprint(replace(ASK, **change)) == fingerprint(ASK)) is same  # type: ignore[arg-type]
