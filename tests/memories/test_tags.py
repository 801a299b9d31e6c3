"""Memories are found by their tags, in the right order and with their relations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from tests.conftest import SetClock
from tests.support.application import Tables
from tests.support.calls import store


async def by_tag(client: AsyncClient, *tags: str, **params: Any) -> list[dict[str, Any]]:
    answer = await client.get("/v1/memories/by-tag", params={"tags": list(tags), "user_id": "alice", **params})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


async def test_prefixes_find_what_is_below_them(client: AsyncClient) -> None:
    slack = await store(client, "Deploys are announced on Fridays", tags=["slack:channel:general"])
    project = await store(client, "The service speaks REST", tags=["project:automem:api"])
    assert [each["id"] for each in await by_tag(client, "slack")] == [slack]
    assert [each["id"] for each in await by_tag(client, "Slack:Channel")] == [slack]
    assert [each["id"] for each in await by_tag(client, "project:automem")] == [project]
    assert await by_tag(client, "slack", tag_match="exact") == []
    assert [each["id"] for each in await by_tag(client, "slack:channel:general", tag_match="exact")] == [slack]
    assert await by_tag(client, "channel") == []


async def test_any_or_all(client: AsyncClient) -> None:
    both = await store(client, "Both of them", tags=["red", "blue"], importance=0.9)
    red = await store(client, "Only the one", tags=["red"], importance=0.5)
    assert [each["id"] for each in await by_tag(client, "red", "blue")] == [both, red]
    assert [each["id"] for each in await by_tag(client, "red,blue")] == [both, red]
    assert [each["id"] for each in await by_tag(client, "red", "blue", tag_mode="all")] == [both]


async def test_what_is_not_valid_now_is_left_out(client: AsyncClient, clock: SetClock) -> None:
    """As in every search; a memory that another one superseded is no longer valid, too."""
    begins, ends = (clock() + timedelta(days=1)).isoformat(), clock().isoformat()
    over = await store(client, "Lived in Lisbon", tags=["home"], importance=0.9, t_invalid=ends, dedup=False)
    now = await store(client, "Lives in Porto", tags=["home"], importance=0.5, dedup=False)
    later = await store(client, "Will live in Braga", tags=["home"], importance=0.1, t_valid=begins, dedup=False)
    for validity, expected in ((None, [now]), ("demote", [over, now]), ("ignore", [over, now, later])):
        asked = {} if validity is None else {"validity": validity}
        assert [each["id"] for each in await by_tag(client, "home", **asked)] == expected
    clock.forward(days=2)
    assert [each["id"] for each in await by_tag(client, "home")] == [now, later]


async def test_the_important_come_first_then_the_latest(client: AsyncClient) -> None:
    minor = await store(client, "A minor one", tags=["x"], importance=0.2, timestamp="2026-01-03T00:00:00Z")
    early = await store(client, "An amber one", tags=["x"], importance=0.8, timestamp="2026-01-01T00:00:00Z")
    late = await store(client, "A cobalt one", tags=["x"], importance=0.8, timestamp="2026-01-02T00:00:00Z")
    found = await by_tag(client, "x")
    assert [each["id"] for each in found] == [late, early, minor]
    assert [each["score"] for each in found] == [0.8, 0.8, 0.2]
    assert [each["id"] for each in await by_tag(client, "x", limit=1)] == [late]


async def test_what_it_is_tied_to_comes_along(client: AsyncClient) -> None:
    centre = await store(client, "The centre of it", tags=["x"])
    for number in range(7):
        other = await store(client, f"Neighbour with number {number}")
        body = {"target_id": other, "type": "RELATES_TO", "strength": number / 10}
        await client.post(f"/v1/memories/{centre}/relations", json=body)
    connected = (await by_tag(client, "x"))[0]["connected"]
    assert [each["strength"] for each in connected] == [0.6, 0.5, 0.4, 0.3, 0.2]
    assert connected[0]["memory"] == "Neighbour with number 6"
    await client.patch("/v1/workspaces/current", json={"settings": {"recall_relation_limit": 2}})
    assert len((await by_tag(client, "x"))[0]["connected"]) == 2


async def test_other_scopes_and_archived_ones_stay_out(
    client: AsyncClient, other_client: AsyncClient, tables: Tables
) -> None:
    archived = await store(client, "An archived one", tags=["x"])
    await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(archived))
    await store(client, "One of bob", user_id="bob", tags=["x"])
    await store(other_client, "One of a stranger", tags=["x"])
    assert await by_tag(client, "x") == []
    assert [each["id"] for each in await by_tag(client, "x", include_archived=True)] == [archived]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"user_id": "alice"}, "tags"),
        ({"user_id": "alice", "tags": " , "}, "tags"),
        ({"user_id": "alice", "tags": "x", "limit": 101}, "limit"),
        ({"user_id": "alice", "tags": "x", "limit": 0}, "limit"),
        ({"user_id": "alice", "tags": "x", "tag_mode": "none"}, "tag_mode"),
        ({"tags": "x"}, "user_id"),
    ],
)
async def test_what_is_no_question_is_400(client: AsyncClient, params: dict[str, Any], field: str) -> None:
    answer = await client.get("/v1/memories/by-tag", params=params)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
