"""What a walled request leaves to be done later: refused at once or done behind the same wall."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient, Response

from service.domain.access import Wall
from service.domain.errors import Forbidden, LlmError
from service.domain.job import Job
from service.erasure import forget_scope
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.worker.loop import carry_out
from service.worker.registry import TASKS, Task
from tests.access.test_walls import walled
from tests.conftest import Tenant
from tests.support.application import Tables, client_of, with_llm
from tests.support.calls import opened, said, store
from tests.support.judging import Judge
from tests.support.tasks import work

MEM0 = "/v1/compat/mem0/v1/memories"
LATER = {"Prefer": "respond-async"}
CHAIR = [{"role": "assistant", "name": "Chair", "content": "The merger is off."}]


async def at_once(key: AsyncClient, **body: Any) -> Response:
    return await key.post("/v1/memories", json=body)


async def by_preference(key: AsyncClient, **body: Any) -> Response:
    return await key.post("/v1/memories", json=body, headers=LATER)


async def by_operation(key: AsyncClient, **body: Any) -> Response:
    return await key.post("/v1/operations", json=body)


async def by_mem0(key: AsyncClient, *, session_id: str, **body: Any) -> Response:
    return await key.post(MEM0, json={**body, "run_id": session_id})


WAYS = [at_once, by_preference, by_operation, by_mem0]


@pytest.fixture(params=[True, False], ids=["infer", "as said"])
def infer(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


@pytest.fixture
async def judge(resources: Resources, tenant: Tenant) -> AsyncIterator[AsyncClient]:
    """A client of an application with a model, with which mem0's adds are done later."""
    judge = Judge()
    judge.say("The merger is off.", {"event": "ADD", "text": "The merger is off."})
    async with with_llm(resources, tenant, judge) as client:
        yield client


async def texts(client: AsyncClient, conversation: str) -> list[str]:
    found = (await client.get(f"/v1/conversations/{conversation}")).json()
    return [each["content"] for each in found["turns"]]


@pytest.mark.parametrize("way", WAYS)
async def test_a_conversation_of_another_channel_is_not_reached(
    judge: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, way: Any, *, infer: bool
) -> None:
    app = judge._transport.app  # type: ignore[attr-defined]
    board = await opened(judge, "talkB", user_id="x", channel="board")
    await said(judge, board, "The merger stands.")
    read = (await judge.get(f"/v1/conversations/{board}")).json()
    async with client_of(app, await walled(judge, channels=["support"])) as key:
        answer = await way(key, user_id="x", session_id="talkB", messages=CHAIR, infer=infer)
        assert answer.is_success, answer.text
        await work(app.state.resources, tables, tenant.workspace_id, "ingest")
        own = (await key.get("/v1/conversations?user_id=x")).json()["results"]
        assert [(each["external_id"], each["channel"], each["turn_count"]) for each in own] == [("talkB", "support", 1)]
        results = await tables.fetch("SELECT result FROM operation WHERE workspace_id = $1", tenant.workspace_id)
        assert board not in str(results)
    assert (await judge.get(f"/v1/conversations/{board}")).json() == read
    assert await texts(judge, "talkB?user_id=x") == ["The merger stands."], "the first of this name"
    more = {"user_id": "x", "session_id": "talkB", "messages": CHAIR, "infer": False}
    await judge.post("/v1/memories", json={**more, "channel": "board"})
    assert await texts(judge, board) == ["The merger stands.", "The merger is off."]


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_refused_at_once_is_not_accepted_for_later(
    judge: AsyncClient, tables: Tables, tenant: Tenant, way: Any, *, infer: bool
) -> None:
    app = judge._transport.app  # type: ignore[attr-defined]
    await opened(judge, "talkB", user_id="x")
    before = await tables.counts(tenant.workspace_id)
    async with client_of(app, await walled(judge, run_id="r1")) as key:
        for name in ("talkB", "nowhere"):
            answer = await way(key, user_id="x", session_id=name, messages=CHAIR, infer=infer)
            assert (answer.status_code, answer.json().get("code", "forbidden")) == (403, "forbidden"), answer.text
        assert await tables.counts(tenant.workspace_id, leave_out=["api_key", "audit_log"]) == {
            name: count for name, count in before.items() if name not in ("api_key", "audit_log")
        }
        own = await key.post("/v1/memories", json={"user_id": "x", "messages": CHAIR, "infer": False}, headers=LATER)
        assert own.status_code == 202, own.text
        await work(app.state.resources, tables, tenant.workspace_id, "ingest")
        assert await texts(key, "r1") == ["The merger is off."]


async def test_an_operation_cannot_leave_its_wall_whatever_it_says(
    client: AsyncClient, app: FastAPI, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    """Should a check at the door ever be missing, the database still refuses."""
    await opened(client, "board", user_id="x", channel="board")
    async with client_of(app, await walled(client, channels=["support"])) as key:
        accepted = await key.post("/v1/operations", json={"user_id": "x", "messages": CHAIR, "infer": False})
        operation = accepted.json()["operation_id"]
        outside = """UPDATE operation SET request = jsonb_set(request, '{scope,3}', '"board"') WHERE id = $1"""
        await tables.fetch(outside, operation)
        with pytest.raises(Forbidden):
            await work(resources, tables, tenant.workspace_id, "ingest")
        found = (await key.get(f"/v1/operations/{operation}")).json()
        assert (found["status"], found["error"]["code"]) == ("failed", "forbidden")
    assert (await tables.counts(tenant.workspace_id))["turn"] == 0


async def test_facts_that_a_model_reads_later_stay_inside(resources: Resources, tables: Tables, tenant: Tenant) -> None:
    class JudgeAway(Judge):
        is_away = True

        async def complete(self, ask: Any) -> Any:
            if self.is_away:
                raise LlmError("It is away.")
            return await super().complete(ask)

    judge = JudgeAway()
    judge.say("The merger is off.", {"event": "ADD", "text": "The merger is off."})
    async with with_llm(resources, tenant, judge) as client:
        app = client._transport.app  # type: ignore[attr-defined]
        async with client_of(app, await walled(client, channels=["support"])) as key:
            body = {"user_id": "x", "session_id": "talk", "messages": CHAIR}
            assert (await key.post("/v1/memories", json=body)).is_success
        [job] = await tables.fetch(
            "SELECT wall FROM job WHERE workspace_id = $1 AND kind = 'consolidate'", tenant.workspace_id
        )
        assert json.loads(job["wall"])["channels"] == ["support"]
        judge.is_away = False
        assert await work(app.state.resources, tables, tenant.workspace_id, "consolidate") == 1
        found = (await client.get("/v1/memories?user_id=x&channel=support")).json()["results"]
        assert {each["channel"] for each in found} == {"support"}


async def test_a_large_deletion_stays_inside(
    client: AsyncClient,
    app: FastAPI,
    resources: Resources,
    tables: Tables,
    tenant: Tenant,
    worker_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forget_scope, "MAX_INLINE_ROWS", 1)
    for channel in ("support", "support", "board"):
        await store(client, f"Note {channel} {len(channel)}", channel=channel, dedup=False)
    share = ["memory:read", "memory:write", "memory:delete", "memory:share"]
    shared = await client.post("/v1/api-keys", json={"name": "x", "rights": share, "channels": ["support"]})
    for text in ("Everyone knows", "Everyone says"):
        await client.post("/v1/memories", json={"content": text, "shared": True, "channel": "support"})
    async with client_of(app, shared.json()["api_key"]) as key:
        for params, left in (({"user_id": "alice"}, 3), ({"shared": "true"}, 1)):
            begun = await key.delete("/v1/memories", params=params)
            assert begun.json()["operation_id"], begun.text
            await work(replace(resources, db=worker_database), tables, tenant.workspace_id, "forget_scope")
            found = (await key.get(f"/v1/operations/{begun.json()['operation_id']}")).json()
            assert (found["status"], found["result"]) == ("done", {"deleted": 2}), found
            assert (await tables.counts(tenant.workspace_id))["memory"] == left


async def test_every_job_of_a_walled_request_knows_the_wall(
    client: AsyncClient, app: FastAPI, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    async with client_of(app, await walled(client, user_id="alice", channels=['a "quoted" one'])) as key:
        await store(key, "Rows on the lake", user_id="alice")
        await key.post("/v1/memories", json={"messages": CHAIR, "infer": False}, headers=LATER)
        await work(resources, tables, tenant.workspace_id, "ingest")
    kept = await tables.fetch("SELECT kind, wall FROM job WHERE workspace_id = $1", tenant.workspace_id)
    assert {row["kind"] for row in kept} >= {"enrich", "ingest"}
    wall = {"user_id": "alice", "agent_id": None, "run_id": None, "channels": ['a "quoted" one']}
    assert all(json.loads(row["wall"]) == wall for row in kept), "what a job causes knows it too"
    await store(client, "Rows on the sea")
    free = "SELECT count(*) FROM job WHERE workspace_id = $1 AND wall IS NULL"
    assert await tables.value(free, tenant.workspace_id) >= 1


async def test_a_task_runs_behind_the_wall_of_its_job_unless_it_derives(resources: Resources, tenant: Tenant) -> None:
    seen: list[Wall] = []

    async def run(job: Job, res: Resources) -> None:
        seen.append(res.db.wall)

    wall = Wall(channels=("support",))
    job = Job(tenant.workspace_id, tenant.workspace_id, "x", None, {}, 1, 1, "w", wall=wall)
    await carry_out(Task(run), (job,), resources)
    await carry_out(Task(run, derives=True), (job,), resources)
    assert seen == [wall, Wall()]


def test_what_runs_together_derives() -> None:
    """The jobs of a batch may have walls of their own."""
    assert all(task.derives for task in TASKS.values() if task.together is not None)
