"""Many memories at once by their ids: each fares as it would on its own."""

from __future__ import annotations

from uuid import uuid4

from httpx2 import AsyncClient

from tests.support.calls import events, store

NOBODY = "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"


async def test_get_keeps_the_order_and_names_what_is_missing(client: AsyncClient, other_client: AsyncClient) -> None:
    ids = [await store(client, f"Fact with number {number}") for number in range(3)]
    theirs = await store(other_client, "Theirs alone")
    wanted = [ids[2], "fake-id", ids[0], NOBODY, theirs, ids[2]]
    found = (await client.post("/v1/memories/batch/get", json={"ids": wanted, "detail": "full"})).json()
    assert [each["id"] for each in found["results"]] == [ids[2], ids[0]]
    assert found["missing"] == ["fake-id", NOBODY, theirs]
    assert found["results"][0] == (await client.get(f"/v1/memories/{ids[2]}")).json()


async def test_delete(client: AsyncClient) -> None:
    first, second = await store(client, "Drinks tea"), await store(client, "Plays chess")
    await client.delete(f"/v1/memories/{second}")
    body = {"ids": [second, NOBODY, first, "fake-id", first]}
    headers = {"Idempotency-Key": str(uuid4())}
    found = (await client.post("/v1/memories/batch/delete", json=body, headers=headers)).json()
    assert [(each["status"], each["deleted"], each["already_deleted"]) for each in found["results"]] == [
        (200, True, True),
        (404, False, False),
        (200, True, False),
        (404, False, False),
        (200, True, False),
    ]
    assert found["deleted"] == 1
    assert await events(client, first) == ["ADD", "DELETE"]
    again = await client.post("/v1/memories/batch/delete", json=body, headers=headers)
    assert again.json() == found


async def test_too_many_or_none_are_400(client: AsyncClient) -> None:
    for path in ("get", "delete"):
        for ids in ([], [NOBODY] * 1_001):
            answer = await client.post(f"/v1/memories/batch/{path}", json={"ids": ids})
            assert (answer.status_code, answer.json()["field"]) == (400, "ids")
