"""What could be cleaned up is told with its reason, and done only as far as a person confirms it, and undone again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient, Response

from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.upkeep.statements import findings
from tests.access.test_auth import made
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables, client_of
from tests.support.calls import body_of, events, listed, opened, said, store
from tests.support.judging import decided, judged, tell
from tests.support.tasks import work

BOAT, BOAT_AGAIN, CANOE = "Rows a red boat on Lake Garda", "Rows the red boat on Lake Garda", "Paddles a canoe"
STALE = (
    "UPDATE memory_stat SET stale_at = (last_accessed AT TIME ZONE 'UTC' + interval '90 days') AT TIME ZONE 'UTC' "
    "WHERE memory_id = $1"
)
FADED = "UPDATE memory_stat SET relevance = 0.1 WHERE memory_id = $1"
EDGE = "INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id) VALUES ($1, $2, $3, $4)"


async def report(client: AsyncClient, section: str, **params: Any) -> dict[str, Any]:
    answer = await client.get("/v1/optimization/report", params={"section": section, **params})
    assert answer.status_code == 200, answer.text
    [found] = answer.json()["sections"]
    assert found["section"] == section
    return dict(found)


async def changes(client: AsyncClient, *sections: str) -> list[dict[str, Any]]:
    return [each["change"] for section in sections for each in (await report(client, section))["findings"]]


async def apply(
    client: AsyncClient, wanted: Sequence[Any], *, dry_run: bool = False, key: str | None = None
) -> Response:
    body = {"changes": list(wanted), "dry_run": dry_run}
    headers = {"Idempotency-Key": key} if key else {}
    return await client.post("/v1/optimization/apply", json=body, headers=headers)


async def applied(client: AsyncClient, wanted: Sequence[Any]) -> dict[str, Any]:
    answer = await apply(client, wanted)
    assert answer.status_code == 200, answer.text
    assert answer.json()["applied"] == len(wanted)
    return dict(answer.json())


async def read(client: AsyncClient, memory_id: str) -> dict[str, Any]:
    return dict(await body_of(client.get(f"/v1/memories/{memory_id}")))


async def undone(client: AsyncClient, decision_id: str) -> dict[str, Any]:
    return dict(await body_of(client.post(f"/v1/decisions/{decision_id}/undo")))


async def orphan(tables: Tables, tenant: Tenant, name: str, by: str = "rules") -> str:
    made_by = await tables.value(
        "INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by) "
        "VALUES ($1, gen_random_uuid(), 'alice', $2, lower($2), 'person', $3) RETURNING id",
        tenant.workspace_id,
        name,
        by,
    )
    return str(made_by)


@pytest.fixture
async def twins(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, embedder: AngleEmbedder, clock: SetClock
) -> tuple[str, str]:
    """Two memories that say the same, the older first, and one that says something else, as the worker left them."""
    embedder.place(BOAT, 1.0)
    embedder.place(BOAT_AGAIN, 0.99)
    embedder.place(CANOE, 0.95)
    older = await store(client, BOAT, tags=["sport"], importance=0.4, dedup=False)
    clock.forward(days=1)
    newer = await store(client, BOAT_AGAIN, tags=["lake"], importance=0.8, metadata={"from": "mail"}, dedup=False)
    await store(client, CANOE, dedup=False)
    await work(resources, tables, tenant.workspace_id, "enrich")
    return older, newer


async def test_what_says_the_same_is_joined_and_taken_apart_again(
    client: AsyncClient, tables: Tables, tenant: Tenant, twins: tuple[str, str]
) -> None:
    older, newer = twins
    found = await report(client, "duplicates")
    assert (found["total"], found["is_exact"], found["next_cursor"]) == (1, True, None), "the canoe is something else"
    [finding] = found["findings"]
    assert (finding["ids"], finding["about"], finding["kept"]) == ([newer, older], BOAT_AGAIN, BOAT)
    assert (finding["remedy"], finding["is_undoable"]) == ("join", True)
    assert (finding["gain"], finding["gain_unit"]) == (1, "memories")
    assert finding["reason"].startswith("It says the same")
    before = await tables.contents(tenant.workspace_id)
    dry = await client.post("/v1/optimization/apply", json={"changes": [finding["change"]]})
    assert (dry.status_code, dry.json()["dry_run"], dry.json()["applied"]) == (200, True, 0)
    assert await tables.contents(tenant.workspace_id) == before, "unless asked to, it writes nothing"
    was = {each: await read(client, each) for each in twins}
    done = await applied(client, [finding["change"]])
    stays, gone = await read(client, older), await read(client, newer)
    assert (gone["archived"], stays["archived"], stays["memory"]) == (True, False, BOAT)
    assert (stays["tags"], stays["metadata"]["from"], stays["importance"]) == (["sport", "lake"], "mail", 0.8)
    assert stays["timestamp"] == gone["timestamp"], "it was said again"
    assert (await report(client, "duplicates"))["findings"] == []
    assert len(await listed(client, user_id="alice")) == 2
    for each in twins:
        [verdict] = [one for one in await decided(client, each) if one["verdict"] == "join"]
        assert (verdict["source"], verdict["model"], verdict["reason"]) == ("review", "person", finding["reason"])
    for _ in range(2):
        assert len((await undone(client, done["decision_id"]))["decisions"]) == 2
    for each in twins:
        now = await read(client, each)
        assert {**now, "version": 0, "updated_at": 0} == {**was[each], "version": 0, "updated_at": 0}
    assert (await report(client, "duplicates"))["total"] == 1


async def test_several_duplicates_are_joined_into_one(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, embedder: AngleEmbedder, clock: SetClock
) -> None:
    texts = (BOAT, BOAT_AGAIN, "Rows a red boat on the Lake Garda")
    ids: list[str] = []
    for text, cosine in zip(texts, (1.0, 0.98, 0.97), strict=True):
        embedder.place(text, cosine)
        ids.append(await store(client, text, tags=[f"t{len(ids)}"], dedup=False))
        clock.forward(days=1)
    await work(resources, tables, tenant.workspace_id, "enrich")
    decisions = []
    while wanted := await changes(client, "duplicates"):
        taken = [each["id"] for each in wanted] + [each["kept_id"] for each in wanted]
        assert len(taken) == len(set(taken)), "no memory is in two findings of a page"
        decisions.append((await applied(client, wanted))["decision_id"])
    assert await listed(client, user_id="alice") == {ids[0]}
    assert sorted((await read(client, ids[0]))["tags"]) == ["t0", "t1", "t2"]
    assert len(decisions) == 2
    early = await client.post(f"/v1/decisions/{decisions[0]}/undo")
    if early.status_code == 409:  # both touched one memory
        await undone(client, decisions[1])
    await undone(client, decisions[0])
    if early.status_code == 200:
        await undone(client, decisions[1])
    assert await listed(client, user_id="alice") == set(ids)


async def test_sources_of_a_joined_memory_are_the_others_too_until_it_is_undone(
    client: AsyncClient, tables: Tables, tenant: Tenant, twins: tuple[str, str]
) -> None:
    older, newer = twins
    turn = await said(client, await opened(client, "talk"), BOAT_AGAIN)
    await tables.fetch(
        "INSERT INTO memory_source (workspace_id, memory_id, turn_id) VALUES ($1, $2, $3)",
        tenant.workspace_id,
        UUID(newer),
        UUID(turn),
    )
    done = await applied(client, await changes(client, "duplicates"))
    sources = "SELECT turn_id::text FROM memory_source WHERE memory_id = $1"
    assert [row["turn_id"] for row in await tables.fetch(sources, UUID(older))] == [turn]
    await undone(client, done["decision_id"])
    assert await tables.fetch(sources, UUID(older)) == []


async def test_what_may_be_contradicted_is_retired_and_comes_back(
    client: AsyncClient, tables: Tables, tenant: Tenant, clock: SetClock
) -> None:
    old = await store(client, "Keeps a cat named Tom")
    clock.forward(days=3)
    new = await store(client, "Keeps a dog named Rex")
    await tables.fetch(EDGE, tenant.workspace_id, UUID(new), "MAY_OUTDATE", UUID(old))
    # drawn the other way round: what began later is kept all the same
    await tables.fetch(EDGE, tenant.workspace_id, UUID(old), "CONTRADICTS", UUID(new))
    found = (await report(client, "contradictions"))["findings"]
    assert [(each["ids"], each["remedy"]) for each in found] == [([old, new], "retire")] * 2
    assert (found[0]["about"], found[0]["kept"]) == ("Keeps a cat named Tom", "Keeps a dog named Rex")
    done = await applied(client, [found[0]["change"]])
    assert (await read(client, old))["archived"] is True
    held = (await client.get(f"/v1/memories/{old}/history")).json()["versions"]
    assert clock().isoformat() in {each["t_invalid"] for each in held}, "until the newer one began"
    assert (await report(client, "contradictions"))["total"] == 0
    await undone(client, done["decision_id"])
    assert (await read(client, old))["archived"] is False
    assert (await report(client, "contradictions"))["total"] == 2


async def test_what_is_retired_has_an_end_until_it_is_restored(
    client: AsyncClient, tables: Tables, tenant: Tenant, clock: SetClock
) -> None:
    end = "2031-01-01T00:00:00+00:00"
    old = await store(client, "Keeps a cat named Tom", t_invalid=end)
    before = clock().isoformat()
    clock.forward(days=3)
    began = clock().isoformat()
    new = await store(client, "Keeps a dog named Rex", t_valid=began)
    await tables.fetch(EDGE, tenant.workspace_id, UUID(new), "MAY_OUTDATE", UUID(old))
    await applied(client, await changes(client, "contradictions"))
    assert (await read(client, old))["t_invalid"] == began

    async def held(moment: str, **params: Any) -> list[str]:
        answer = await client.get("/v1/memories", params={"user_id": "alice", "valid_at": moment, **params})
        return [each["memory"] for each in answer.json()["results"]]

    for archived in (False, True):
        assert await held(before, include_archived=archived) == ["Keeps a cat named Tom"]
        assert await held(began, include_archived=archived) == ["Keeps a dog named Rex"]
    assert old in await listed(client, user_id="alice", include_archived=True)
    assert (await client.post(f"/v1/memories/{old}/restore")).json()["t_invalid"] == end
    assert await held(before) == ["Keeps a cat named Tom"], "as itself, not as a past version, too"


async def test_a_review_is_shown_and_decided_where_reviews_are(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant, contradiction_policy="flag_review") as (client, judge):
        old = await store(client, "Lives in Lisbon")
        judge.say("Lives in Porto", {"event": "UPDATE", "id": 1, "text": "Lives in Porto"})
        await tell(client, "I have moved to Porto")
        [finding] = (await report(client, "contradictions"))["findings"]
        assert (finding["change"], finding["ids"][0]) == (None, old)
        change = {"section": "contradictions", "id": old, "version": 1, "kept_id": finding["ids"][1], "kept_version": 1}
        refused = await apply(client, [change])
        assert (refused.status_code, refused.json()["field"]) == (409, "changes[0]")
        assert "review" in refused.json()["detail"]
        accepted = await client.post(f"/v1/reviews/{finding['review_id']}/accept")
        assert accepted.status_code == 200, accepted.text
        assert (await report(client, "contradictions"))["total"] == 0


async def test_what_is_stale_or_of_little_value_of_two_users_is_one_ruling(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    stale = await store(client, "Rows a red boat")
    ended = await store(client, "Has a day ticket", user_id="bob")
    low = await store(client, "Hm, all right then", user_id="bob", importance=0.2)
    loved = await store(client, "Is allergic to nuts", importance=0.9)
    body = {"content": "The office is closed", "shared": True, "importance": 0.1}
    shared = str((await client.post("/v1/memories", json=body)).json()["results"][0]["id"])
    for each in (stale, ended):
        await tables.fetch(STALE, UUID(each))
    await tables.fetch("UPDATE memory SET valid_until = '2026-03-01' WHERE id = $1", UUID(ended))
    for each in (low, loved, shared):
        await tables.fetch(FADED, UUID(each))
    found = {each["ids"][0]: each["reason"] for each in (await report(client, "stale"))["findings"]}
    assert found == {stale: "It has not been used since 2026-03-02.", ended: "It held until 2026-03-01."}
    found = {each["ids"][0]: each["reason"] for each in (await report(client, "low_value"))["findings"]}
    assert found.keys() == {low, shared}
    assert found[low] == "Importance 2 of 10, relevance 0.10: nobody uses it."
    done = await applied(client, await changes(client, "stale", "low_value"))
    assert done["applied"] == 4
    for each in (stale, ended, low, shared):
        assert (await read(client, each))["archived"] is True
    [entry] = (await client.get("/v1/audit", params={"operation": "optimize"})).json()["results"]
    assert set(entry["affected_ids"]) == {stale, ended, low, shared}
    assert entry["metadata"]["sections"] == ["low_value", "stale"]
    back = await undone(client, done["decision_id"])
    assert len(back["decisions"]) == 4
    for each in (stale, ended, low, shared):
        assert (await read(client, each))["archived"] is False
    assert await listed(client, user_id="bob") == {ended, low}


async def test_what_was_used_since_it_was_flagged_is_not_stale(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    memory_id = await store(client, "Rows a red boat")
    await tables.fetch(STALE, UUID(memory_id))
    [change] = await changes(client, "stale")
    await tables.fetch("UPDATE memory_stat SET last_accessed = stale_at WHERE memory_id = $1", UUID(memory_id))
    refused = await apply(client, [change])
    assert (refused.status_code, refused.json()["field"]) == (409, "changes[0]"), "no version tells of a use"
    assert await changes(client, "stale") == []


async def test_what_changed_since_the_report_is_named_and_nothing_is_done(
    client: AsyncClient, other_client: AsyncClient, tables: Tables, tenant: Tenant, twins: tuple[str, str]
) -> None:
    older, newer = twins
    stale = await store(client, "Owns a horse", user_id="bob")
    await tables.fetch(STALE, UUID(stale))
    wanted = await changes(client, "stale", "duplicates")
    assert (await client.patch(f"/v1/memories/{older}", json={"tags": ["changed"]})).status_code == 200
    before = await tables.contents(tenant.workspace_id)
    for dry_run in (True, False):
        refused = await apply(client, wanted, dry_run=dry_run)
        assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (409, "conflict", "changes[1]")
        assert older in refused.json()["detail"]
        assert await tables.contents(tenant.workspace_id) == before, "the other one was not done either"
    for foreign in (
        {"section": "stale", "id": str(uuid4()), "version": 1},
        {**wanted[0], "section": "low_value"},
        {**wanted[1], "id": older, "kept_id": newer},
    ):
        assert (await apply(client, [foreign])).status_code == 409
    assert (await apply(other_client, [wanted[0]])).status_code == 409, "of another workspace"


async def test_a_change_between_the_look_and_the_lock_is_noticed(
    client: AsyncClient, tables: Tables, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = await store(client, "Owns a horse")
    await tables.fetch(STALE, UUID(memory_id))
    [change] = await changes(client, "stale")
    seen = findings.among
    looked: list[bool] = []

    async def late(*args: Any, **kwargs: Any) -> Any:
        found = await seen(*args, **kwargs)
        if not looked:  # the look before the lock; then somebody is faster
            looked.append(True)
            await client.patch(f"/v1/memories/{memory_id}", json={"tags": ["changed"]})
        return found

    monkeypatch.setattr(findings, "among", late)
    refused = await apply(client, [change])
    assert (refused.status_code, refused.json()["field"]) == (409, "changes[0]")
    assert memory_id in refused.json()["detail"]
    assert (await read(client, memory_id))["archived"] is False


async def test_an_entity_that_nothing_names_goes_and_is_no_part_of_the_ruling(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    await store(client, "Anna Schmidt lives in Bonn")
    await work(resources, tables, tenant.workspace_id, "enrich")
    nobody, written = await orphan(tables, tenant, "Nobody"), await orphan(tables, tenant, "Wanted", "caller")
    found = await report(client, "orphan_entities")
    [finding] = found["findings"]
    assert (finding["ids"], finding["about"], finding["is_undoable"]) == ([nobody], "Nobody", False)
    assert (finding["gain"] > 50, finding["gain_unit"]) == (True, "bytes")
    await tables.fetch("UPDATE entity SET version = version + 1 WHERE id = $1", UUID(nobody))
    assert (await apply(client, [finding["change"]])).status_code == 409
    done = await applied(client, await changes(client, "orphan_entities"))
    assert done["decision_id"] is None
    left = {
        row["id"] for row in await tables.fetch("SELECT id FROM entity WHERE workspace_id = $1", tenant.workspace_id)
    }
    assert UUID(nobody) not in left
    assert UUID(written) in left
    assert len(left) >= 2


async def test_a_missing_vector_is_queued(
    client: AsyncClient,
    resources: Resources,
    tables: Tables,
    tenant: Tenant,
    embedder: AngleEmbedder,
    database: Database,
) -> None:
    embedder.down = True
    memory_id = await store(client, "Rows a red boat")
    embedder.down = False
    assert (await report(client, "missing_vectors"))["total"] == 0, "a job is going to make it"
    await tables.fetch(
        "UPDATE job SET state = 'dead', attempts = 3, finished_at = now(), last_error = 'embedding_error: no answer' "
        "WHERE workspace_id = $1 AND kind = 'embed'",
        tenant.workspace_id,
    )
    [missing] = (await report(client, "missing_vectors"))["findings"]
    assert (missing["ids"], missing["gain_unit"], missing["is_undoable"]) == ([memory_id], "vectors", False)
    assert missing["reason"].endswith("1 died, the last of: embedding_error: no answer.")
    done = await applied(client, [missing["change"]])
    assert done["decision_id"] is None
    assert (await apply(client, [missing["change"]])).status_code == 409, "it is queued by now"
    assert await work(resources, tables, tenant.workspace_id, "embed") == 1
    assert (await read(client, memory_id))["embedding"] == "stored"


async def test_pages_go_on_where_the_last_one_ended(
    client: AsyncClient, tables: Tables, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await store(client, f"Has boat {number}") for number in range(5)]
    for each in ids:
        await tables.fetch(STALE, UUID(each))
    first = await report(client, "stale", limit=2)
    assert (first["total"], first["is_exact"]) == (5, True)
    second = await report(client, "stale", limit=2, cursor=first["next_cursor"])
    third = await report(client, "stale", limit=2, cursor=second["next_cursor"])
    assert third["next_cursor"] is None
    assert [each["ids"][0] for part in (first, second, third) for each in part["findings"]] == sorted(ids)
    monkeypatch.setattr(findings, "LOOKED_AT", 3)  # as in a workspace that is larger than a walk
    first = await report(client, "stale")
    assert (first["total"], first["is_exact"]) == (3, False)
    second = await report(client, "stale", cursor=first["next_cursor"])
    assert (second["total"], second["is_exact"], second["next_cursor"]) == (2, True, None)
    for params, field in (
        ({"cursor": first["next_cursor"]}, "cursor"),
        ({"section": "stale", "cursor": "nonsense"}, "cursor"),
        ({"section": "dust"}, "section[0]"),
        ({"limit": 101}, "limit"),
    ):
        refused = await client.get("/v1/optimization/report", params=params)
        assert (refused.status_code, refused.json()["field"]) == (400, field), refused.text


async def test_only_the_admin_of_a_workspace_may(
    client: AsyncClient, other_client: AsyncClient, app: FastAPI, tables: Tables
) -> None:
    memory_id = await store(client, "Rows a red boat")
    await tables.fetch(STALE, UUID(memory_id))
    [change] = await changes(client, "stale")
    assert await changes(other_client, "stale") == []
    for rights, wall in ((("memory:read", "memory:write", "metrics"), {}), (("memory:read",), {"user_id": "alice"})):
        async with client_of(app, await made(client, *rights, **wall)) as other:
            for refused in (await other.get("/v1/optimization/report"), await apply(other, [change])):
                assert (refused.status_code, refused.json()["detail"]) == (403, "This key lacks the right admin.")
    async with client_of(app, await made(client, "admin")) as admin:
        seen = (await admin.get("/v1/optimization/report")).json()
        assert len(seen["sections"]) == 6


async def test_a_key_behind_a_wall_undoes_its_own_part_alone(client: AsyncClient, app: FastAPI, tables: Tables) -> None:
    mine, hers = await store(client, "Rows a red boat"), await store(client, "Owns a horse", user_id="bob")
    for each in (mine, hers):
        await tables.fetch(STALE, UUID(each))
    done = await applied(client, await changes(client, "stale"))
    [own] = await decided(client, mine)
    async with client_of(app, await made(client, "memory:read", "memory:write", user_id="alice")) as walled:
        assert (await undone(walled, own["id"]))["decisions"] == [own["id"]]
    assert [(await read(client, each))["archived"] for each in (mine, hers)] == [False, True]
    await undone(client, done["decision_id"])
    assert (await read(client, hers))["archived"] is False


async def test_what_makes_no_sense_is_refused(client: AsyncClient, twins: tuple[str, str]) -> None:
    older, newer = twins
    [change] = await changes(client, "duplicates")
    canoe = {"section": "stale", "id": older, "version": 1}
    for wanted, field in (
        ([change, change], "changes[1].id"),
        ([change, canoe], "changes[0].kept_id"),
        ([{**change, "kept_id": None}], "changes[0]"),
        ([{**canoe, "kept_id": newer}], "changes[0]"),
        ([{**canoe, "section": "dust"}], "changes[0].section"),
        ([], "changes"),
        ([canoe] * 101, "changes"),
    ):
        refused = await apply(client, wanted)
        assert refused.status_code == 400, refused.text
        assert refused.json()["field"].startswith(field), refused.text


async def test_repeated_with_its_key_it_is_done_once(client: AsyncClient, tables: Tables) -> None:
    memory_id = await store(client, "Rows a red boat")
    await tables.fetch(STALE, UUID(memory_id))
    wanted = await changes(client, "stale")
    answers = [await apply(client, wanted, key="one") for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


async def test_of_two_who_apply_the_same_one_does(client: AsyncClient, tables: Tables) -> None:
    memory_id = await store(client, "Rows a red boat", tags=["sport"])
    await tables.fetch(STALE, UUID(memory_id))
    wanted = await changes(client, "stale")
    answers = await asyncio.gather(*(apply(client, wanted) for _ in range(4)))
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]
    assert await events(client, memory_id) == ["ADD", "UPDATE"]


async def test_an_archived_text_that_was_stored_again_is_not_brought_back_twice(
    client: AsyncClient, tables: Tables
) -> None:
    memory_id = await store(client, "Rows a red boat")
    await tables.fetch(STALE, UUID(memory_id))
    done = await applied(client, await changes(client, "stale"))
    again = await store(client, "Rows a red boat")
    refused = await client.post(f"/v1/decisions/{done['decision_id']}/undo")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert await listed(client, user_id="alice") == {again}


async def test_what_decays_and_what_is_stale_can_be_seen_and_filtered(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, clock: SetClock
) -> None:
    old, new = await store(client, "Rows a red boat"), await store(client, "Owns a horse")
    await work(resources, tables, tenant.workspace_id, "enrich")
    assert (await read(client, old))["lifecycle_state"] == "active"
    await tables.fetch(FADED, UUID(old))
    await tables.fetch(STALE, UUID(old))
    assert (await read(client, old))["lifecycle_state"] == "decaying"
    is_stale = {"field": "stale", "operator": "eq", "value": True}
    since = {"field": "stale_at", "operator": "gte", "value": "2026-01-01"}
    for tree, expected in ((is_stale, {old}), ({"NOT": is_stale}, {new}), (since, {old})):
        question = {"query": "what does she own", "user_id": "alice", "filters": tree}
        found = (await client.post("/v1/memories/search", json=question)).json()["results"]
        assert {each["id"] for each in found} == expected
        assert await listed(client, user_id="alice", filters=json.dumps(tree)) == expected
