"""Names that hold a secret are refused, keys of JSON are redacted, and neither gets into the database or the log."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.access.statements import keys
from tests.support.application import Tables
from tests.support.calls import opened, said, store

AWS = "AKIA" + "QYLPMN5HHHFPZAM2"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("memories", {"content": "Likes tea", "user_id": AWS}, "user_id"),
    ("memories", {"content": "Likes tea", "user_id": "a", "session_id": f"chat {AWS}"}, "session_id"),
    ("memories", {"content": "Likes tea", "user_id": "a", "channel": "4111 1111 1111 1111"}, "channel"),
    ("memories", {"user_id": "a", "messages": [{"role": "user", "content": "Hi", "name": AWS}]}, "messages[0].name"),
    ("tool-invocations", {"user_id": "a", "tool_name": AWS, "tool_input": 1, "success": True}, "tool_name"),
    ("strategies", {"user_id": "a", "description": "Ask", "tool_sequence": [AWS]}, "tool_sequence[0]"),
    ("strategies", {"user_id": "a", "description": "Ask", "task_type": AWS}, "task_type"),
    ("api-keys", {"name": AWS, "rights": ["memory:read"]}, "name"),
]


async def test_a_name_with_a_secret_is_refused(client: AsyncClient, tables: Tables) -> None:
    for path, body, field in REFUSED:
        answer = await client.post(f"/v1/{path}", json=body)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "pii_rejected", field)
        assert AWS not in answer.text
    assert await tables.holding(AWS) == []


async def test_headers_with_a_secret_are_refused(client: AsyncClient) -> None:
    body = {"content": "Likes tea", "user_id": "a"}
    for name in ("Idempotency-Key", "X-Session-Id"):
        answer = await client.post("/v1/memories", json=body, headers={name: keys.new_secret()})
        assert (answer.status_code, answer.json()["field"]) == (422, name)
    answer = await client.get("/v1/whoami", headers={"X-Session-Id": keys.new_secret()})
    assert answer.status_code == 422, "the audit of reads keeps it, too"


@pytest.mark.parametrize("value", ["４２４２ ４２４２ ４２４２ ４２４２", "4242\u200b4242\u200b4242\u200b4242"])
async def test_headers_are_read_as_utf_8(client: AsyncClient, value: str) -> None:
    body = {"content": "Likes tea", "user_id": "a"}
    for name in ("Idempotency-Key", "X-Session-Id"):
        answer = await client.post("/v1/memories", json=body, headers=[(name.encode(), value.encode())])
        assert (answer.status_code, answer.json()["field"]) == (422, name)
    for harmless in ("Grüße von 渡辺".encode(), "Grüße".encode("latin-1")):
        for name in ("Idempotency-Key", "X-Session-Id"):
            answer = await client.post("/v1/memories", json=body, headers=[(name.encode(), harmless)])
            assert answer.status_code in {200, 201}


async def test_a_request_id_with_a_secret_is_replaced(client: AsyncClient) -> None:
    for given, kept in (("trace-1", True), (AWS, False), (keys.new_secret(), False)):
        answer = await client.get("/v1/whoami", headers={"X-Request-ID": given})
        assert (answer.headers["x-request-id"] == given) == kept


async def test_keys_of_json_are_redacted(client: AsyncClient, tables: Tables) -> None:
    found = await store(client, "Likes tea", metadata={AWS: 1, "deep": [{f"x {AWS}": {"a@b.org": 2}}]})
    memory = (await client.get(f"/v1/memories/{found}")).json()
    assert memory["metadata"] == {
        "[REDACTED:API_KEY]": 1,
        "deep": [{"x [REDACTED:API_KEY]": {"[REDACTED:EMAIL]": 2}}],
    }
    assert await tables.holding(AWS) == []


async def test_ids_people_use_are_taken(client: AsyncClient) -> None:
    for user_id in ("ana@example.org", "+4917612345678", "auth0|5f7c8ec7c33c6c004bbafe82", "10.0.0.7"):
        await store(client, "Likes tea", user_id=user_id)
    conversation = await opened(client, "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c")
    await said(client, conversation, "Hi", name="Ana <ana@example.org>")
