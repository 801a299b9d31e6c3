"""How tests tell the service something and look at what it made of it."""

from __future__ import annotations

from typing import Any

from httpx2 import AsyncClient

from tests.support.calls import body_of, results_of

Results = list[dict[str, Any]]


async def answer(client: AsyncClient, said: str | Results, user: str = "bob", **more: Any) -> dict[str, Any]:
    """The whole answer to a conversation."""
    return await body_of(client.post("/v1/memories", json={"messages": said, "user_id": user, **more}))


async def tell(client: AsyncClient, said: str | Results, user: str = "bob", **more: Any) -> Results:
    """What became of each fact of a conversation."""
    found: Results = (await answer(client, said, user, **more))["results"]
    return found


async def known(client: AsyncClient, user: str = "bob") -> list[str]:
    """What a user's memories say, newest first."""
    return [each["memory"] for each in await results_of(client.get("/v1/memories", params={"user_id": user}))]


async def past(client: AsyncClient, memory_id: str) -> Results:
    """Its history, oldest first."""
    return await results_of(client.get(f"/v1/memories/{memory_id}/history"))


def events(results: Results) -> list[str]:
    return [each["event"] for each in results]
