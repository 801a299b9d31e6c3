"""Times at the ends of the calendar are refused or kept as they are, and no row with such a time breaks a read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.app.openapi_fields import Document, TextPlace
from tests.conftest import new_tenant
from tests.support.application import Tables, client_of, serving
from tests.support.calls import opened, said, store
from tests.thorough import THOROUGH, many

ENDS = (
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00-14:00", "0001-01-01", "0001-12-31"),
    *("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999-12:00", "9999-12-31T23:59:59.999999+12:00"),
    *("9999-12-31T23:59:59Z", "9999-12-31", "9998-12-31T23:59:59.999999Z", "0002-01-01T00:00:00Z"),
)
ALICE = {"user_id": "alice"}


def reads(ids: dict[str, str]) -> list[tuple[str, str, Any]]:
    """Everything that shows what was stored, with rankings, windows and zones."""
    far = {"start": "0002-01-01", "end": "9998-12-31"}
    asked = {"query": "What tea does she drink now?", **ALICE}
    found: list[tuple[str, str, Any]] = [
        ("POST", "/v1/memories/search", body)
        for body in (
            asked,
            {**asked, "validity": "ignore", "explain": True},
            {**asked, "timestamp": "2026-01-01", "timezone": "Pacific/Kiritimati"},
            {**asked, "query": "tea last week", "timezone": "Pacific/Pago_Pago", **far},
            {"query": "", **ALICE}
            | {"query": "tea", "filters": {"field": "timestamp", "operator": "gt", "value": ENDS[0]}},
            {**asked, "filters": {"field": "created_at", "operator": "lte", "value": ENDS[5]}},
        )
    ]
    found += [("POST", "/v1/recall", {**asked, "format": "markdown"})]
    found += [("GET", f"/v1/memories?user_id=alice&sort={each}", None) for each in ("timestamp", "importance")]
    found += [
        ("GET", path, None)
        for path in (
            "/v1/memories?user_id=alice",
            "/v1/memories?user_id=alice&limit=1&sort=timestamp",
            "/v1/timeline?user_id=alice&start=0002-01-01&end=9998-12-31",
            "/v1/timeline?user_id=alice",
            "/v1/conversations?user_id=alice",
            "/v1/conversations/talk",
            "/v1/conversations/talk/context",
            "/v1/goals?user_id=alice",
            "/v1/tools/stats?user_id=alice",
            "/v1/audit",
            "/v1/changes",
            "/v1/working/talk",
            "/v1/scopes",
            "/v1/channels",
            "/v1/entities/ana/relations?user_id=alice",
            "/v1/compat/automem/recall?query=tea&start=0002-01-01&end=9998-12-31",
            "/v1/compat/mem0/v1/memories/?user_id=alice",
            "/v1/compat/mem0/v1/entities/",
            f"/v1/memories/{ids['memory']}",
            f"/v1/memories/{ids['memory']}/history",
            f"/v1/memories/{ids['memory']}/why",
            f"/v1/memories/{ids['memory']}/related",
            f"/v1/memories/{ids['memory']}/relations",
            f"/v1/goals/{ids['goal']}",
        )
    ]
    return [
        *found,
        ("POST", "/v1/compat/mem0/v2/memories/search/", {"query": "tea", "filters": ALICE, "reference_date": 1e9}),
        ("POST", "/v1/memories", {"content": "Drinks much tea in the evening", **ALICE}),
        ("POST", "/v1/memories", {"messages": [{"role": "user", "content": "I drink tea since last week."}], **ALICE}),
        ("POST", "/v1/forget", {"query": "tea", "dry_run": True, **ALICE}),
        ("GET", "/v1/optimization/report", None),
    ]


async def check_reads(client: AsyncClient, ids: dict[str, str]) -> None:
    for method, path, body in reads(ids):
        answer = await client.request(method, path, json=body)
        assert answer.status_code < 400 or (answer.status_code == 404 and "relations" in path), f"{path} {answer.text}"


async def furnish(client: AsyncClient) -> dict[str, str]:
    memory = await store(client, "Drinks green tea since last week")
    other = await store(client, "Reads about Lisbon")
    await opened(client, "talk")
    turn = await said(client, "talk", "I drink green tea every day.", timestamp="2026-01-02T03:04:05Z")
    for name in ("Ana", "Acme"):
        made = await client.put("/v1/entities", json={"name": name, "type": "person", **ALICE})
        assert made.status_code in (200, 201)
    goal = (await client.post("/v1/goals", json={"description": "Rest", **ALICE})).json()["id"]
    return {"memory": memory, "other": other, "goal": goal, "turn": turn}


def time_places(document: dict[str, Any], kind: str) -> list[TextPlace]:
    return [
        each
        for each in Document(document).places()
        if each.kind == kind and each.leaf.get("format") == "date-time" and "tokens" not in each.path
    ]


def address(path: str, ids: dict[str, str]) -> str:
    found = ids["goal"] if "/goals/" in path else ids["memory"]
    return re.sub(r"{\w+}", lambda part: "talk" if "conversation" in path or "working" in path else found, path)


@pytest.mark.parametrize("kind", ["body", "query"])
async def test_every_time_field_of_every_operation(app: FastAPI, client: AsyncClient, kind: str) -> None:
    document = Document(app.openapi())
    ids = await furnish(client)
    places = time_places(app.openapi(), kind)
    assert len(places) >= (30 if kind == "body" else 15)
    taken = 0
    for number, place in enumerate(places):
        name = str(place.steps[-1][0])
        path = address(place.path, ids)
        for moment in ENDS if THOROUGH else ENDS[number % 3 :: 3]:
            if kind == "query":
                beside = {key: value for key, value in (("user_id", "alice"), ("query", "tea")) if key in place.beside}
                answers = [await client.request(place.method, path, params={**beside, name: moment})]
            else:
                answers = []
                for body in document.requests(place, moment):
                    scoped = {**body, **ALICE} if "user_id" in place.body["properties"] else body  # type: ignore[index]
                    for item in body.get("items", []) if "batch" in path else []:
                        item |= {"id": ids["memory"]} if path.endswith("update") else ALICE
                    answers.append(await client.request(place.method, path, json=scoped))
            for answer in answers:
                assert answer.status_code < 500, f"{place.name} {moment}: {answer.text}"
                if moment[:4] in ("0001", "9999") and answer.status_code == 400:
                    assert answer.json()["field"].split(".")[-1] == name, f"{place.name} {moment}: {answer.text}"
                taken += answer.status_code < 300
    assert taken
    await check_reads(client, ids)


ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
EDGES = st.sampled_from(["0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"]).map(datetime.fromisoformat)
TIMES = st.builds(lambda moment, zone: moment.replace(tzinfo=zone), st.datetimes() | EDGES, ZONES)
WRITES: Sequence[tuple[str, str, dict[str, Any], str]] = (
    ("POST", "/v1/memories", {"content": "Drinks tea at noon", **ALICE}, "timestamp"),
    ("POST", "/v1/memories", {"content": "Likes rice", **ALICE}, "t_valid"),
    ("POST", "/v1/memories", {"content": "Owns a boat", **ALICE}, "t_invalid"),
    ("POST", "/v1/memories", {"content": "Reads poems", **ALICE}, "expires_at"),
    (
        "POST",
        "/v1/memories",
        {"messages": [{"role": "user", "content": "I drank tea last week."}], **ALICE},
        "timestamp",
    ),
    ("POST", "/v1/conversations/talk/turns", {"role": "user", "content": "I drank tea last week."}, "timestamp"),
    ("POST", "/v1/goals", {"description": "Drink tea", **ALICE}, "deadline"),
    ("POST", "/v1/compat/automem/memory", {"content": "Drinks tea"}, "timestamp"),
    ("POST", "/v1/compat/mem0/v1/memories/", {"messages": "I drank tea last week.", **ALICE}, "timestamp"),
    ("POST", "/v1/compat/mem0/v1/memories/", {"messages": "I like tea.", **ALICE}, "expiration_date"),
)


@settings(
    max_examples=many(3, 30),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(moment=TIMES)
@example(moment=datetime.fromisoformat("9998-12-31T23:59:59.999999Z"))
async def test_a_time_is_refused_or_read_back(resources: Resources, database: Database, moment: datetime) -> None:
    tenant = await new_tenant(database)
    async with serving(resources) as app, client_of(app, tenant.key) as client:
        ids = await furnish(client)
        for method, path, body, field in WRITES:
            answer = await client.request(method, path, json={**body, field: moment.isoformat()})
            assert answer.status_code in (200, 201, 400), answer.text
            if answer.status_code == 400:
                assert answer.json()["field"] in (field, "expires_at")
                assert not 3 <= moment.year <= 9997 or field not in ("timestamp", "t_valid")
            elif path == "/v1/memories" and "content" in body and answer.status_code == 201:
                kept = (await client.get(f"/v1/memories/{answer.json()['results'][0]['id']}")).json()
                assert datetime.fromisoformat(kept[field]) == moment
        await check_reads(client, ids)


@pytest.mark.parametrize(
    "moment", [1e300, -1e300, 253402300799, 253402300800, -62135596800, 1e18, "9999-12-31", "1-1-1"]
)
async def test_numbers_of_foreign_clients(client: AsyncClient, moment: Any) -> None:
    add = {"messages": "I like tea.", **ALICE}
    for path, body, field in (
        ("/v1/compat/mem0/v1/memories/", {**add, "timestamp": moment}, "timestamp"),
        ("/v1/compat/mem0/v1/memories/", {**add, "expiration_date": moment}, "expiration_date"),
        (
            "/v1/compat/mem0/v2/memories/search/",
            {"query": "tea", "filters": ALICE, "reference_date": moment},
            "reference_date",
        ),
        ("/v1/compat/mem0/v2/memories/", {"filters": ALICE, "start_date": moment}, "start_date"),
    ):
        answer = await client.post(path, json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text


COLUMNS = ("timestamp", "t_valid", "t_invalid", "created_at", "updated_at", "expires_at")


@pytest.mark.parametrize("sign", ["-", ""])
@pytest.mark.parametrize("column", COLUMNS)
async def test_a_row_that_was_stored_before(client: AsyncClient, tables: Tables, column: str, sign: str) -> None:
    ids = await furnish(client)
    for name in ("Drinks black tea", "Drinks white tea", "Owns a tea pot"):
        ids["memory"] = await store(client, name)
    changed = await tables.fetch(
        f"UPDATE memory SET {column} = '{sign}infinity' WHERE id = $1 RETURNING 1", ids["other"]
    )
    assert changed
    if column == "timestamp":
        await tables.fetch(f"UPDATE turn SET timestamp = '{sign}infinity' WHERE id = $1", ids["turn"])
    await check_reads(client, ids)
