"""Working memory: turns, values, thoughts, goal and data of one session, invisible to others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import AsyncClient

from service.domain.job import Job
from service.domain.scope import NIL_WORKSPACE, Scope
from service.domain.text import CleanText
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.upkeep.jobs import maintenance
from service.working.statements import working
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables, client_of, serving

HOME = "/v1/working/trip"
ALICE = {"user_id": "alice"}


async def put(client: AsyncClient, key: str, value: Any, *, home: str = HOME, **more: Any) -> Any:
    answer = await client.put(f"{home}/items/{key}", json={"value": value, **more}, params=ALICE)
    assert answer.status_code in (200, 201), answer.text
    return answer


async def test_a_value_is_set_read_replaced_and_let_go(client: AsyncClient) -> None:
    made = await put(client, "cart", {"seats": 2})
    assert made.status_code == 201
    read = await client.get(f"{HOME}/items/cart", params=ALICE)
    assert read.json() == made.json()
    assert read.json()["value"] == {"seats": 2}
    assert read.headers["ETag"] == f'"{read.json()["version"]}"'
    again = await put(client, "cart", None)
    assert again.status_code == 200
    assert again.json()["version"] > made.json()["version"]
    assert (await client.get(f"{HOME}/items/cart", params=ALICE)).json()["value"] is None
    assert (await client.delete(f"{HOME}/items/cart", params=ALICE)).json() == {"deleted": 1}
    for gone in (await client.get(f"{HOME}/items/cart", params=ALICE), await client.delete(f"{HOME}/items/cart")):
        assert gone.status_code == 404


async def test_a_key_may_hold_anything_a_path_can(client: AsyncClient) -> None:
    await put(client, "cart/seats%20%C3%A4", 1)
    answer = await client.get(f"{HOME}/items/cart/seats%20%C3%A4", params=ALICE)
    assert answer.json()["key"] == "cart/seats ä"


async def test_everything_ends_after_an_hour_or_when_it_says(client: AsyncClient, clock: SetClock) -> None:
    await put(client, "usual", 1)
    await put(client, "brief", 2, ttl_seconds=60)
    await put(client, "long", 3, ttl_seconds=7200)
    await client.post(f"{HOME}/thoughts", json={"thought": "soon", "ttl_seconds": 60}, params=ALICE)
    clock.forward(seconds=59)
    assert (await client.get(f"{HOME}/items/brief", params=ALICE)).status_code == 200
    clock.forward(seconds=1)
    assert (await client.get(f"{HOME}/items/brief", params=ALICE)).status_code == 404
    assert (await client.get(f"{HOME}/thoughts", params=ALICE)).json() == {"results": []}
    clock.forward(seconds=3539)
    assert set((await client.get(HOME, params=ALICE)).json()["items"]) == {"usual", "long"}
    clock.forward(seconds=1)
    assert set((await client.get(HOME, params=ALICE)).json()["items"]) == {"long"}
    assert (await put(client, "usual", 1)).status_code == 201, "what is over counts as new"


async def test_a_workspace_says_how_long_a_note_is_kept(client: AsyncClient, clock: SetClock) -> None:
    await client.patch("/v1/workspaces/current", json={"settings": {"working_ttl_s": 60}})
    await put(client, "usual", 1)
    clock.forward(seconds=60)
    assert (await client.get(f"{HOME}/items/usual", params=ALICE)).status_code == 404


async def test_turns_newest_first_and_trimmed(
    resources: Resources, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(working.MAX_ENTRIES, "turn", 3)
    async with serving(resources) as app, client_of(app, tenant.key) as client:
        for number in range(5):
            said = {"role": "user", "content": f"turn {number}", "name": "Ann"}
            answer = await client.post(f"{HOME}/turns", json=said, params=ALICE)
            assert (answer.status_code, answer.json()["content"]) == (201, f"turn {number}")
        listed = (await client.get(f"{HOME}/turns", params=ALICE)).json()["results"]
        assert [each["content"] for each in listed] == ["turn 4", "turn 3", "turn 2"]
        assert [each["name"] for each in listed] == ["Ann"] * 3
        two = await client.get(f"{HOME}/turns", params={**ALICE, "limit": 2})
        assert [each["content"] for each in two.json()["results"]] == ["turn 4", "turn 3"]


async def test_thoughts_newest_first(client: AsyncClient) -> None:
    for number in range(3):
        await client.post(f"{HOME}/thoughts", json={"thought": f"idea {number}"}, params=ALICE)
    listed = (await client.get(f"{HOME}/thoughts", params={**ALICE, "limit": 2})).json()["results"]
    assert [each["thought"] for each in listed] == ["idea 2", "idea 1"]


async def test_one_active_goal(client: AsyncClient) -> None:
    assert (await client.get(f"{HOME}/goal", params=ALICE)).status_code == 404
    first = await client.put(f"{HOME}/goal", json={"description": "Plan the trip"}, params=ALICE)
    assert first.status_code == 201
    second = await client.put(f"{HOME}/goal", json={"description": "Book the train"}, params=ALICE)
    assert second.status_code == 200
    assert (await client.get(f"{HOME}/goal", params=ALICE)).json() == second.json()
    stale = {"If-Match": first.headers["ETag"]}
    late = await client.put(f"{HOME}/goal", json={"description": "Walk"}, params=ALICE, headers=stale)
    assert late.status_code == 412


async def test_the_whole_context_and_its_end(client: AsyncClient) -> None:
    await put(client, "b", 2)
    await put(client, "a", 1)
    await client.post(f"{HOME}/turns", json={"role": "user", "content": "Hello"}, params=ALICE)
    await client.post(f"{HOME}/thoughts", json={"thought": "Greet"}, params=ALICE)
    await client.put(f"{HOME}/goal", json={"description": "Be polite"}, params=ALICE)
    found = (await client.get(HOME, params=ALICE)).json()
    assert (found["conversation_id"], found["user_id"], found["channel"]) == ("trip", "alice", "_global")
    assert {key: each["value"] for key, each in found["items"].items()} == {"a": 1, "b": 2}
    assert [each["content"] for each in found["turns"]] == ["Hello"]
    assert [each["thought"] for each in found["thoughts"]] == ["Greet"]
    assert found["goal"]["description"] == "Be polite"
    assert (await client.delete(HOME, params=ALICE)).json() == {"deleted": 5}
    assert (await client.delete(HOME, params=ALICE)).json() == {"deleted": 0}
    empty = (await client.get(HOME, params=ALICE)).json()
    assert (empty["items"], empty["turns"], empty["goal"]) == ({}, [], None)


async def test_a_session_is_of_its_user_agent_channel_and_conversation(
    client: AsyncClient, other_client: AsyncClient
) -> None:
    await put(client, "cart", "alice's")
    for who, home, ids in (
        (client, HOME, {"user_id": "bob"}),
        (client, HOME, {}),
        (client, HOME, {**ALICE, "agent_id": "planner"}),
        (client, HOME, {**ALICE, "channel": "work"}),
        (client, "/v1/working/other", ALICE),
        (other_client, HOME, ALICE),
    ):
        assert (await who.get(f"{home}/items/cart", params=ids)).status_code == 404, ids
        assert (await who.get(home, params=ids)).json()["items"] == {}
        assert (await who.delete(f"{home}/items/cart", params=ids)).status_code == 404
        assert (await who.delete(home, params=ids)).json() == {"deleted": 0}
        assert (await who.put(f"{home}/items/cart", json={"value": 1}, params=ids)).status_code == 201
    assert (await client.get(f"{HOME}/items/cart", params=ALICE)).json()["value"] == "alice's"


async def test_the_least_recently_used_value_goes(
    client: AsyncClient, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(working.MAX_ENTRIES, "item", 3)
    for key in ("a", "b", "c"):
        clock.forward(seconds=1)
        await put(client, key, 1)
    clock.forward(seconds=1)
    await client.get(f"{HOME}/items/a", params=ALICE)
    clock.forward(seconds=1)
    await put(client, "d", 1)
    assert set((await client.get(HOME, params=ALICE)).json()["items"]) == {"a", "c", "d"}
    await put(client, "elsewhere", 1, home="/v1/working/other")
    assert set((await client.get(HOME, params=ALICE)).json()["items"]) == {"a", "c", "d"}


async def test_the_size_of_the_table_is_a_metric(client: AsyncClient) -> None:
    await put(client, "cart", "x" * 1000)
    shown = (await client.get("/metrics")).text
    [line] = [line for line in shown.splitlines() if line.startswith("loxodon_working_memory_bytes ")]
    assert float(line.split()[1]) > 8_000


async def test_a_change_can_be_tied_to_what_was_read(client: AsyncClient) -> None:
    first = await put(client, "cart", 1)
    await put(client, "cart", 2)
    for etag, status in ((first.headers["ETag"], 412), ('"abc"', 412), ("*", 200)):
        answer = await client.put(f"{HOME}/items/cart", json={"value": 3}, params=ALICE, headers={"If-Match": etag})
        assert answer.status_code == status, etag
    gone = await client.put(f"{HOME}/items/new", json={"value": 3}, params=ALICE, headers={"If-Match": "*"})
    assert gone.status_code == 412
    stale = await client.delete(f"{HOME}/items/cart", params=ALICE, headers={"If-Match": first.headers["ETag"]})
    assert stale.status_code == 412


async def test_of_many_that_read_the_same_one_writes(client: AsyncClient) -> None:
    read = {"If-Match": (await put(client, "counter", 0)).headers["ETag"]}
    answers = await asyncio.gather(
        *(
            client.put(f"{HOME}/items/counter", json={"value": number}, params=ALICE, headers=read)
            for number in range(8)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7


async def test_an_idempotency_key_is_refused(client: AsyncClient) -> None:
    key = {"Idempotency-Key": "once"}
    for answer in (
        await client.put(f"{HOME}/items/a", json={"value": 1}, params=ALICE, headers=key),
        await client.post(f"{HOME}/thoughts", json={"thought": "a"}, params=ALICE, headers=key),
        await client.delete(HOME, params=ALICE, headers=key),
    ):
        assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")
    assert (await client.get(HOME, params=ALICE)).json()["items"] == {}


async def test_secrets_are_cut_out_of_everything(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    secret = "anna.berg@example.org"
    await put(client, "mail", {"to": secret, "list": [secret]})
    await put(client, "password", "hunter2hunter")
    await client.post(f"{HOME}/thoughts", json={"thought": f"Write to {secret}"}, params=ALICE)
    await client.post(f"{HOME}/turns", json={"role": "user", "content": f"I am {secret}"}, params=ALICE)
    await client.put(f"{HOME}/goal", json={"description": f"Answer {secret}"}, params=ALICE)
    rows = await tables.fetch("SELECT value::text AS v FROM working_item WHERE workspace_id = $1", tenant.workspace_id)
    assert len(rows) == 5
    assert all("REDACTED" in row["v"] for row in rows)
    assert all(secret not in row["v"] and "hunter2" not in row["v"] for row in rows)
    announced = await client.post(f"{HOME}/turns", json={"role": "user", "content": "my password is"}, params=ALICE)
    assert (announced.status_code, announced.json()["field"]) == (422, "content")


BAD = [
    ("PUT", "items/a", {}, "value"),
    ("PUT", "items/a", {"value": 1, "colour": 2}, "colour"),
    ("PUT", "items/a", {"value": 1, "ttl_seconds": 0}, "ttl_seconds"),
    ("PUT", "items/a", {"value": 1, "ttl_seconds": True}, "ttl_seconds"),
    ("PUT", "items/a", {"value": 1, "ttl_seconds": 604801}, "ttl_seconds"),
    ("PUT", "items/a", {"value": "a\x00"}, "value"),
    ("PUT", "items/a", {"value": "x" * 70_000}, "value"),
    ("PUT", "items/" + "k" * 256, {"value": 1}, "key"),
    ("PUT", "items/%20", {"value": 1}, "key"),
    ("PUT", "goal", {}, None),
    ("PUT", "goal", {"goal_id": "seven"}, "goal_id"),
    ("PUT", "goal", {"description": " "}, "description"),
    ("POST", "turns", {"role": "user"}, "content"),
    ("POST", "turns", {"role": "r" * 21, "content": "x"}, "role"),
    ("POST", "turns", {"role": "user", "content": "x", "timestamp": "noon"}, "timestamp"),
    ("POST", "thoughts", {"thought": ""}, "thought"),
    ("GET", "turns?limit=0", None, "limit"),
    ("GET", "thoughts?limit=1001", None, "limit"),
]


@pytest.mark.parametrize(("method", "path", "body", "field"), BAD, ids=[f"{row[1][:12]} {row[3]}" for row in BAD])
async def test_bad_input_is_refused_by_name(
    client: AsyncClient, tables: Tables, tenant: Tenant, method: str, path: str, body: Any, field: str | None
) -> None:
    answer = await client.request(method, f"{HOME}/{path}", json=body)
    assert answer.status_code == 400, answer.text
    assert field is None or answer.json()["field"] == field, answer.text
    assert await tables.value("SELECT count(*) FROM working_item WHERE workspace_id = $1", tenant.workspace_id) == 0


async def test_a_turn_is_copied_in_its_own_transaction_and_goes_with_it(
    client: AsyncClient, database: Database, tenant: Tenant, tables: Tables, clock: SetClock
) -> None:
    said = {"messages": [{"role": "user", "content": "The quixotic plan"}], "infer": False, "run_id": "r", **ALICE}
    stored = (await client.post("/v1/memories", json=said)).json()["results"][0]
    turn_id = await tables.value("SELECT id FROM turn WHERE workspace_id = $1", tenant.workspace_id)
    desk = Scope(tenant.workspace_id, "alice", run_id=stored["conversation_id"])
    copy = "user", CleanText("The quixotic plan"), None, clock()
    for _ in range(2):
        async with database.begin(tenant.workspace_id) as session:
            await working.put_turn(session, desk, *copy, copied=(turn_id, 0), now=clock(), ttl_s=3600)
    home = f"/v1/working/{stored['conversation_id']}"
    [shown] = (await client.get(f"{home}/turns", params=ALICE)).json()["results"]
    assert (shown["turn_id"], shown["turn_index"], shown["content"]) == (str(turn_id), 0, "The quixotic plan")

    async def broken_off() -> None:
        async with database.begin(tenant.workspace_id) as session:
            await working.put_turn(session, desk, "user", CleanText("no"), None, None, now=clock(), ttl_s=3600)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken_off()
    assert len((await client.get(f"{home}/turns", params=ALICE)).json()["results"]) == 1
    gone = await client.delete(f"/v1/memories/{stored['id']}", params={"purge": True})
    assert gone.status_code == 200
    assert await tables.holding("quixotic") == []


async def test_the_caps_hold_under_parallel_writers(
    database: Database, tenant: Tenant, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(working.MAX_ENTRIES, "turn", 5)
    desk = Scope(tenant.workspace_id, "alice", run_id=str(uuid4()))

    async def write(number: int) -> None:
        async with database.begin(tenant.workspace_id) as session:
            for part in range(3):
                said = CleanText(f"{number} {part}")
                await working.put_turn(session, desk, "user", said, None, None, now=clock(), ttl_s=60)

    await asyncio.gather(*(write(number) for number in range(8)))
    async with database.read(tenant.workspace_id) as session:
        assert len(await working.latest(session, desk, "turn", limit=100, now=clock())) == 5


async def test_the_sweeper_takes_what_is_over_in_every_workspace(
    client: AsyncClient,
    other_client: AsyncClient,
    resources: Resources,
    worker_database: Database,
    tables: Tables,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for who in (client, other_client):
        for key in ("a", "b", "c"):
            await put(who, key, 1, ttl_seconds=60)
        await put(who, "kept", 1)
    clock.forward(seconds=61)
    monkeypatch.setattr(maintenance, "BATCH", 2)
    working_resources = replace(resources, db=worker_database)
    done = await maintenance.sweep_working_memory(
        Job(NIL_WORKSPACE, uuid4(), "sweep_working", None, {}, 1, 3, "test"), working_resources
    )
    assert done["working_item"] >= 6
    for who in (client, other_client):
        assert set((await who.get(HOME, params=ALICE)).json()["items"]) == {"kept"}
    assert await tables.value("SELECT count(*) FROM working_item WHERE expires_at <= $1", clock()) == 0


@pytest.mark.parametrize("purge", [False, True])
async def test_a_users_sessions_go_with_the_user(
    client: AsyncClient, other_client: AsyncClient, tables: Tables, purge: bool
) -> None:
    word = f"Quibblesome{purge}"
    await put(client, "cart", word)
    await client.post(f"{HOME}/turns", json={"role": "user", "content": word}, params=ALICE)
    await client.put(f"{HOME}/items/cart", json={"value": "bob's"}, params={"user_id": "bob"})
    await put(other_client, "cart", "theirs")
    answer = await client.delete("/v1/memories", params={**ALICE, "purge": purge})
    assert answer.status_code == 200, answer.text
    assert await tables.holding(word) == []
    assert (await client.get(f"{HOME}/items/cart", params={"user_id": "bob"})).status_code == 200
    assert (await other_client.get(f"{HOME}/items/cart", params=ALICE)).status_code == 200


async def test_a_run_is_forgotten_by_its_name_and_by_its_conversation(client: AsyncClient, tables: Tables) -> None:
    said = {"messages": [{"role": "user", "content": "Hello"}], "infer": False, "run_id": "trip", **ALICE}
    stored = (await client.post("/v1/memories", json=said)).json()["results"][0]
    await put(client, "a", "Nincompoopish")
    await put(client, "a", "Nincompoopish", home=f"/v1/working/{stored['conversation_id']}")
    assert (await client.delete("/v1/memories", params={"run_id": "trip", "purge": True})).status_code == 200
    assert await tables.holding("Nincompoopish") == []
