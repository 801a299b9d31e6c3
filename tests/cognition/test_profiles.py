"""User profiles: stored, replaced, guarded by If-Match, erased with the user; and the list of channels."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.conftest import SetClock
from tests.support.application import client_of
from tests.support.calls import opened, said, store

PATH = "/v1/users/alice/profile"
WHOLE: dict[str, Any] = {
    "preferences": {"units": "metric", "language": "pt"},
    "expertise_areas": ["sailing", {"name": "Rust", "level": 3}],
    "communication_style": {"tone": "brief"},
    "metadata": {"source": "intake"},
}


async def test_a_profile_is_set_read_and_replaced(client: AsyncClient, clock: SetClock) -> None:
    assert (await client.get(PATH)).status_code == 404
    made = await client.put(PATH, json=WHOLE)
    assert made.status_code == 201
    found = await client.get(PATH)
    assert found.json() == made.json()
    assert found.json().items() >= {"user_id": "alice", **WHOLE, "version": 1}.items()
    clock.forward(hours=1)
    again = await client.put(PATH, json={"preferences": {"units": "imperial"}})
    assert (again.status_code, again.headers["ETag"]) == (200, '"2"')
    assert again.json()["expertise_areas"] == []
    assert again.json()["created_at"] < again.json()["updated_at"] == clock().isoformat()


async def test_the_version_seen_must_be_the_version_there(client: AsyncClient) -> None:
    absent = await client.put(PATH, json=WHOLE, headers={"If-Match": '"1"'})
    assert (absent.status_code, absent.json()["field"]) == (412, "If-Match")
    tag = (await client.put(PATH, json=WHOLE)).headers["ETag"]
    assert (await client.put(PATH, json={"metadata": {"a": 1}}, headers={"If-Match": tag})).status_code == 200
    assert (await client.put(PATH, json=WHOLE, headers={"If-Match": tag})).status_code == 412
    assert (await client.put(PATH, json=WHOLE, headers={"If-Match": "*"})).status_code == 200


async def test_secrets_are_cut_out_and_others_see_nothing(client: AsyncClient, other_client: AsyncClient) -> None:
    body = {"preferences": {"mail": "ann@example.com"}, "expertise_areas": ["ask bob@example.com"]}
    found = (await client.put(PATH, json=body)).json()
    assert found["preferences"] == {"mail": "[REDACTED:EMAIL]"}
    assert found["expertise_areas"] == ["ask [REDACTED:EMAIL]"]
    assert (await other_client.get(PATH)).status_code == 404
    assert (await client.get("/v1/users/bob/profile")).status_code == 404


async def test_a_profile_goes_with_its_user_and_with_nothing_less(client: AsyncClient) -> None:
    await client.put(PATH, json=WHOLE)
    await client.put("/v1/users/bob/profile", json=WHOLE)
    await client.delete("/v1/memories", params={"user_id": "alice", "run_id": "r"})
    assert (await client.get(PATH)).status_code == 200
    await client.delete("/v1/memories", params={"user_id": "alice"})
    assert (await client.get(PATH)).status_code == 404
    assert (await client.get("/v1/users/bob/profile")).status_code == 200
    await client.post("/v1/reset")
    assert (await client.get("/v1/users/bob/profile")).status_code == 404


async def test_the_profile_of_another_user_is_outside_the_wall(client: AsyncClient, app: FastAPI) -> None:
    body = {"name": "alice", "rights": ["memory:read", "memory:write"], "user_id": "alice"}
    secret = (await client.post("/v1/api-keys", json=body)).json()["api_key"]
    async with client_of(app, secret) as alice:
        assert (await alice.put(PATH, json=WHOLE)).status_code == 201
        assert (await alice.get(PATH)).status_code == 200
        for refused in (
            await alice.get("/v1/users/bob/profile"),
            await alice.put("/v1/users/bob/profile", json=WHOLE),
        ):
            assert (refused.status_code, refused.json()["field"]) == (403, "user_id"), refused.text


async def test_channels_are_listed_with_what_stands_in_them(
    client: AsyncClient, other_client: AsyncClient, clock: SetClock
) -> None:
    await store(client, "Prefers tabs", channel="atlas")
    await store(client, "Drinks tea")
    await store(client, "Likes milk", user_id="bob", channel="borealis")
    await store(other_client, "Theirs", channel="hidden")
    there = await opened(client, "chat", channel="atlas")
    for number in range(2):
        await said(client, there, f"Sentence {number}")
    found = (await client.get("/v1/channels")).json()["results"]
    assert [(each["channel"], each["memories"], each["turns"], each["conversations"]) for each in found] == [
        ("_global", 1, 0, 0),
        ("atlas", 1, 2, 1),
        ("borealis", 1, 0, 0),
    ]
    mine = (await client.get("/v1/channels", params={"user_id": "alice", "limit": 1})).json()
    rest = (await client.get("/v1/channels", params={"user_id": "alice", "cursor": mine["next_cursor"]})).json()
    assert [each["channel"] for each in (*mine["results"], *rest["results"])] == ["_global", "atlas"]
    assert rest["next_cursor"] is None
    for bad in ("cursor=nonsense", "limit=0"):
        assert (await client.get(f"/v1/channels?{bad}")).status_code == 400
