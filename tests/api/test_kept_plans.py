"""Which statements of a search are planned for their values, and which have plans that are kept?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from service.db.engine import Database, driver, find_access
from service.db.roles import APP
from service.domain.query import Query
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.resources import Resources
from service.retrieval import search
from tests.api.conftest import client_of, serving
from tests.conftest import Tenant

PLANS = text("SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements")
PARTS = {"measures": "active_goals", "rows": "memory_stat s ON", "names": "FROM entity e", "candidates": "AS arm"}


@pytest.fixture
async def alone(resources: Resources, owner_url: str) -> AsyncIterator[Resources]:
    """With one connection, whose statements are this test's."""
    access = await find_access(owner_url, wanted_role=APP, own_login=False, pooled=False)
    database = Database.open(access, pool_size=1, pool_timeout_s=5)
    yield replace(resources, db=database)
    await database.close()


async def _plans(res: Resources) -> dict[str, tuple[int, int]]:
    """How often each part of a search ran by a kept plan and by one made for its values."""
    async with res.db.engine.connect() as connection:
        rows = (await connection.execute(PLANS)).all()
    found = {}
    for row in rows:
        part = next((part for part, mark in PARTS.items() if mark in row.statement), None)
        if part is not None:
            found[part] = (row.generic_plans, row.custom_plans)
    return found


async def _stored(res: Resources, tenant: Tenant) -> None:
    async with serving(res) as app, client_of(app, tenant.key) as client:
        for content in ("Ada plays chess on Sundays", "Ada lent Ben a book about bees", "The kettle is broken"):
            stored = await client.post("/v1/memories", json={"content": content, "user_id": "ada"})
            assert stored.status_code == 201


async def test_candidates_are_planned_for_their_values_and_what_follows_is_not(
    resources: Resources, alone: Resources, tenant: Tenant
) -> None:
    await _stored(resources, tenant)
    query = Query(Scope(tenant.workspace_id, user_id="ada"), CleanText("What did Ada lend to Ben?"), 10)
    for _ in range(3):
        assert len((await search.search(query, alone)).hits) == 3
    assert await _plans(alone) == {"candidates": (0, 3), "names": (3, 0), "measures": (3, 0), "rows": (3, 0)}


async def test_to_say_so_costs_no_round_trip(resources: Resources, alone: Resources, tenant: Tenant) -> None:
    await _stored(resources, tenant)
    query = Query(Scope(tenant.workspace_id, user_id="ada"), CleanText("What about the kettle?"), 10)
    await search.search(query, alone)
    async with alone.db.engine.connect() as connection:
        raw = await driver(connection)
    sent: list[Any] = []
    with raw.query_logger(lambda asked: sent.append(asked.query)):
        await search.search(query, alone)
    assert len(sent) == 5, "BEGIN, candidates, measures, rows, COMMIT"


async def test_a_scope_too_large_to_be_read_is_planned_for_its_values(
    resources: Resources, alone: Resources, tenant: Tenant
) -> None:
    await _stored(resources, tenant)
    small = replace(alone, settings=alone.settings.model_copy(update={"exact_scope_rows": 2}))
    query = Query(Scope(tenant.workspace_id, user_id="ada"), CleanText("What did Ada lend to Ben?"), 10)
    for _ in range(2):
        assert len((await search.search(query, small)).hits) == 3
    async with alone.db.engine.connect() as connection:
        rows = (await connection.execute(PLANS)).all()
    large = [row for row in rows if "lexical_ids" in row.statement]
    assert [(row.generic_plans, row.custom_plans) for row in large] == [(0, 2)]


async def test_a_memory_read_by_its_id_has_a_kept_plan(resources: Resources, alone: Resources, tenant: Tenant) -> None:
    async with serving(alone) as app, client_of(app, tenant.key) as client:
        stored = await client.post("/v1/memories", json={"content": "The kettle is broken", "user_id": "ada"})
        for _ in range(2):
            read = await client.get(f"/v1/memories/{stored.json()['results'][0]['id']}")
            assert read.status_code == 200
    kept, made = (await _plans(alone))["rows"]
    assert (kept >= 2, made) == (True, 0)
