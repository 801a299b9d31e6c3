"""Histories of messages as OpenAI's clients, LangChain and others keep them."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

CALL = {"id": "call_1", "type": "function", "function": {"name": "book", "arguments": '{"day": "Monday"}'}}
OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "I live in Graz."}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None, "annotations": [], "id": "msg_1"},
    {"role": "tool", "content": "Booked.", "tool_call_id": "call_1"},
    {"role": "assistant", "content": "Done.", "refusal": None, "audio": None, "function_call": None},
]
LANGCHAIN: list[dict[str, Any]] = [
    {"type": "system", "content": "Be brief.", "additional_kwargs": {}, "response_metadata": {}, "id": None},
    {"type": "human", "content": "I live in Graz.", "name": None, "example": False},
    {"type": "ai", "content": "", "tool_calls": [CALL], "invalid_tool_calls": [], "usage_metadata": None},
    {"type": "tool", "content": "Booked.", "tool_call_id": "call_1", "artifact": None, "status": "success"},
    {"role": "human", "content": "I like tea."},
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "I live in Graz."}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "book", "arguments": "{}", "tool_calls": []},
    {"type": "function_call_output", "call_id": "call_1", "output": "Booked.", "tool_call_id": None},
    {"role": "assistant", "content": "Done.", "stop_reason": "end_turn", "stop_sequence": None},
]


@pytest.mark.parametrize("history", [OPENAI, LANGCHAIN, RESPONSES], ids=["OpenAI", "LangChain", "Responses"])
@pytest.mark.parametrize("infer", [True, False])
async def test_a_history_is_taken_as_it_is(client: AsyncClient, history: list[dict[str, Any]], infer: bool) -> None:
    answer = await client.post("/v1/memories", json={"messages": history, "user_id": "alice", "infer": infer})
    assert answer.status_code in (200, 201), answer.text
    assert any("I live in Graz." in each["memory"] for each in answer.json()["results"])
    [unused] = [each for each in answer.json()["warnings"] if each.startswith("not_used")]
    assert "tool_call_id, tool_calls" in unused
    roles = {each["role"] for each in answer.json()["results"]}
    assert not roles & {"human", "ai"}
    batch = await client.post("/v1/memories/batch", json={"items": [{"messages": history, "user_id": "bob"}]})
    assert batch.json()["failed"] == 0


@pytest.mark.parametrize("moment", [1425204000, "2015-03-01T10:00:00Z"])
async def test_created_at_is_when_it_was_said(client: AsyncClient, moment: Any) -> None:
    said = {"role": "user", "content": "I went to the dentist today.", "created_at": moment}
    answer = await client.post("/v1/memories", json={"messages": [said], "user_id": "alice"})
    assert "(1 March 2015)" in answer.json()["results"][0]["memory"]


@pytest.mark.parametrize("moment", ["soon", True, {}, 1e300, "0001-01-01T00:00:00Z"])
async def test_a_wrong_created_at_is_named(client: AsyncClient, moment: Any) -> None:
    messages = [{"role": "user", "content": "I like tea."}, {"role": "user", "content": "Hi", "created_at": moment}]
    answer = await client.post("/v1/memories", json={"messages": messages, "user_id": "alice"})
    assert (answer.status_code, answer.json()["field"]) == (400, "messages[1].created_at"), answer.text


async def test_a_misspelt_field_is_still_refused(client: AsyncClient) -> None:
    for message in ({"role": "user", "contents": "Hi"}, {"content": "Hi"}, {"rôle": "user", "content": "Hi"}):
        answer = await client.post("/v1/memories", json={"messages": [message], "user_id": "alice"})
        assert answer.status_code == 400
