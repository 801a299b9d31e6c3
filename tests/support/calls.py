"""What tests of routes do again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any

from httpx2 import AsyncClient, Response

from tests.fakes.embedder import AngleEmbedder

TUNING = ("fusion", "weights", "factors", "techniques", "diversity", "rerank")


def tuned(fields: dict[str, Any]) -> dict[str, Any]:
    """The body of a search, with how to rank under `tuning`."""
    tuning = {name: fields[name] for name in TUNING if name in fields}
    others = {name: value for name, value in fields.items() if name not in TUNING}
    return {"tuning": tuning, **others} if tuning else others


async def body_of(request: Awaitable[Response], status: int = 200) -> dict[str, Any]:
    """The body of an answer with this status."""
    answer = await request
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def results_of(request: Awaitable[Response], status: int = 200) -> list[dict[str, Any]]:
    """The results in an answer with this status."""
    found: list[dict[str, Any]] = (await body_of(request, status))["results"]
    return found


async def pages(client: AsyncClient, path: str, *, post: bool = False, **asked: Any) -> AsyncIterator[dict[str, Any]]:
    """One page after the other, as the cursors lead."""
    for _ in range(50):
        page = await body_of(client.post(path, json=asked) if post else client.get(path, params=asked))
        yield page
        if page["next_cursor"] is None:
            return
        asked["cursor"] = page["next_cursor"]
    raise AssertionError("it does not end")


async def store(client: AsyncClient, content: str, *, user_id: str = "alice", **fields: Any) -> str:
    """The id of a new memory."""
    answer = await client.post("/v1/memories", json={"content": content, "user_id": user_id, **fields})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["results"][0]["id"]
    return found


async def store_at(client: AsyncClient, embedder: AngleEmbedder, content: str, angle: float, **fields: Any) -> str:
    """The id of a new memory this near to the first side; equal ones are kept apart."""
    embedder.place(content, angle, side=2)
    return await store(client, content, **{"user_id": "iris", "dedup": False, **fields})


async def events(client: AsyncClient, memory_id: str) -> list[str]:
    """What its history tells, oldest first."""
    answer = await client.get(f"/v1/memories/{memory_id}/history")
    return [entry["event"] for entry in answer.json()["results"]]


async def listed(client: AsyncClient, **scope: Any) -> set[str]:
    """The ids that a list of the scope shows."""
    answer = await client.get("/v1/memories", params=scope)
    assert answer.status_code == 200, answer.text
    return {each["id"] for each in answer.json()["results"]}


async def opened(client: AsyncClient, name: str, *, user_id: str = "alice", **fields: Any) -> str:
    """The id of a new conversation."""
    answer = await client.post("/v1/conversations", json={"external_id": name, "user_id": user_id, **fields})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def said(client: AsyncClient, conversation: str, content: str, **fields: Any) -> str:
    """The id of a new turn, by the user unless told otherwise."""
    body = {"role": "user", "content": content, **fields}
    answer = await client.post(f"/v1/conversations/{conversation}/turns", json=body)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found
