"""Keys that are made for one user, agent, run or some channels: what they reach, and that nothing else is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.access import NO_WALL, Wall
from service.memories import lifecycle
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.runtime.statements.caches import AnswerTable
from tests.conftest import Tenant
from tests.support.application import Tables, client_of
from tests.support.calls import body_of, results_of
from tests.support.tasks import work

EVERYTHING = ["memory:read", "memory:write", "memory:delete", "memory:purge", "memory:admin"]


async def walled(client: AsyncClient, **wall: Any) -> str:
    body = {"name": "walled", "rights": EVERYTHING, **wall}
    return str((await body_of(client.post("/v1/api-keys", json=body), 201))["api_key"])


async def stored(client: AsyncClient, content: str, **scope: Any) -> str:
    return str((await results_of(client.post("/v1/memories", json={"content": content, **scope}), 201))[0]["id"])


async def test_a_key_made_for_one_user_reads_changes_and_deletes_nothing_of_another(
    client: AsyncClient, app: FastAPI
) -> None:
    bobs = await stored(client, "Bob collects mechanical clocks", user_id="bob")
    async with client_of(app, await walled(client, user_id="alice")) as alice:
        assert (await alice.get(f"/v1/memories/{bobs}")).status_code == 404
        assert (await alice.get(f"/v1/memories/{bobs}/history")).status_code == 404
        assert (await alice.patch(f"/v1/memories/{bobs}", json={"content": "Nothing"})).status_code == 404
        assert (await alice.delete(f"/v1/memories/{bobs}")).status_code == 404
        assert (await alice.delete(f"/v1/memories/{bobs}?purge=true")).status_code == 404
        found = await alice.post("/v1/memories/search", json={"query": "clocks", "user_id": "bob"})
        assert (found.status_code, found.json()["field"]) == (403, "user_id")
        assert (await alice.get("/v1/memories?user_id=bob")).status_code == 403
        assert (await alice.get("/v1/memories?agent_id=clockmaker")).json()["results"] == []
        refused = await alice.post("/v1/memories", json={"content": "Bob hates clocks", "user_id": "bob"})
        assert (refused.status_code, refused.json()["field"]) == (403, "user_id")
        assert (await alice.delete("/v1/memories?user_id=bob")).status_code == 403
        found = await alice.post("/v1/memories/batch/get", json={"ids": [bobs]})
        assert found.json() == {"results": [], "missing": [bobs], "next_cursor": None}
    assert (await client.get(f"/v1/memories/{bobs}")).json()["memory"] == "Bob collects mechanical clocks"


async def test_a_key_made_for_one_user_works_for_that_user(client: AsyncClient, app: FastAPI) -> None:
    async with client_of(app, await walled(client, user_id="alice")) as alice:
        own = await stored(alice, "Alice rows on the lake every Tuesday")
        read = (await alice.get(f"/v1/memories/{own}")).json()
        assert read["user_id"] == "alice"
        found = await alice.post("/v1/memories/search", json={"query": "rowing on the lake"})
        assert [each["id"] for each in found.json()["results"]] == [own]
        changed = await alice.patch(f"/v1/memories/{own}", json={"content": "Alice rows on the lake on Fridays"})
        assert changed.status_code == 200, changed.text
        assert len((await alice.get(f"/v1/memories/{own}/history")).json()["results"]) == 2
        said = {"messages": [{"role": "user", "content": "I moved to Lisbon."}], "run_id": "chat"}
        assert (await alice.post("/v1/memories", json=said)).status_code in (200, 201)
        assert (await alice.delete(f"/v1/memories/{own}")).status_code == 200
        purged = await alice.delete("/v1/memories?purge=true")
        assert purged.status_code == 200, purged.text
    assert (await client.get("/v1/memories?user_id=alice")).json()["results"] == []


@pytest.mark.parametrize(
    ("wall", "inside", "outside"),
    [
        ({"user_id": "alice"}, {"user_id": "alice", "agent_id": "x"}, {"agent_id": "x"}),
        ({"agent_id": "guide"}, {"user_id": "bob", "agent_id": "guide"}, {"user_id": "bob"}),
        ({"run_id": "r1"}, {"user_id": "bob", "run_id": "r1"}, {"user_id": "bob", "run_id": "r2"}),
        (
            {"channels": ["support", 'a "quoted" \\ one']},
            {"user_id": "bob", "channel": 'a "quoted" \\ one'},
            {"user_id": "bob", "channel": "_global"},
        ),
        (
            {"user_id": "alice", "channels": ["support"]},
            {"user_id": "alice", "channel": "support"},
            {"user_id": "alice", "channel": "other"},
        ),
    ],
)
async def test_each_wall(client: AsyncClient, app: FastAPI, wall: Any, inside: Any, outside: Any) -> None:
    here = await stored(client, "The heron is fed at noon", **inside)
    there = await stored(client, "The heron is fed at night", **outside)
    async with client_of(app, await walled(client, **wall)) as key:
        assert (await key.get(f"/v1/memories/{here}")).status_code == 200
        assert (await key.get(f"/v1/memories/{there}")).status_code == 404
        assert (await key.delete(f"/v1/memories/{there}")).status_code == 404
        assert (await key.patch(f"/v1/memories/{there}", json={"content": "x y"})).status_code == 404
        scope = {"user_id": "bob"} if not set(wall) - {"channels"} else {}
        found = await key.post(
            "/v1/memories/search", json={"query": "heron", **scope, "channel": inside.get("channel")}
        )
        assert [each["id"] for each in found.json()["results"]] == [here], found.text
        own = await stored(key, "The otter swims in the morning", **scope)
        assert (await key.get(f"/v1/memories/{own}")).status_code == 200
        assert (await key.delete(f"/v1/memories/{here}")).status_code == 200


async def test_a_walled_key_holds_no_right_over_the_workspace(client: AsyncClient, app: FastAPI) -> None:
    for right in ("admin", "operator", "audit:read", "metrics"):
        body = {"name": "x", "rights": ["memory:read", right], "user_id": "alice"}
        refused = await client.post("/v1/api-keys", json=body)
        assert (refused.status_code, refused.json()["field"]) == (400, "rights"), refused.text
    async with client_of(app, await walled(client, user_id="alice")) as alice:
        assert (await alice.get("/v1/workspaces/current")).status_code == 403
        assert (await alice.get("/v1/audit")).status_code == 403
        assert (await alice.get("/v1/api-keys")).status_code == 403
        assert (await alice.post("/v1/reset")).status_code == 403


async def test_what_is_remembered_of_a_scope_stays_behind_its_wall(client: AsyncClient, app: FastAPI) -> None:
    await stored(client, "The heron is fed at noon", user_id="bob", channel="_global")
    await stored(client, "The otter is fed at night", user_id="bob", channel="support")
    asked = {"query": "fed", "user_id": "bob", "channel": "support"}
    assert len((await client.post("/v1/memories/search", json=asked)).json()["results"]) == 2
    async with client_of(app, await walled(client, channels=["support"])) as key:
        found = (await key.post("/v1/memories/search", json=asked)).json()["results"]
        assert [each["memory"] for each in found] == ["The otter is fed at night"]
    behind = {name[3] for name in app.state.resources.scope_summaries}
    assert len(behind) == 2


async def test_several_channels_are_refused_if_one_is_outside(client: AsyncClient, app: FastAPI) -> None:
    outside = {"user_id": "bob", "channels": ["support", "sales"]}
    asked = {"query": "fed", **outside}
    async with client_of(app, await walled(client, channels=["support"])) as key:
        for refused in (
            await key.post("/v1/memories/search", json=asked),
            await key.post("/v1/recall", json=asked),
            await key.get("/v1/memories", params=outside),
            await key.get("/v1/memories/search", params=asked),
            await key.get("/v1/turns/recent", params=outside),
            await key.get("/v1/turns/search", params=asked),
            await key.get("/v1/entities/search", params=asked),
        ):
            assert (refused.status_code, refused.json()["field"]) == (403, "channels"), refused.text
        inside = await key.post("/v1/recall", json={**asked, "channels": ["support"]})
        assert inside.status_code == 200, inside.text


async def test_work_done_later_stays_inside(client: AsyncClient, app: FastAPI, tables: Tables, tenant: Tenant) -> None:
    async with client_of(app, await walled(client, user_id="alice", channels=["support"])) as alice:
        talk = {"messages": [{"role": "user", "content": "I keep bees."}], "infer": False, "run_id": "chat"}
        accepted = await alice.post("/v1/memories", json=talk, headers={"Prefer": "respond-async"})
        assert accepted.status_code == 202, accepted.text
        operation = f"/v1/operations/{accepted.json()['operation_id']}"
        assert await work(app.state.resources, tables, tenant.workspace_id, "ingest") == 1
        assert (await alice.get(operation)).json()["status"] == "done", (await alice.get(operation)).text
        [kept] = (await alice.get("/v1/memories")).json()["results"]
        assert (kept["user_id"], kept["channel"]) == ("alice", "support")
    async with client_of(app, await walled(client, user_id="bob")) as bob:
        assert (await bob.get(operation)).status_code == 404


async def test_an_idempotency_key_is_a_walls_own(client: AsyncClient, app: FastAPI) -> None:
    headers = {"Idempotency-Key": "same"}
    body = {"content": "Feeds the heron"}
    first = await client.post("/v1/memories", json={**body, "user_id": "bob"}, headers=headers)
    async with client_of(app, await walled(client, user_id="alice")) as alice:
        own = await alice.post("/v1/memories", json=body, headers=headers)
        again = await alice.post("/v1/memories", json=body, headers=headers)
    assert (first.status_code, own.status_code, "Idempotency-Replayed" in own.headers) == (201, 201, False)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == own.json()


ATLAS = {"user_id": "alice", "channel": "atlas"}


@pytest.mark.parametrize("purge", [False, True], ids=["deleted", "erased"])
@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "its channel"])
async def test_what_a_key_deletes_is_gone_from_what_was_promoted_beyond_its_wall(
    client: AsyncClient,
    app: FastAPI,
    resources: Resources,
    worker_database: Database,
    tables: Tables,
    *,
    purge: bool,
    by_id: bool,
) -> None:
    heron = f"The heron is fed at {uuid4()}"
    own = await stored(client, heron, **ATLAS)
    both = await stored(client, "The crane is fed at noon", **ATLAS)
    theirs = await stored(client, "The crane is fed at noon", user_id="alice", channel="borealis")
    changed = await stored(client, "The stork is fed at night", **ATLAS)
    copies = [await promoted(client, each) for each in (own, both, theirs, changed)]
    assert copies[1] == copies[2]
    await client.patch(f"/v1/memories/{copies[3]}", json={"content": "The stork is fed at six"})
    async with client_of(app, await walled(client, channels=["atlas"])) as atlas:
        assert (await atlas.get(f"/v1/memories/{copies[0]}")).status_code == 404
        params = {"purge": str(purge).lower()}
        if by_id:
            for each in (own, both, changed):
                assert (await atlas.delete(f"/v1/memories/{each}", params=params)).status_code in (200, 204)
        else:
            answer = await atlas.delete("/v1/memories", params={**params, **ATLAS})
            assert answer.status_code == 200, answer.text
    found = await client.post("/v1/memories/search", json={"query": "fed at", "user_id": "alice"})
    left = {"The crane is fed at noon", "The stork is fed at six"}
    assert {each["memory"] for each in found.json()["results"]} == left
    assert (await client.get(f"/v1/memories/{copies[0]}")).status_code == 404
    await lifecycle.remove_outlived(replace(resources, db=worker_database))
    there = await tables.fetch("SELECT id::text FROM memory WHERE id = ANY ($1::uuid[])", copies)
    assert {row["id"] for row in there} == {copies[1], copies[3]}
    if purge:
        assert await tables.holding(heron) == []


async def promoted(client: AsyncClient, memory_id: str) -> str:
    answer = await client.post(f"/v1/memories/{memory_id}/promote")
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


async def test_what_others_have_stored_is_not_told_by_a_cache(client: AsyncClient, app: FastAPI) -> None:
    text = f"Takes pills against gout {uuid4()}"
    asked = {"content": text, "dry_run": True}

    async def usage(key: str) -> tuple[int, int]:
        async with client_of(app, key) as found:
            used = (await found.post("/v1/memories", json=asked)).json()["usage"]
            return used["embedded_texts"], used["cached"]

    a, b = await walled(client, user_id="a"), await walled(client, user_id="b")
    await stored(client, text, user_id="c")
    assert [await usage(key) for key in (a, b, a, b)] == [(1, 0), (1, 0), (0, 1), (0, 1)]
    same = await walled(client, user_id="a", rights=["memory:write"])
    assert await usage(same) == (0, 1), "a wall is one, whichever key stands behind it"


async def test_what_outlives_a_request_opens_no_transaction(app: FastAPI, tenant: Tenant) -> None:
    """A route that uses it instead of the resources of its request fails, and reaches nothing."""
    database = app.state.resources.latest().db
    for opened in (database.begin, database.read, database.snapshot):
        with pytest.raises(RuntimeError, match="No wall"):
            async with opened(tenant.workspace_id):
                pass


async def test_answers_of_a_model_are_kept_for_each_wall_and_erased_for_all(
    client: AsyncClient, app: FastAPI, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    prompt = (tenant.workspace_id, "extract", "m", b"x" * 32)
    behind = [NO_WALL, Wall(user_id="a"), Wall(user_id="b"), Wall(user_id="a", channels=("support",))]
    for number, wall in enumerate(behind):
        table = AnswerTable(resources.db.within(wall), clock=resources.clock)
        assert await table.get(*prompt) is None
        await table.put(*prompt, f"answer {number}")
        assert await table.get(*prompt) == f"answer {number}"
    assert (await tables.counts(tenant.workspace_id))["llm_cache"] == len(behind)
    await stored(client, "Takes pills", user_id="a")
    async with client_of(app, await walled(client, user_id="a")) as key:
        assert (await key.delete("/v1/memories?purge=true")).status_code == 200
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["llm_cache"], counts["embedding_cache"]) == (0, 0)


CHOSEN = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


@pytest.mark.parametrize(
    ("wall", "inside", "outside"),
    [
        ({"user_id": "alice"}, {"user_id": "alice"}, {"user_id": "bob"}),
        ({"agent_id": "a"}, {"user_id": "bob", "agent_id": "a"}, {"user_id": "bob", "agent_id": "b"}),
        ({"run_id": "a"}, {"user_id": "bob", "run_id": "a"}, {"user_id": "bob", "run_id": "b"}),
        ({"channels": ["a"]}, {"user_id": "bob", "channel": "a"}, {"user_id": "bob", "channel": "b"}),
        ({"user_id": "alice"}, {"user_id": "alice"}, {"shared": True}),
    ],
)
async def test_an_id_stays_with_the_scope_that_had_it(
    client: AsyncClient, app: FastAPI, wall: Any, inside: Any, outside: Any
) -> None:
    """A purge of the one scope would reach the memory of the other; and nobody learns whether it was deleted."""
    await stored(client, "The heron is fed at noon", id=CHOSEN, **inside)
    await client.delete(f"/v1/memories/{CHOSEN}")
    taken = {"content": "The otter swims", "id": CHOSEN}
    refused = await client.post("/v1/memories", json={**taken, **outside})
    assert (refused.status_code, refused.json()["field"]) == (409, "id"), refused.text
    async with client_of(app, await walled(client, **wall)) as key:
        purged = await body_of(key.delete(f"/v1/memories/{CHOSEN}?purge=true"))
        assert purged["counts"]["memory_history"] == 2
        await stored(client, "The otter swims", id=CHOSEN, **outside)
        answers = [await key.post("/v1/memories", json={**taken, **inside})]
        assert (await client.delete(f"/v1/memories/{CHOSEN}")).status_code == 200
        for more in ({}, {"dry_run": True}):
            answers.append(await key.post("/v1/memories", json={**taken, **inside, **more}))
        [item] = await results_of(key.post("/v1/memories/batch", json={"items": [{**taken, **inside}]}))
        assert item["error"]["field"] == "id", item
    assert {(each.status_code, each.json()["field"], each.json()["detail"]) for each in answers} == {
        (409, "id", answers[0].json()["detail"])
    }


async def test_a_purge_leaves_a_memory_whose_id_its_subject_had_before(client: AsyncClient, tables: Tables) -> None:
    await stored(client, "Alice keeps a zebra", id=CHOSEN, user_id="alice")
    await client.patch(f"/v1/memories/{CHOSEN}", json={"content": "Alice keeps two zebras"})
    for table in ("memory", "memory_vector"):
        name = "id" if table == "memory" else "memory_id"
        await tables.fetch(f"UPDATE {table} SET user_id = 'bob' WHERE {name} = $1", CHOSEN)
    await client.patch(f"/v1/memories/{CHOSEN}", json={"content": "Bob keeps a lion"})
    await body_of(client.delete("/v1/memories?user_id=alice&purge=true"))
    assert (await body_of(client.get(f"/v1/memories/{CHOSEN}")))["memory"] == "Bob keeps a lion"
    history = (await client.get(f"/v1/memories/{CHOSEN}/history")).json()["results"]
    assert [each["new_memory"] for each in history] == ["Bob keeps a lion"]


DELETIONS = (
    "/v1/conversations/{talk}",
    "/v1/conversations/{talk}?facts=true",
    "/v1/conversations/{talk}?purge=true",
    "/v1/memories?user_id=u",
    "/v1/memories?user_id=u&purge=true",
    "/v1/scopes/user/u",
    "/v1/compat/mem0/v1/memories/?user_id=u",
    "/v1/compat/mem0/v2/entities/user/u/",
)


async def talked(client: AsyncClient, channel: str, content: str) -> list[str]:
    """Says something in the user's conversation; returns the ids of the memories that keep it."""
    said = {"messages": [{"role": "user", "content": content}], "infer": False, "user_id": "u", "session_id": "talk"}
    answer = await client.post("/v1/memories", json={**said, "channel": channel})
    assert answer.is_success, answer.text
    return [each["id"] for each in answer.json()["results"]]


async def turns_of(client: AsyncClient, talk: str) -> list[str]:
    return [each["content"] for each in (await body_of(client.get(f"/v1/conversations/{talk}")))["turns"]]


@pytest.mark.parametrize("path", DELETIONS)
async def test_turns_outside_stay_with_their_conversation(client: AsyncClient, app: FastAPI, path: str) -> None:
    async with client_of(app, await walled(client, channels=["support"])) as key:
        talk = (await body_of(key.post("/v1/conversations", json={"external_id": "talk", "user_id": "u"}), 201))["id"]
        await talked(key, "support", "The lamp is broken")
        [kept] = await talked(client, "board", "The merger is off")
        assert await turns_of(client, talk) == ["The lamp is broken", "The merger is off"]
        deleted = await key.delete(path.format(talk=talk))
        assert deleted.is_success, deleted.text
        assert await turns_of(key, talk) == []
    assert await turns_of(client, talk) == ["The merger is off"]
    sources = (await body_of(client.get(f"/v1/memories/{kept}/why")))["sources"]
    assert len(sources) == 1


async def test_a_purge_of_one_channel_leaves_the_turns_of_another(client: AsyncClient) -> None:
    await talked(client, "support", "The lamp is broken")
    await talked(client, "board", "The merger is off")
    [talk] = await results_of(client.get("/v1/conversations?user_id=u"))
    await body_of(client.delete("/v1/memories?user_id=u&channel=support&purge=true"))
    assert await turns_of(client, talk["id"]) == ["The merger is off"]
    await body_of(client.delete("/v1/memories?user_id=u&channel=board&purge=true"))
    assert (await client.get(f"/v1/conversations/{talk['id']}")).status_code == 404


async def test_an_index_that_a_turn_outside_has_is_taken(client: AsyncClient, app: FastAPI) -> None:
    async with client_of(app, await walled(client, channels=["support"])) as key:
        talk = (await body_of(key.post("/v1/conversations", json={"external_id": "talk", "user_id": "u"}), 201))["id"]
        await talked(key, "support", "The lamp is broken")
        await talked(client, "board", "The merger is off")
        turns = [
            await key.post(
                f"/v1/conversations/{talk}/turns", json={"role": "user", "content": "Other", "turn_index": index}
            )
            for index in (0, 1)
        ]
    assert [turn.status_code for turn in turns] == [409, 409]
    assert turns[0].json()["detail"] == turns[1].json()["detail"]


@pytest.mark.parametrize(
    ("wall", "inside", "outside"),
    [
        ({"channels": ["support"]}, {"channel": "support"}, {"channel": "board"}),
        ({"agent_id": "a"}, {"agent_id": "a"}, {}),
        ({}, {"channel": "support"}, {"channel": "board"}),
    ],
)
async def test_a_purge_leaves_audit_and_answers_about_what_is_outside(
    client: AsyncClient, app: FastAPI, tables: Tables, tenant: Tenant, wall: Any, inside: Any, outside: Any
) -> None:
    bodies = {
        name: {"content": f"The {name} is red", "user_id": "u", "session_id": name, "dedup": False, **scope}
        for name, scope in (("lamp", inside), ("sofa", outside))
    }
    for name, body in bodies.items():
        assert (await client.post("/v1/memories", json=body, headers={"Idempotency-Key": name})).status_code == 201
    purge = f"/v1/memories?user_id=u&purge=true{'' if wall else '&channel=support'}"
    async with client_of(app, await walled(client, **wall) if wall else tenant.key) as key:
        counts = (await body_of(key.delete(purge)))["counts"]
    assert (counts["memory"], counts["idempotency"]) == (1, 1)
    entries = await tables.fetch(
        "SELECT user_id, session_id, metadata = '{}' FROM audit_log WHERE workspace_id = $1 AND operation = 'store'",
        tenant.workspace_id,
    )
    assert {tuple(entry) for entry in entries} == {(None, None, True), ("u", "sofa", False)}
    again = await client.post("/v1/memories", json=bodies["sofa"], headers={"Idempotency-Key": "sofa"})
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_a_parent_outside_is_not_replaced(client: AsyncClient, app: FastAPI) -> None:
    async def goal(channel: str) -> str:
        body = {"description": "Sell the boat", "user_id": "u", "channel": channel}
        return str((await body_of(client.post("/v1/goals", json=body), 201))["id"])

    part, parent, other = await goal("support"), await goal("board"), await goal("support")
    await body_of(client.patch(f"/v1/goals/{part}", json={"parent_id": parent}))
    async with client_of(app, await walled(client, channels=["support"])) as key:
        refused = await key.patch(f"/v1/goals/{part}", json={"parent_id": other})
        assert (refused.status_code, refused.json()["field"]) == (409, "parent_id"), refused.text
    assert (await body_of(client.get(f"/v1/goals/{part}")))["parent_id"] == parent


async def test_an_entity_with_relations_outside_is_not_merged(client: AsyncClient, app: FastAPI) -> None:
    async def entity(name: str, channel: str) -> str:
        body = {"name": name, "type": "organization", "user_id": "u", "channel": channel}
        answer = await client.put("/v1/entities", json=body)
        assert answer.is_success, answer.text
        return str(answer.json()["id"])

    one, two, three = [await entity(name, "support") for name in ("Eone", "Etwo", "Ethree")]
    hidden = await entity("Xboard", "board")
    tie = {"source_id": one, "target_id": hidden, "type": "USES"}
    await body_of(client.post("/v1/entities/relations", json=tie), 201)
    async with client_of(app, await walled(client, channels=["support"])) as key:
        refused = await key.post("/v1/entities/merge", json={"source_id": one, "target_id": two})
        assert (refused.status_code, refused.json()["field"]) == (409, "source_id"), refused.text
        await body_of(key.post("/v1/entities/merge", json={"source_id": three, "target_id": two}))
    await body_of(client.post("/v1/entities/merge", json={"source_id": one, "target_id": two}))
    moved = {"source_id": two, "target_id": hidden, "type": "USES"}
    assert (await body_of(client.delete("/v1/entities/relations", params=moved)))["deleted"] == 1
