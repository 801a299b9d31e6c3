"""How often an add talks to the database: each time costs both sides a few tenths of a millisecond."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.scripted_model import ConversationScript, with_scripted_model

COLOUR, SEA, DOOR = "User likes blue", "User likes the sea", "The code of the door is blue"
MIND = ConversationScript(facts={"both": [COLOUR, SEA], "blue": [COLOUR], "sea": [SEA], "code": [DOOR]})


@contextmanager
def counted() -> Iterator[list[str]]:
    """The beginnings of all that goes to the database, a trip each."""
    trips: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("execute", "fetch", "executemany"):
            plain = getattr(asyncpg.Connection, name)

            async def noted(self: Any, query: str, *rest: Any, plain: Any = plain, **named: Any) -> Any:
                if "NOTIFY" not in query:
                    trips.append(" ".join(query.split()[:2]))
                return await plain(self, query, *rest, **named)

            patch.setattr(asyncpg.Connection, name, noted)
        yield trips


def said(text: str, **rest: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "user_id": "alice", **rest}


async def test_the_trips_of_an_add(resources: Resources, tenant: Tenant) -> None:
    local = CachedEmbedder(AngleEmbedder(resources.embedder.dimension), entries=100)  # so without a table of vectors
    own = replace(resources, embedder=local)
    async with with_scripted_model(own, tenant, MIND) as scripted:
        await scripted.client.post("/v1/memories", json=said("I like the sea"))
        with counted() as trips:
            answer = await scripted.client.post("/v1/memories", json=said("I like blue"))
        assert [each["event"] for each in answer.json()["results"]] == ["ADD"]
        assert trips[-4:] == ["BEGIN ISOLATION", "WITH counted", "WITH part_1", "COMMIT"]
        assert len(trips) == 4 + 3 + 3 + 3 + 4, (
            "turns and memories to read with, the answer's cache, its tokens, neighbours, the write"
        )
        with counted() as trips:
            await scripted.client.post("/v1/memories", json=said("I like blue, really", run_id="r1"))
        assert len(trips) <= 4 + 3 + 3 + 3 + 7


async def test_what_several_facts_of_one_message_leave(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with with_scripted_model(resources, tenant, MIND) as scripted:
        answer = await scripted.client.post("/v1/memories", json=said("I like both, blue and the sea"))
        assert [each["event"] for each in answer.json()["results"]] == ["ADD", "ADD"]
        counts = await tables.counts(tenant.workspace_id)
        found = {name: counts[name] for name in ("memory", "memory_source", "turn", "conversation", "llm_cache")}
        assert found == {"memory": 2, "memory_source": 2, "turn": 1, "conversation": 1, "llm_cache": 1}


async def test_a_fact_whose_twin_expired(resources: Resources, tenant: Tenant, clock: SetClock) -> None:
    async with with_scripted_model(resources, tenant, MIND) as scripted:
        until = (clock() + timedelta(seconds=60)).isoformat()
        body = said("I like blue", expires_at=until)
        first = (await scripted.client.post("/v1/memories", json=body)).json()["results"]
        clock.forward(minutes=2)
        again = (await scripted.client.post("/v1/memories", json=said("I like blue again"))).json()["results"]
        assert [each["event"] for each in (*first, *again)] == ["ADD", "ADD"]
        assert first[0]["id"] != again[0]["id"]
        assert first[0]["memory"] == again[0]["memory"]
        third = (await scripted.client.post("/v1/memories", json=said("I really like blue"))).json()["results"]
        assert [(each["event"], each["id"]) for each in third] == [("NONE", again[0]["id"])]
