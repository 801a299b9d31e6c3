"""How tests tell the service something and look at what it made of it."""

from __future__ import annotations

from typing import Any

from httpx2 import AsyncClient

Results = list[dict[str, Any]]


async def answer(client: AsyncClient, said: str | Results, user: str = "bob", **more: Any) -> dict[str, Any]:
    """The whole answer to a conversation."""
    got = await client.post("/v1/memories", json={"messages": said, "user_id": user, **more})
    assert got.status_code == 200, got.text
    found: dict[str, Any] = got.json()
    return found


async def tell(client: AsyncClient, said: str | Results, user: str = "bob", **more: Any) -> Results:
    """What became of each fact of a conversation."""
    found: Results = (await answer(client, said, user, **more))["results"]
    return found


async def known(client: AsyncClient, user: str = "bob") -> list[str]:
    """What a user's memories say, newest first."""
    listed = await client.get("/v1/memories", params={"user_id": user})
    assert listed.status_code == 200, listed.text
    return [each["memory"] for each in listed.json()["results"]]


async def past(client: AsyncClient, memory_id: str) -> Results:
    """Its history, oldest first."""
    got = await client.get(f"/v1/memories/{memory_id}/history")
    assert got.status_code == 200, got.text
    found: Results = got.json()["results"]
    return found


def events(results: Results) -> list[str]:
    return [each["event"] for each in results]
