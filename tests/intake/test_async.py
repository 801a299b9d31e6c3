"""What `Prefer: respond-async` promises, and that it is kept."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from httpx2 import AsyncClient

from service.domain.errors import ServiceError
from service.domain.job import Job
from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.worker.recorder import ending_of_failure
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.tasks import work

ASYNC = {"Prefer": "respond-async"}
USER = {"user_id": "iris"}


async def test_a_text_is_there_at_once_and_its_vector_follows(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables, embedder: AngleEmbedder
) -> None:
    answer = await client.post("/v1/memories", json={"content": "Polishes the sextant", **USER}, headers=ASYNC)
    assert (answer.status_code, answer.headers["Preference-Applied"]) == (201, "respond-async")
    result = answer.json()["results"][0]
    assert (result["embedding"], result["enrichment"]) == ("queued", "queued")
    assert embedder.seen == []
    read = (await client.get(f"/v1/memories/{result['id']}")).json()
    assert (read["memory"], read["embedding"]) == ("Polishes the sextant", "queued")
    found = (await client.get("/v1/memories/search", params={"query": "polished sextant", **USER})).json()["results"]
    assert [hit["id"] for hit in found] == [result["id"]]
    assert found[0]["similarity"] is None
    kinds = await tables.fetch("SELECT kind FROM job WHERE workspace_id = $1 ORDER BY kind", tenant.workspace_id)
    assert [row["kind"] for row in kinds] == ["embed", "enrich"]
    assert await work(resources, tables, tenant.workspace_id, "embed") == 1
    assert (await client.get(f"/v1/memories/{result['id']}")).json()["embedding"] == "stored"
    found = (await client.get("/v1/memories/search", params={"query": "Polishes the sextant", **USER})).json()[
        "results"
    ]
    assert found[0]["similarity"] == pytest.approx(1.0, abs=1e-3)


async def test_the_same_text_twice_is_one(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    for status in (201, 200, 200):
        answer = await client.post("/v1/memories", json={"content": "Polishes the sextant", **USER}, headers=ASYNC)
        assert answer.status_code == status
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1


SAID: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "The kettle is broken", "name": "Iris", "timestamp": "2024-01-05T10:00:00Z"},
        {"role": "assistant", "content": "I will order one"},
        {"role": "user", "content": None},
    ],
    "infer": False,
    "run_id": "S1",
    "tags": ["kitchen"],
    "metadata": {"k": 1},
    **USER,
}


async def promised(client: AsyncClient, body: dict[str, Any]) -> str:
    answer = await client.post("/v1/memories", json=body, headers=ASYNC)
    assert answer.status_code == 202, answer.text
    found = answer.json()
    assert found["status"] == "queued"
    assert answer.headers["Location"] == found["url"] == f"/v1/operations/{found['operation_id']}"
    assert answer.headers["Preference-Applied"] == "respond-async"
    return str(found["url"])


async def test_a_conversation_is_accepted_and_stored_by_the_worker(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables, embedder: AngleEmbedder
) -> None:
    url = await promised(client, SAID)
    waiting = (await client.get(url)).json()
    assert (waiting["status"], waiting["result"], waiting["finished_at"]) == ("queued", None, None)
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["memory"], counts["operation"], counts["job"]) == (0, 1, 1)
    assert embedder.seen == []
    assert await work(resources, tables, tenant.workspace_id, "ingest") == 1
    done = (await client.get(url)).json()
    assert done["status"] == "done", done
    results = done["result"]["results"]
    assert [each["turn_index"] for each in results] == [0, 1]
    first = (await client.get(f"/v1/memories/{results[0]['id']}")).json()
    assert (first["memory"], first["speaker"], first["role"]) == ("The kettle is broken", "Iris", "user")
    assert first["timestamp"] == "2024-01-05T10:00:00+00:00"
    assert (first["tags"], first["metadata"], first["run_id"]) == (["kitchen"], {"k": 1}, "S1")
    assert await tables.value("SELECT request FROM operation WHERE workspace_id = $1", tenant.workspace_id) == "{}"


async def test_a_job_that_runs_twice_stores_once(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a worker dies between the commit of the memories and the end of the operation."""
    url = await promised(client, SAID)

    async def dies(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("service.queue.statements.operations.finish", dies)
        with pytest.raises(RuntimeError):
            await work(resources, tables, tenant.workspace_id, "ingest")
    assert (await client.get(url)).json()["status"] == "running"
    assert (await tables.counts(tenant.workspace_id))["memory"] == 2
    await work(resources, tables, tenant.workspace_id, "ingest")
    done = (await client.get(url)).json()
    assert done["status"] == "done"
    assert len(done["result"]["results"]) == 2
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["memory"], counts["turn"]) == (2, 2)


async def test_the_last_failure_fails_the_operation(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await promised(client, SAID)

    async def refuses(*_: Any, **__: Any) -> None:
        raise ServiceError("It cannot be done.")

    monkeypatch.setattr("service.conversations.statements.conversations.append_turns", refuses)
    with pytest.raises(ServiceError):
        await work(resources, tables, tenant.workspace_id, "ingest")
    failed = (await client.get(url)).json()
    assert (failed["status"], failed["error"]["code"]) == ("failed", "service_error")
    assert (await tables.counts(tenant.workspace_id))["memory"] == 0


@pytest.mark.parametrize("kind", ["ingest", "forget_scope"])
async def test_a_worker_that_dies_in_the_last_attempt_fails_the_operation(
    client: AsyncClient, worker_database: Database, tenant: Tenant, tables: Tables, kind: str
) -> None:
    url = await promised(client, SAID)
    await tables.fetch(
        "UPDATE job SET state = 'running', worker = 'gone', attempts = max_attempts, started_at = now(), kind = $2, "
        "lease_until = now() - interval '1 second' WHERE workspace_id = $1",
        tenant.workspace_id,
        kind,
    )
    await tables.fetch("UPDATE operation SET state = 'running' WHERE workspace_id = $1", tenant.workspace_id)
    async with worker_database.begin(NIL_WORKSPACE) as session:
        await queue.claim(session, "another", ["none"], 1, 60)
    failed = (await client.get(url)).json()
    assert (failed["status"], failed["error"]["code"]) == ("failed", "internal_error")
    assert "the lease of attempt 3 ran out" in failed["error"]["detail"]
    assert failed["finished_at"] is not None
    assert await tables.value("SELECT request FROM operation WHERE workspace_id = $1", tenant.workspace_id) == "{}"


async def test_a_fault_in_the_last_attempt_fails_the_operation(
    client: AsyncClient, worker_database: Database, tenant: Tenant, tables: Tables
) -> None:
    """One that the task does not know, such as a time-out of the whole run."""
    url = await promised(client, SAID)
    [row] = await tables.fetch(
        "UPDATE job SET state = 'running', worker = 'w', attempts = max_attempts, started_at = now(), "
        "lease_until = now() + interval '1 minute' WHERE workspace_id = $1 RETURNING id, attempts",
        tenant.workspace_id,
    )
    job = Job(tenant.workspace_id, row["id"], "ingest", None, {}, row["attempts"], row["attempts"], "w")
    ending = ending_of_failure(job, TimeoutError(), alone=True, backoff_s=1)
    async with worker_database.begin(NIL_WORKSPACE) as session:
        assert await queue.finish(session, [ending]) == {job.id}
    failed = (await client.get(url)).json()
    assert (failed["status"], failed["error"]["code"]) == ("failed", "internal_error")
    assert "TimeoutError" in failed["error"]["detail"]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"messages": "The password is"}, 422),
        ({"messages": []}, 400),
        ({"user_id": None, "run_id": None}, 400),
        ({"type": "Opinion"}, 400),
    ],
)
async def test_what_cannot_be_taken_is_refused_at_once(
    client: AsyncClient, tenant: Tenant, tables: Tables, changes: dict[str, Any], status: int
) -> None:
    answer = await client.post("/v1/memories", json={**SAID, **changes}, headers=ASYNC)
    assert answer.status_code == status, answer.text
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["operation"], counts["job"]) == (0, 0)


async def test_an_operation_is_its_workspaces_own(client: AsyncClient, other_client: AsyncClient) -> None:
    url = await promised(client, SAID)
    assert (await other_client.get(url)).status_code == 404
    assert (await client.get(f"/v1/operations/{uuid4()}")).status_code == 404


@pytest.mark.parametrize("value", ["return=minimal", "", "respond-later"])
async def test_other_preferences_change_nothing(client: AsyncClient, value: str) -> None:
    body = {"content": "Polishes the sextant", **USER}
    answer = await client.post("/v1/memories", json=body, headers={"Prefer": value})
    assert answer.status_code == 201
    assert "Preference-Applied" not in answer.headers
    assert answer.json()["results"][0]["embedding"] == "stored"
