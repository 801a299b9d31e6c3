"""Jobs as a client sees and steers them."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.job import NewJob
from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.access.test_auth import made
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables, client_of
from tests.support.calls import results_of, store
from tests.support.tasks import work
from tests.support.workers import add

DIE = (
    "UPDATE job SET state = 'dead', attempts = 3, finished_at = now(), last_error = 'embedding_error: no answer' "
    "WHERE workspace_id = $1 AND kind = 'embed'"
)


async def listed(client: AsyncClient, **params: Any) -> list[dict[str, Any]]:
    return await results_of(client.get("/v1/jobs", params=params))


async def test_a_list_has_the_own_jobs_by_state_and_name(
    client: AsyncClient, other_client: AsyncClient, app: FastAPI, tenant: Tenant, database: Database
) -> None:
    memory_id = await store(client, "Rows a red boat")
    await add(database, tenant.workspace_id, NewJob("consolidate"), NewJob("embed"))
    [job] = await listed(client, name="enrich")
    assert (job["state"], job["memory_id"], job["attempts"], job["max_attempts"]) == ("queued", memory_id, 0, 3)
    assert (job["reason"], job["progress"], job["started_at"], job["finished_at"]) == (None, None, None, None)
    assert job["age_s"] >= 0
    assert {each["name"] for each in await listed(client)} == {"enrich", "consolidate", "embed"}
    assert await listed(client, state=["dead", "running", "done"]) == []
    assert await listed(other_client) == []
    first = (await client.get("/v1/jobs", params={"limit": 2})).json()
    rest = await listed(client, limit=2, cursor=first["next_cursor"])
    assert len({each["id"] for each in (*first["results"], *rest)}) == 3
    for params, field in (({"state": "stuck"}, "state[0]"), ({"name": "dance"}, "name"), ({"cursor": "x"}, "cursor")):
        refused = await client.get("/v1/jobs", params=params)
        assert (refused.status_code, refused.json()["field"]) == (400, field), refused.text
    unknown = await client.get("/v1/jobs/dance")
    assert (unknown.status_code, unknown.json()["field"]) == (400, "name")
    assert "'consolidate'" in unknown.json()["detail"], "it names what there is"
    async with client_of(app, await made(client, "memory:read", "memory:write", "metrics")) as reader:
        for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/jobs/enrich"), ("POST", f"/v1/jobs/{job['id']}/cancel")):
            refused = await reader.request(method, path)
            assert (refused.status_code, refused.json()["detail"]) == (403, "This key lacks the right admin.")


async def test_a_dead_job_is_seen_and_tried_again(
    client: AsyncClient, other_client: AsyncClient, tenant: Tenant, database: Database, tables: Tables
) -> None:
    await add(database, tenant.workspace_id, NewJob("embed", payload={"words_of": "goal"}))
    await tables.fetch(DIE, tenant.workspace_id)
    [job] = await listed(client, state="dead")
    assert (job["name"], job["reason"]) == ("embed", "embedding_error: no answer")
    assert (await client.get("/v1/stats")).json()["dead_jobs"] == 1
    assert (await other_client.get("/v1/stats")).json()["dead_jobs"] == 0
    assert 'loxodon_queue_jobs{kind="embed",state="dead"}' in (await client.get("/metrics")).text
    details = (await client.get("/v1/jobs/embed")).json()
    assert [(each["state"], each["jobs"]) for each in details["states"]] == [("dead", 1)]
    retry = f"/v1/jobs/{job['id']}/retry"
    assert (await other_client.post(retry)).status_code == 404
    for _ in range(2):  # one that waits is due now
        again = (await client.post(retry)).json()
        assert (again["state"], again["attempts"], again["max_attempts"]) == ("queued", 3, 6)
        assert (again["reason"], again["finished_at"]) == (None, None)
    await tables.fetch("UPDATE job SET state = 'done' WHERE id = $1", UUID(job["id"]))
    for what in ("retry", "cancel"):
        refused = await client.post(f"/v1/jobs/{job['id']}/{what}")
        assert (refused.status_code, refused.json()["field"]) == (409, "id")
        for unknown in (uuid4(), "none"):
            assert (await client.post(f"/v1/jobs/{unknown}/{what}")).status_code == 404
    audited = (await client.get("/v1/audit", params={"operation": "retry_job"})).json()["results"]
    assert [each["affected_ids"] for each in audited] == [[job["id"]]] * 2


async def test_a_done_job_is_listed_only_on_request(
    client: AsyncClient, tenant: Tenant, database: Database, tables: Tables
) -> None:
    await add(database, tenant.workspace_id, NewJob("embed"))
    [job] = await listed(client)
    await tables.fetch("UPDATE job SET state = 'done', finished_at = now() WHERE id = $1", UUID(job["id"]))
    assert await listed(client) == []
    assert [each["id"] for each in await listed(client, state="done")] == [job["id"]]
    assert (await client.get("/v1/jobs/embed")).json()["states"] == []


async def test_a_cancelled_job_ends_its_operation(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "infer": False, "user_id": "iris"}
    accepted = await client.post("/v1/memories", json=body, headers={"Prefer": "respond-async"})
    [job] = await listed(client, name="ingest")
    assert job["operation_id"] == accepted.json()["operation_id"]
    for _ in range(2):
        cancelled = (await client.post(f"/v1/jobs/{job['id']}/cancel")).json()
        assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "cancelled by a request")
    operation = (await client.get(accepted.json()["url"])).json()
    assert (operation["status"], operation["error"]["code"]) == ("failed", "cancelled")
    assert await listed(client) == []
    assert [each["id"] for each in await listed(client, state="cancelled")] == [job["id"]]
    refused = await client.post(f"/v1/jobs/{job['id']}/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict"), "its request is gone"


async def test_progress_has_a_rate_and_the_time_that_is_left(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    operation = uuid4()
    await tables.fetch(
        "INSERT INTO operation (workspace_id, id, kind, state, progress) "
        """VALUES ($1, $2, 'forget_scope', 'running', '{"done": 100, "total": 400}')""",
        tenant.workspace_id,
        operation,
    )
    await tables.fetch(
        "INSERT INTO job (workspace_id, id, kind, state, max_attempts, payload, started_at, lease_until) VALUES "
        "($1, gen_random_uuid(), 'forget_scope', 'running', 3, jsonb_build_object('operation_id', $2::uuid), "
        "now() - interval '50 seconds', now() + interval '1 hour')",
        tenant.workspace_id,
        operation,
    )
    [job] = await listed(client, state="running")
    progress = job["progress"]
    assert (progress["done"], progress["total"]) == (100, 400)
    assert 1 < progress["per_s"] <= 2
    assert 150 <= progress["eta_s"] < 300


async def test_jobs_of_the_service_need_rights_over_it(
    client: AsyncClient, app: FastAPI, database: Database, tables: Tables
) -> None:
    await tables.fetch("DELETE FROM job WHERE workspace_id = $1 AND kind = 'sweep_working'", NIL_WORKSPACE)
    of_service = {"system": "true"}
    async with client_of(app, await made(client, "admin", "metrics")) as admin:
        refused = await admin.post("/v1/jobs/sweep_working/run", params=of_service)
        assert (refused.status_code, refused.json()["detail"]) == (403, "This key lacks the right operator.")
        assert (await admin.get("/v1/jobs", params=of_service)).status_code == 200
    async with client_of(app, await made(client, "admin")) as admin:
        refused = await admin.get("/v1/jobs/sweep_working", params=of_service)
        assert (refused.status_code, refused.json()["detail"]) == (403, "This key lacks the right metrics.")
    runs = [await client.post("/v1/jobs/sweep_working/run", params=of_service) for _ in range(2)]
    assert [each.status_code for each in runs] == [202, 202]
    assert runs[0].json()["id"] == runs[1].json()["id"], "one that waits already is not doubled"
    details = (await client.get("/v1/jobs/sweep_working", params=of_service)).json()
    assert [(each["state"], each["reason"]) for each in details["runs"]] == [("queued", "request")]
    assert (await client.get("/v1/jobs/sweep_working")).json()["runs"] == [], "it is in no workspace"
    ended = await client.post(f"/v1/jobs/{runs[0].json()['id']}/cancel", params=of_service)
    assert ended.json()["state"] == "cancelled"
    details = (await client.get("/v1/jobs/sweep_working", params=of_service)).json()
    assert [each["state"] for each in details["runs"]] == ["cancelled"]
    for params, named in (({}, "flag_stale"), (of_service, "sweep_working")):
        refused = await client.post("/v1/jobs/enrich/run", params=params)
        assert (refused.status_code, refused.json()["field"]) == (400, "name")
        assert named in refused.json()["detail"]


async def test_ageing_runs_by_request(
    client: AsyncClient,
    other_client: AsyncClient,
    resources: Resources,
    tables: Tables,
    tenant: Tenant,
    clock: SetClock,
) -> None:
    mine = await store(client, "Rows a red boat", user_id="alice")
    clock.forward(days=14)
    asked = await client.post("/v1/jobs/relevance/run")
    assert (asked.status_code, asked.json()["state"]) == (202, "queued")
    assert await work(resources, tables, tenant.workspace_id, "relevance") == 1
    assert (await client.get(f"/v1/memories/{mine}")).json()["relevance"] == pytest.approx(0.95**14)
    whole = [(await client.post("/v1/jobs/relevance/run")).json()["id"] for _ in range(2)]
    assert whole[0] == whole[1] != asked.json()["id"]
    details = (await client.get("/v1/jobs/relevance")).json()
    assert (details["interval_s"], [each["id"] for each in details["runs"]]) == (3600, [whole[0], asked.json()["id"]])
    assert details["next_run"] is not None
    assert (await other_client.get("/v1/jobs/relevance")).json()["runs"] == []
    refused = await client.post("/v1/jobs/relevance/run", params={"system": "true"})
    assert (refused.status_code, refused.json()["field"]) == (400, "name")
    refused = await client.post("/v1/jobs/relevance/run", params={"user_id": "alice"})
    assert (refused.status_code, refused.json()["field"]) == (400, "user_id")


async def test_how_a_workspace_ages_is_its_setting(client: AsyncClient) -> None:
    for ageing, field in (
        ({"stale_after_days": 0}, "settings.ageing.stale_after_days"),
        ({"speed": 1}, "settings.ageing.speed"),
    ):
        refused = await client.patch("/v1/workspaces/current", json={"settings": {"ageing": ageing}})
        assert (refused.status_code, refused.json()["field"]) == (400, field)
    assert (await client.get("/v1/jobs/forget")).json()["interval_s"] is None, "it is off"
    minutes = {"forget": 30, "decay": 0, "promote": 15, "patterns": 90}
    own = {"ageing": {"stale_after_days": 30}, "job_intervals_min": minutes}
    changed = await client.patch("/v1/workspaces/current", json={"settings": own})
    assert changed.status_code == 200, changed.text
    jobs = (await client.get("/v1/config")).json()["jobs"]
    assert (jobs["ageing"]["stale_after_days"], jobs["job_intervals_min"]["relevance"]) == (30, 60)
    intervals = [(await client.get(f"/v1/jobs/{name}")).json()["interval_s"] for name in minutes]
    assert intervals == [1_800, None, 900, 5_400]


async def test_many_jobs_are_tried_again_at_once(
    client: AsyncClient, other_client: AsyncClient, app: FastAPI, tenant: Tenant, database: Database, tables: Tables
) -> None:
    await add(database, tenant.workspace_id, *[NewJob("embed")] * 3, NewJob("consolidate"), NewJob("enrich"))
    await tables.fetch(DIE, tenant.workspace_id)
    await tables.fetch(DIE.replace("'embed'", "'consolidate'"), tenant.workspace_id)
    waiting = DIE.replace("'embed'", "'enrich'").replace("'dead'", "'ready'").replace("now(),", "NULL,")
    await tables.fetch(waiting, tenant.workspace_id)
    assert (await other_client.post("/v1/jobs/retry")).json() == {"retried": 0}
    assert (await client.post("/v1/jobs/retry", params={"name": "consolidate"})).json() == {"retried": 1}
    assert (await client.post("/v1/jobs/retry")).json() == {"retried": 3}
    assert (await client.post("/v1/jobs/retry")).json() == {"retried": 0}
    assert [each["name"] for each in await listed(client, state="failed")] == ["enrich"]
    assert (await client.post("/v1/jobs/retry", params={"state": ["failed", "dead"]})).json() == {"retried": 1}
    assert {each["state"] for each in await listed(client)} == {"queued"}
    assert all(each["attempts"] < each["max_attempts"] for each in await listed(client))
    audited = (await client.get("/v1/audit", params={"operation": "retry_job"})).json()["results"]
    assert len(audited) == 3
    for params, field in (({"state": "running"}, "state[0]"), ({"name": "dance"}, "name")):
        refused = await client.post("/v1/jobs/retry", params=params)
        assert (refused.status_code, refused.json()["field"]) == (400, field)
    async with client_of(app, await made(client, "memory:read", "memory:write", "metrics")) as reader:
        assert (await reader.post("/v1/jobs/retry")).status_code == 403


async def test_a_dead_job_whose_operation_is_over_is_not_tried_again(
    client: AsyncClient, tenant: Tenant, database: Database, tables: Tables
) -> None:
    body = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "ann"}
    accepted = await client.post("/v1/memories", json=body, headers={"Prefer": "respond-async"})
    assert accepted.status_code == 202
    await tables.fetch(DIE.replace("'embed'", "'ingest'"), tenant.workspace_id)
    await tables.fetch("UPDATE operation SET finished_at = now() WHERE workspace_id = $1", tenant.workspace_id)
    assert (await client.post("/v1/jobs/retry")).json() == {"retried": 0}
