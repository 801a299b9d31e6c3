"""Conversations stored with `infer=true` over HTTP, and the facts made of them with their source turns.

Shared by the reports on facts. The service runs offline, with its defaults, in a temporary folder. Every session is one
POST /v1/memories under its `session_id`, so that its facts are the user's and meet those of other sessions; turn number
n was said n seconds after the session began. A service that refuses a request raises httpx.HTTPStatusError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from bench import target
from bench.bundle import turn_ids_of
from bench.stores import until_idle
from bench.target import Service

TIMEOUT_S, IDLE_S = 300.0, 900.0
PAGE = 500
ROLES = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A live fact with the turns that it was read from, as (session id, turn id)."""

    id: str
    text: str
    sources: frozenset[tuple[str, str]]


def over_http(measure: Callable[[Service, httpx.AsyncClient], Awaitable[str]]) -> str:
    """Returns the report that `measure` makes of a fresh service."""

    async def run(service: Service) -> str:
        headers = {"Authorization": f"Bearer {service.key}"}
        async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=TIMEOUT_S) as client:
            return await measure(service, client)

    with target.started() as service:
        return asyncio.run(run(service))


async def post(client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON of the answer."""
    answer = (await client.post(path, json=body)).raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


async def get(client: httpx.AsyncClient, path: str, **parameters: str | int) -> dict[str, Any]:
    """Returns the JSON of the answer."""
    found: dict[str, Any] = (await client.get(path, params=parameters)).raise_for_status().json()
    return found


async def settled(service: Service) -> None:
    """Waits until the worker has enriched everything."""
    await until_idle(service, IDLE_S)


async def store(client: httpx.AsyncClient, conversation: Mapping[str, Any]) -> None:
    """Stores a conversation; its user is the conversation."""
    for session in conversation["sessions"]:
        messages = messages_of(session)
        body = {"messages": messages, "infer": True, "user_id": conversation["id"], "session_id": session["id"]}
        await post(client, "/v1/memories", body)


def messages_of(session: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a session. Speakers called user and assistant are roles, all others are users with a name."""
    began = datetime.fromisoformat(session["datetime"])
    began = began if began.tzinfo else began.replace(tzinfo=UTC)
    return [
        {
            **({"role": speaker} if (speaker := turn["speaker"]) in ROLES else {"role": "user", "name": speaker}),
            "content": turn["text"],
            "timestamp": (began + timedelta(seconds=index)).isoformat(),
        }
        for index, turn in enumerate(session["turns"])
    ]


async def facts(client: httpx.AsyncClient, conversation: Mapping[str, Any]) -> list[StoredFact]:
    """The live facts of a conversation; archived ones are left out."""
    turn_ids = turn_ids_of(conversation)
    found: list[StoredFact] = []
    cursor: dict[str, str] = {}
    while True:
        page = await get(client, "/v1/memories", user_id=conversation["id"], limit=PAGE, **cursor)
        for memory in page["results"]:
            why = await get(client, f"/v1/memories/{memory['id']}/why")
            places = [(source["external_id"], source["turn_index"]) for source in why["sources"]]
            sources = frozenset((place[0], turn_ids[place]) for place in places if place in turn_ids)
            found.append(StoredFact(memory["id"], memory["memory"], sources))
        if not page["next_cursor"]:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def hits(client: httpx.AsyncClient, user: str, query: str, *, limit: int) -> list[dict[str, Any]]:
    """The first memories that a search of the user finds, without counting as use."""
    body = {"query": query, "user_id": user, "limit": limit, "reinforce": False}
    results: list[dict[str, Any]] = (await post(client, "/v1/memories/search", body))["results"]
    return results
