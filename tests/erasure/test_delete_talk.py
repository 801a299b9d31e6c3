"""Conversations and turns go when they are deleted, with what the caller wants gone, and nothing else."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.conversations.test_withdrawn import ALICE, learned
from tests.support.application import Tables, client_of
from tests.support.calls import body_of, listed, opened, said
from tests.support.judging import judged, tell


async def removed(client: AsyncClient, path: str, **params: Any) -> dict[str, Any]:
    return await body_of(client.delete(f"/v1/{path}", params=params))


async def test_a_conversation_goes_and_its_facts_stay(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        fact = await learned(client, judge, "I keep bees.", "I keep bees in the garden.")
        talk = (await client.get("/v1/conversations/chat", params=ALICE)).json()["id"]
        done = await removed(client, f"conversations/{talk}")
        assert (done["deleted"], done["already_deleted"], done["turns"], done["memories"]) == (True, False, 1, 0)
        assert await listed(client, **ALICE) == {fact}
        assert (await client.get(f"/v1/conversations/{talk}")).status_code == 404
        again = await removed(client, f"conversations/{talk}")
        assert (again["already_deleted"], again["turns"]) == (True, 0)
        assert (await client.delete("/v1/conversations/never-seen", params=ALICE)).status_code == 404


async def test_a_delete_by_name_can_be_repeated(client: AsyncClient) -> None:
    for user_id in ("alice", "bob"):
        body = {"messages": [{"role": "user", "content": "I keep bees."}], "user_id": user_id, "session_id": "chat"}
        await client.post("/v1/memories", json=body)
    done = await removed(client, "conversations/chat", **ALICE)
    again = await removed(client, "conversations/chat", **ALICE)
    assert (again["id"], again["already_deleted"], again["turns"]) == (done["id"], True, 0)
    assert (await client.get("/v1/conversations/chat", params={"user_id": "bob"})).status_code == 200
    for unknown in ({"user_id": "carol"}, {**ALICE, "agent_id": "bot"}, {**ALICE, "purge": "true"}):
        assert (await client.delete("/v1/conversations/chat", params=unknown)).status_code == 404


async def test_with_facts_only_those_go_that_rest_on_it_alone(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        alone = await learned(client, judge, "I keep bees.", "I keep bees in the garden.")
        both = await learned(client, judge, "I work as a beekeeper.", "Works as a beekeeper.")
        judge.say("Works as a beekeeper.", {"event": "NONE"})
        await tell(client, "I still work as a beekeeper.", run_id="chat", **ALICE)
        talk = (await client.get("/v1/conversations/chat", params=ALICE)).json()
        turns = [turn["id"] for turn in talk["turns"]]
        done = await removed(client, f"turns/{turns[1]}", facts="true")
        assert (done["turns"], done["memories"]) == (1, 0)
        assert await listed(client, **ALICE) == {alone, both}
        done = await removed(client, f"turns/{turns[0]}", facts="true")
        assert (done["turns"], done["memories"]) == (1, 1)
        assert await listed(client, **ALICE) == {both}
        left = (await client.get("/v1/conversations/chat", params=ALICE)).json()
        assert [turn["turn_index"] for turn in left["turns"]] == [2]
        assert left["version"] > talk["version"]
        assert (await removed(client, f"turns/{turns[0]}"))["already_deleted"] is True


async def test_messages_kept_word_for_word_go_with_their_turns(client: AsyncClient) -> None:
    talk = [{"role": "user", "content": f"Message {number}"} for number in range(3)]
    body = {"messages": talk, "infer": False, "run_id": "chat", **ALICE}
    assert (await client.post("/v1/memories", json=body)).status_code == 201
    turns = (await client.get("/v1/conversations/chat", params=ALICE)).json()["turns"]
    assert (await removed(client, f"turns/{turns[0]['id']}"))["memories"] == 1
    assert len(await listed(client, **ALICE)) == 2
    assert (await removed(client, "conversations/chat", **ALICE))["memories"] == 2
    assert await listed(client, **ALICE) == set()


async def test_a_purge_takes_every_word_of_a_conversation(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant, audit_level="verbose") as (client, judge):
        key = {"Idempotency-Key": "k"}
        opening = {"external_id": "marzipanine", "title": "Marzipanine plans", **ALICE}
        talk = (await client.post("/v1/conversations", json=opening, headers=key)).json()["id"]
        await said(client, talk, "The Marzipanine sings.", name="Marzipanine")
        judge.say("Keeps a Marzipanine bird.", {"event": "ADD", "text": "Keeps a Marzipanine bird."})
        await tell(client, "I keep a Marzipanine.", run_id="marzipanine", **ALICE)
        await client.get("/v1/turns/search", params={"query": "Marzipanine", **ALICE})
        judge.say("Keeps bees.", {"event": "ADD", "text": "Keeps bees."})
        await tell(client, "I keep bees.", run_id="other", **ALICE)
        done = await removed(client, f"conversations/{talk}", purge="true")
        assert done["purged"] is True
        assert [each for each in await tables.holding("Marzipanine") if each != "idempotency"] == []
        assert await tables.holding("Marzipanine") == []
        assert len(await listed(client, **ALICE)) == 1


async def test_a_purge_reaches_what_was_deleted_before(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant) as (client, judge):
        await learned(client, judge, "I keep a Marzipanine.", "Keeps a Marzipanine bird.")
        talk = (await client.get("/v1/conversations/chat", params=ALICE)).json()["id"]
        await removed(client, f"conversations/{talk}", facts="true")
        assert await tables.holding("Marzipanine") != []
        await removed(client, f"conversations/{talk}", purge="true")
        assert await tables.holding("Marzipanine") == []


async def test_a_turn_is_purged_alone(client: AsyncClient, tables: Tables) -> None:
    talk = await opened(client, "chat")
    first = await said(client, talk, "The Marzipanine sings.")
    await said(client, talk, "It rains.")
    assert (await removed(client, f"turns/{first}", purge="true"))["purged"] is True
    assert await tables.holding("Marzipanine") == []
    assert len((await client.get(f"/v1/conversations/{talk}")).json()["turns"]) == 1
    assert (await client.delete(f"/v1/turns/{first}")).status_code == 404


async def test_rights_owners_and_versions_are_checked(
    client: AsyncClient, other_client: AsyncClient, app: FastAPI
) -> None:
    talk = await opened(client, "chat")
    turn = await said(client, talk, "It rains.")
    made = await client.post("/v1/api-keys", json={"name": "x", "rights": ["memory:read", "memory:write"]})
    async with client_of(app, made.json()["api_key"]) as writer:
        assert (await writer.delete(f"/v1/conversations/{talk}")).status_code == 403
        assert (await writer.delete(f"/v1/turns/{turn}")).status_code == 403
    made = await client.post("/v1/api-keys", json={"name": "y", "rights": ["memory:read", "memory:delete"]})
    async with client_of(app, made.json()["api_key"]) as deleter:
        assert (await deleter.delete(f"/v1/turns/{turn}", params={"purge": "true"})).status_code == 403
    for path in (f"conversations/{talk}", f"turns/{turn}"):
        assert (await other_client.delete(f"/v1/{path}")).status_code == 404
        assert (await client.delete(f"/v1/{path}", params={"user_id": "bob"})).status_code == 404
    stale = await client.delete(f"/v1/conversations/{talk}", headers={"If-Match": '"77"'})
    assert stale.status_code == 412
    there = await client.get(f"/v1/conversations/{talk}")
    gone = await client.delete(f"/v1/conversations/{talk}", headers={"If-Match": there.headers["ETag"]})
    assert gone.status_code == 200


async def test_the_purge_of_a_user_takes_the_notes_of_his_conversations(client: AsyncClient, tables: Tables) -> None:
    talk = await opened(client, "chat")
    await opened(client, "shared", user_id="alice")
    await opened(client, "shared", user_id="bob")
    for conversation in (talk, "chat", "shared"):
        note = {"value": f"note of {conversation}"}
        answer = await client.put(f"/v1/working/{conversation}/items/note", json=note, params={"agent_id": "helper"})
        assert answer.status_code in (200, 201), answer.text
    await removed(client, "memories", user_id="alice", purge="true")
    left = await tables.fetch("SELECT value::text FROM working_item WHERE value::text LIKE '%note of%'")
    assert [row["value"] for row in left] == ['"note of shared"']
