"""A user's session that has the name of a run is not part of that run."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.access.test_walls import walled
from tests.conftest import Tenant
from tests.support.application import Tables, client_of
from tests.support.calls import body_of, results_of

NAME = "standup"
SESSION = {"user_id": "vic", "session_id": NAME}
OWN = {"agent_id": "bot", "run_id": NAME}
SECRET, TASK = "I keep a parrot called Kiki under the lamp.", "The ticket is about a broken lamp."
WORDS = "parrot under the broken lamp"
COPIES = """
    SELECT name, array_agg(is_run) AS is_run FROM (
        SELECT 'turn' AS name, is_run FROM turn WHERE workspace_id = $1
        UNION ALL SELECT 'turn_vector', is_run FROM turn_vector WHERE workspace_id = $1) each
    GROUP BY name
"""


async def talk(client: AsyncClient, text: str, **scope: Any) -> str:
    """The id of the conversation to which this was added."""
    body = {"messages": [{"role": "user", "content": text}], **scope}
    answer = await client.post("/v1/memories", json=body)
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["results"][0]["conversation_id"])


async def use(client: AsyncClient, conversation: str, about: str = SECRET) -> None:
    body = {"tool_name": "calendar", "tool_input": {"about": about}, "success": True}
    await body_of(client.post("/v1/tool-invocations", json={"conversation_id": conversation, **body}), 201)


async def read(client: AsyncClient, **scope: Any) -> str:
    """All that the routes for whole scopes show of one."""
    answers = [
        await client.get("/v1/conversations", params=scope),
        await client.get("/v1/turns/recent", params=scope),
        await client.get("/v1/tool-invocations", params=scope),
        await client.get("/v1/timeline", params=scope),
        await client.get("/v1/turns/search", params={"query": WORDS, **scope}),
        await client.post("/v1/recall", json={"query": WORDS, **scope}),
        await client.post("/v1/memories/search", json={"query": WORDS, **scope}),
    ]
    assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
    return " ".join(answer.text for answer in answers)


@pytest.mark.parametrize("opened_as", ["session_id", "external_id"])
async def test_a_key_for_a_run_reaches_no_session_of_its_name(
    client: AsyncClient, app: FastAPI, opened_as: str
) -> None:
    if opened_as == "external_id":
        await body_of(client.post("/v1/conversations", json={"user_id": "vic", "external_id": NAME}), 201)
    vics = await talk(client, SECRET, **SESSION)
    await use(client, vics)
    turn = (await body_of(client.get(f"/v1/conversations/{vics}")))["turns"][0]["id"]
    async with client_of(app, await walled(client, run_id=NAME)) as key:
        for scope in ({}, {"user_id": "vic"}, {"run_id": NAME}):
            shown = await read(key, **scope)
            assert "Kiki" not in shown
            assert vics not in shown
            for name in (vics, NAME):
                assert (await key.get(f"/v1/conversations/{name}", params=scope)).status_code == 404
                assert (await key.delete(f"/v1/conversations/{name}", params=scope)).status_code == 404
            assert (await key.delete("/v1/memories", params=scope)).json()["deleted"] == 0
            assert (await key.delete("/v1/memories", params={"purge": True, **scope})).status_code == 200
        assert (await key.delete(f"/v1/turns/{turn}")).status_code == 404
        assert (await key.delete(f"/v1/conversations/{vics}?purge=true")).status_code == 404
        forgotten = await key.post("/v1/forget", json={"query": "parrot"})
        assert forgotten.json()["turns"] == []
    stored = await body_of(client.get(f"/v1/conversations/{NAME}?user_id=vic"))
    assert [each["content"] for each in stored["turns"]] == [SECRET]
    assert len(await results_of(client.get(f"/v1/tool-invocations?user_id=vic&run_id={NAME}"))) == 1


@pytest.mark.parametrize("user", [{}, {"user_id": "vic"}], ids=["without a user", "with one"])
async def test_a_key_for_a_run_works_with_its_own(
    client: AsyncClient, app: FastAPI, tables: Tables, tenant: Tenant, user: dict[str, str]
) -> None:
    vics = await talk(client, SECRET, **SESSION)
    async with client_of(app, await walled(client, run_id=NAME)) as key:
        own = await talk(key, TASK, agent_id="bot", **user)
        assert own != vics
        assert await talk(key, "The lamp is green.", agent_id="bot", **user, session_id=NAME) == own
        bare = await talk(key, "The lamp was sold.", **(user or {"agent_id": "other"}))
        assert bare not in (own, vics)
        opened = await key.post("/v1/conversations", json={"agent_id": "bot", **user, "external_id": NAME})
        assert (opened.status_code, opened.json()["id"]) == (200, own)
        more = {"role": "assistant", "content": "Noted."}
        await body_of(key.post(f"/v1/conversations/{own}/turns", json=more), 201)
        asked = {"agent_id": "bot", **user}
        assert len(await results_of(key.get(f"/v1/working/{own}/turns", params=asked))) == 1
        await use(key, own, TASK)
        shown = await read(key, **user)
        assert "broken lamp" in shown
        assert "calendar" in shown
        assert "Kiki" not in shown
        turns = (await body_of(key.get(f"/v1/conversations/{own}")))["turns"]
        assert [each["content"] for each in turns] == [TASK, "The lamp is green.", "Noted."]
        assert (await key.delete(f"/v1/conversations/{bare}")).status_code == 200
        assert (await key.delete("/v1/memories", params=user)).json()["deleted"] >= 1
        assert await results_of(key.get("/v1/conversations")) == []
    assert "Kiki" in await read(client, user_id="vic")
    kinds = await tables.fetch(COPIES, tenant.workspace_id)
    assert {row["name"]: row["is_run"] for row in kinds} == {"turn": [False], "turn_vector": [False]}


WAYS = {
    "delete": ("DELETE", f"/v1/memories?run_id={NAME}", None),
    "purge": ("DELETE", f"/v1/memories?run_id={NAME}&purge=true", None),
    "scope": ("DELETE", f"/v1/scopes/run/{NAME}", None),
    "forget": ("POST", "/v1/forget", {"run_id": NAME, "query": "lamp"}),
}


@pytest.mark.parametrize("way", WAYS)
async def test_removing_a_run_leaves_the_sessions_of_its_name(client: AsyncClient, way: str) -> None:
    for user in ("sx", "sy"):
        await use(client, await talk(client, SECRET, user_id=user, session_id=NAME))
        await body_of(client.put(f"/v1/working/{NAME}/items/note?user_id={user}", json={"value": SECRET}), 201)
    await talk(client, TASK, **OWN)
    method, path, body = WAYS[way]
    removed = await client.request(method, path, json=body)
    assert removed.status_code == 200, removed.text
    if way in ("delete", "scope"):
        assert removed.json()["deleted"] == 1
    for user in ("sx", "sy"):
        shown = await read(client, user_id=user)
        assert "calendar" in shown
        [stored] = await results_of(client.get(f"/v1/conversations?user_id={user}&run_id={NAME}"))
        assert stored["turn_count"] == 1
        assert len(await results_of(client.get(f"/v1/turns/recent?user_id={user}&run_id={NAME}"))) == 1
        assert (await client.get(f"/v1/working/{NAME}/items/note?user_id={user}")).status_code == 200
    assert "broken" not in await read(client, run_id=NAME)
    left = await results_of(client.get(f"/v1/conversations?run_id={NAME}&include_archived=true"))
    assert len(left) == (way == "forget")


async def test_a_run_without_a_user_is_read_alone(client: AsyncClient) -> None:
    vics = await talk(client, SECRET, **SESSION)
    await use(client, vics)
    own = await talk(client, TASK, **OWN)
    for scope in ({"run_id": NAME}, OWN):
        shown = await read(client, **scope)
        assert "broken lamp" in shown
        assert "Kiki" not in shown
    asked = {"query": WORDS, "scope_match": "any", "user_id": "nobody", "run_id": NAME}
    either = await body_of(client.post("/v1/recall", json=asked))
    assert "Kiki" not in str(either)
    assert (await body_of(client.get(f"/v1/conversations/{NAME}?run_id={NAME}")))["id"] == own
    assert (await client.get(f"/v1/conversations/{vics}?run_id={NAME}")).status_code == 404
    both = await read(client, user_id="vic", run_id=NAME)
    assert "Kiki" in both
    channels = await body_of(client.get(f"/v1/channels?run_id={NAME}"))
    assert channels["results"][0]["turns"] == 1


async def test_removing_a_users_session_by_its_name(client: AsyncClient) -> None:
    await talk(client, SECRET, **SESSION)
    await talk(client, TASK, **OWN)
    for more in ({}, {"purge": True}):
        removed = await client.delete("/v1/memories", params={"user_id": "vic", "run_id": NAME, **more})
        assert removed.status_code == 200, removed.text
    assert await results_of(client.get("/v1/conversations?user_id=vic")) == []
    assert len(await results_of(client.get(f"/v1/conversations?run_id={NAME}"))) == 1


async def test_a_session_that_is_also_used_as_a_run_stays_a_session(client: AsyncClient) -> None:
    session = await talk(client, SECRET, **SESSION)
    assert await talk(client, "I keep two canaries.", user_id="vic", run_id=NAME) == session
    assert await results_of(client.get(f"/v1/turns/recent?run_id={NAME}")) == []
    assert len(await results_of(client.get(f"/v1/turns/recent?run_id={NAME}&user_id=vic"))) == 2


async def test_a_run_does_not_delete_a_session_by_name_or_id(client: AsyncClient) -> None:
    session = await talk(client, SECRET, **SESSION)
    for name in (NAME, session):
        removed = await client.delete(f"/v1/conversations/{name}?run_id={NAME}")
        assert removed.status_code == 404, removed.text
    assert (await client.get(f"/v1/conversations/{session}")).status_code == 200
