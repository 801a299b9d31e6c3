"""Tenants are kept apart by the database, not only by our WHERE clauses.

Two workspaces hold the same ids, names and texts. Then every tenant predicate is taken out of every statement on its
way to Postgres: what is left is row-level security, and nothing foreign may be seen through any route.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient
from sqlalchemy import Dialect, TextClause, event, text

from bench.superuser import login_url
from service.domain.errors import StoreUnavailable
from service.domain.query import SortOrder
from service.domain.scope import Scope
from service.memories.statements import memories
from service.postgres import direct, scopes
from service.postgres.engine import Access, Database
from service.postgres.roles import APP, OWNER
from service.runtime.resources import Resources
from tests.conftest import Tenant, open_as
from tests.support.application import Tables, client_of, serving
from tests.support.connections import pooled

MINE, THEIRS = "Waters the cactus on Mondays", "Hides the ledger behind the stove"
SCOPE = {"user_id": "iris"}
COMPILED = direct.compile_statement
PREDICATE = re.compile(r"(?:\w+\.)?workspace_id = (\$\d+)(?:::UUID)?")


@contextmanager
def without_tenant_predicates(database: Database) -> Iterator[list[int]]:
    """Every `workspace_id = $n` becomes true; yields how many there were."""
    taken: list[int] = []

    def stripped(statement: str) -> str:
        found, count = PREDICATE.subn(r"(\1::uuid IS NOT NULL)", statement)
        if count and not statement.lstrip().upper().startswith("INSERT"):
            taken.append(count)
            return found
        return statement

    def strip(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> Any:
        return stripped(statement), parameters

    def compiled(statement: TextClause, dialect: Dialect) -> Any:
        text, parameters = COMPILED(statement, dialect)
        return stripped(text), parameters

    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", strip, retval=True)
    try:
        with patch.object(direct, "compile_statement", compiled):
            yield taken
    finally:
        event.remove(engine, "before_cursor_execute", strip)


async def stored(client: AsyncClient, content: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/memories", json={"content": content, **SCOPE, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["results"][0]
    return found


async def test_the_stripper_strips(
    database: Database, owner_url: str, client: AsyncClient, other_client: AsyncClient, tenant: Tenant
) -> None:
    """As the owner, whom no policy holds back, stripped statements show foreign rows: the test below can fail."""
    await stored(client, MINE)
    await stored(other_client, THEIRS)
    access = Access(login_url(owner_url, OWNER))
    unwalled = Database(access, pool_size=1, pool_timeout_s=5)
    with without_tenant_predicates(unwalled) as taken:
        async with unwalled.read(tenant.workspace_id) as session:
            scope = Scope(tenant.workspace_id, "iris")
            places = await memories.page(session, scopes.readable("m", scope), SortOrder(), after=None, limit=100)
            found = await memories.get_many(session, [each.id for each in places])
    await unwalled.close()
    assert taken
    assert {MINE, THEIRS} <= {each.text for each in found.values()}


async def test_without_our_predicates_no_foreign_row_is_seen(
    database: Database, client: AsyncClient, other_client: AsyncClient, tenant: Tenant, stranger: Tenant, tables: Tables
) -> None:
    theirs = await stored(other_client, THEIRS, tags=["secret:ledger"], metadata={"k": "ledger"})
    shared = str(uuid4())
    await stored(other_client, THEIRS + " again", id=shared)
    said = {"messages": [{"role": "user", "content": THEIRS + " too"}], "infer": False, "run_id": "S1", **SCOPE}
    assert (await other_client.post("/v1/memories", json=said)).status_code == 201
    promised = await other_client.post("/v1/memories", json=said, headers={"Prefer": "respond-async"})
    operation = promised.json()["operation_id"]
    before = await tables.counts(stranger.workspace_id)
    mine = await stored(client, MINE)

    with without_tenant_predicates(database) as taken:
        # reading
        for path in (f"/v1/memories/{theirs['id']}", f"/v1/memories/{theirs['id']}/history", f"/v1/memories/{shared}"):
            assert (await client.get(path)).status_code == 404, path
        assert (await client.get(f"/v1/operations/{operation}")).status_code == 404
        seen = [
            await client.get("/v1/memories", params={**SCOPE, "include_archived": True}),
            await client.get("/v1/memories", params={"run_id": "S1"}),
            await client.get("/v1/memories/search", params={**SCOPE, "query": THEIRS}),
            await client.post("/v1/memories/search", json={**SCOPE, "query": THEIRS, "validity": "ignore"}),
            await client.get(f"/v1/memories/{mine['id']}/history"),
            await client.get("/v1/api-keys"),
            await client.get("/v1/workspaces/current"),
            await client.get("/v1/whoami"),
            await client.get("/v1/stats"),
            await client.get("/v1/stats/categories", params=SCOPE),
            await client.get("/v1/config"),
        ]
        for answer in seen:
            assert answer.status_code == 200, (answer.request.url, answer.text)
            assert "ledger" not in answer.text.replace("%20", " "), answer.request.url
            assert str(stranger.workspace_id) not in answer.text
        assert [each["memory"] for each in seen[0].json()["results"]] == [MINE]
        assert seen[1].json()["results"] == []
        assert len(seen[5].json()["results"]) == 1
        # writing: the same text, the same id, the same conversation are new here
        assert (await stored(client, THEIRS))["event"] == "ADD"
        assert (await stored(client, "Mine under the same id", id=shared))["id"] == shared
        turn = (await client.post("/v1/memories", json=said)).json()["results"][0]
        assert (turn["event"], turn["turn_index"]) == ("ADD", 0)
        items = [{"content": THEIRS + " again", **SCOPE}, {"content": "x", "id": theirs["id"], **SCOPE}]
        batch = (await client.post("/v1/memories/batch", json={"items": items})).json()
        assert [each["results"][0]["event"] for each in batch["results"]] == ["ADD", "ADD"]
        revoked = await client.delete(f"/v1/api-keys/{await _key_of(tables, stranger)}")
        assert revoked.status_code == 404
    assert len(taken) > 30, "the statements were not stripped"
    assert await tables.counts(stranger.workspace_id) == before
    assert (await other_client.get(f"/v1/memories/{shared}")).json()["memory"] == THEIRS + " again"


async def _key_of(tables: Tables, who: Tenant) -> UUID:
    found: UUID = await tables.value("SELECT id FROM api_key WHERE workspace_id = $1", who.workspace_id)
    return found


async def test_an_idempotency_key_is_a_workspaces_own(client: AsyncClient, other_client: AsyncClient) -> None:
    headers = {"Idempotency-Key": "shared"}
    body = {"content": MINE, **SCOPE}
    first = await client.post("/v1/memories", json=body, headers=headers)
    other = await other_client.post("/v1/memories", json=body, headers=headers)
    assert (first.status_code, other.status_code) == (201, 201)
    assert "Idempotency-Replayed" not in other.headers
    assert first.json()["results"][0]["id"] != other.json()["results"][0]["id"]


@pytest.mark.parametrize(
    ("write", "read", "seen"),
    [
        ({"user_id": "u"}, {"user_id": "u"}, True),
        ({"user_id": "u"}, {"user_id": "v"}, False),
        ({"user_id": "u"}, {"agent_id": "u"}, False),
        ({"user_id": "u", "agent_id": "a"}, {"user_id": "u"}, True),
        ({"user_id": "u", "agent_id": "a"}, {"user_id": "u", "agent_id": "a"}, True),
        ({"user_id": "u", "agent_id": "a"}, {"user_id": "u", "agent_id": "b"}, False),
        ({"user_id": "u"}, {"user_id": "u", "agent_id": "a"}, False),
        ({"user_id": "u", "run_id": "r"}, {"run_id": "r"}, True),
        ({"user_id": "u", "run_id": "r"}, {"user_id": "u", "run_id": "q"}, False),
        ({"user_id": "u", "channel": "x"}, {"user_id": "u", "channel": "x"}, True),
        ({"user_id": "u", "channel": "x"}, {"user_id": "u", "channel": "_global"}, False),
        ({"user_id": "u", "channel": "x"}, {"user_id": "u", "channel": "y"}, False),
        ({"user_id": "u"}, {"user_id": "u", "channel": "x"}, True),
        ({"user_id": "u"}, {"user_id": "U"}, False),
        ({"user_id": "u"}, {"user_id": "%"}, False),
    ],
)
async def test_hard_filters_and_the_soft_one(
    client: AsyncClient, write: dict[str, str], read: dict[str, str], seen: bool
) -> None:
    answer = await client.post("/v1/memories", json={"content": MINE, **write})
    assert answer.status_code == 201, answer.text
    listed = (await client.get("/v1/memories", params=read)).json()["results"]
    found = (await client.post("/v1/memories/search", json={"query": MINE, **read})).json()["results"]
    assert [len(listed), len(found)] == [int(seen)] * 2


async def test_dedup_stays_in_exactly_the_scope(client: AsyncClient) -> None:
    """A missing id means null: nobody's private memory answers for another's."""
    scopes: list[dict[str, str]] = [
        {"user_id": "u"},
        {"user_id": "v"},
        {"agent_id": "u"},
        {"run_id": "u"},
        {"user_id": "u", "agent_id": "a"},
        {"user_id": "u", "run_id": "r"},
        {"user_id": "u", "channel": "x"},
    ]
    for scope in scopes:
        answer = await client.post("/v1/memories", json={"content": MINE, **scope})
        assert answer.json()["results"][0]["event"] == "ADD", scope
    for scope in scopes:
        answer = await client.post("/v1/memories", json={"content": MINE, **scope})
        assert answer.json()["results"][0]["event"] == "NONE", scope


# -- one connection, many tenants ----------------------------------------------------------------------------------


@pytest.fixture
async def narrow(owner_url: str) -> AsyncIterator[Database]:
    """A pool of one connection."""
    async with open_as(owner_url, APP, size=1) as database:
        yield database


async def test_one_connection_serves_tenants_in_turn(
    narrow: Database, resources: Resources, tenant: Tenant, stranger: Tenant
) -> None:
    async with (
        serving(replace(resources, db=narrow)) as app,
        client_of(app, tenant.key) as mine,
        client_of(app, stranger.key) as theirs,
    ):
        await stored(mine, MINE)
        await stored(theirs, THEIRS)
        for _ in range(5):
            for client, own in ((mine, MINE), (theirs, THEIRS)):
                listed = (await client.get("/v1/memories", params=SCOPE)).json()["results"]
                assert [each["memory"] for each in listed] == [own]
        both = await asyncio.gather(
            *(client.get("/v1/memories", params=SCOPE) for client in (mine, theirs) for _ in range(10))
        )
        seen = [[each["memory"] for each in answer.json()["results"]] for answer in both]
        assert seen == [[MINE]] * 10 + [[THEIRS]] * 10


async def test_nothing_is_left_on_a_connection(narrow: Database, tenant: Tenant, stranger: Tenant) -> None:
    """After a failure, and after a cancellation between and in the middle of statements, BEGIN included."""

    async def clean() -> None:
        async with pooled(narrow) as connection:
            assert not await connection.scalar(text("SELECT current_setting('loxodon.workspace', true)"))
            assert await connection.scalar(text("SELECT pg_current_xact_id_if_assigned()")) is None
            with pytest.raises(Exception, match=r"loxodon.workspace|invalid input syntax"):
                await connection.execute(text("SELECT count(*) FROM memory"))
        async with narrow.read(stranger.workspace_id) as session:
            assert await session.scalar(text("SELECT current_setting('loxodon.workspace')")) == str(
                stranger.workspace_id
            )

    with pytest.raises(Exception, match="division"):
        async with narrow.begin(tenant.workspace_id) as session:
            await session.execute(text("SELECT 1 / 0"))
    await clean()

    async def slow(statement: str) -> None:
        async with narrow.begin(tenant.workspace_id) as session:
            await session.execute(text("UPDATE workspace SET name = 'left'"))
            await session.execute(text(statement))

    for wait_s in (0.0, 0.005, 0.02, 0.1):
        task = asyncio.create_task(slow("SELECT pg_sleep(5)"))
        await asyncio.sleep(wait_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await clean()
    async with narrow.read(tenant.workspace_id) as session:
        assert await session.scalar(text("SELECT name FROM workspace")) == "test"


async def test_cancelled_requests_leave_a_usable_pool(
    narrow: Database, resources: Resources, tenant: Tenant, stranger: Tenant
) -> None:
    async with (
        serving(replace(resources, db=narrow)) as app,
        client_of(app, tenant.key) as mine,
        client_of(app, stranger.key) as theirs,
    ):
        await stored(theirs, THEIRS)
        for wait_s in (0.001, 0.005, 0.01, 0.02, 0.03, 0.05):
            body = {"content": f"{MINE} {wait_s}", **SCOPE}
            task = asyncio.create_task(mine.post("/v1/memories", json=body))
            await asyncio.sleep(wait_s)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            listed = (await theirs.get("/v1/memories", params=SCOPE)).json()["results"]
            assert [each["memory"] for each in listed] == [THEIRS]


async def test_a_busy_pool_is_503_with_a_time_to_retry(owner_url: str, tenant: Tenant) -> None:
    async with open_as(owner_url, APP, size=1, timeout_s=0.05) as database, database.read(tenant.workspace_id):
        with pytest.raises(StoreUnavailable) as caught:
            async with database.read(tenant.workspace_id):
                pass
    assert caught.value.retry_after_s


# -- goals, procedures and working memory ------------------------------------------------------------------------------

IRIS = {"user_id": "iris"}
WORD = "ledger"


async def acted(client: AsyncClient, word: str) -> dict[str, str]:
    """A goal, a tool invocation, a strategy and a working entry, each with the word; ids by kind."""
    goal = await client.post("/v1/goals", json={"description": f"Hide the {word}", **IRIS})
    use = {"tool_name": "search", "tool_input": word, "success": True, **IRIS}
    used = await client.post("/v1/tool-invocations", json=use)
    way = await client.post("/v1/strategies", json={"description": f"Ask about the {word}", **IRIS})
    held = await client.put("/v1/working/trip/items/cart", json={"value": word}, params=IRIS)
    for answer in (goal, used, way, held):
        assert answer.status_code in (200, 201), answer.text
    return {"goal": goal.json()["id"], "strategy": way.json()["id"]}


async def test_without_our_predicates_nothing_foreign_is_seen_or_changed(
    database: Database, client: AsyncClient, other_client: AsyncClient, stranger: Tenant, tables: Tables
) -> None:
    theirs = await acted(other_client, WORD)
    before = await tables.counts(stranger.workspace_id)
    goal, strategy = f"/v1/goals/{theirs['goal']}", f"/v1/strategies/{theirs['strategy']}"
    posts: list[tuple[str, Any]] = [
        (f"{goal}/complete", {}),
        (f"{strategy}/reinforce", {"success": True}),
    ]
    with without_tenant_predicates(database) as taken:
        for path in (goal, strategy, "/v1/working/trip/items/cart?user_id=iris"):
            assert (await client.get(path)).status_code == 404, path
        for path, body in posts:
            assert (await client.post(path, json=body)).status_code == 404, path
        for path in (goal, strategy, "/v1/working/trip/items/cart?user_id=iris"):
            assert (await client.delete(path)).status_code == 404, path
        assert (await client.patch(goal, json={"priority": 1})).status_code == 404
        assert (await client.delete("/v1/working/trip", params=IRIS)).json() == {"deleted": 0}
        for path in (
            "/v1/goals?user_id=iris",
            "/v1/strategies?user_id=iris",
            "/v1/strategies/search?user_id=iris&task=hide",
            "/v1/tool-invocations?user_id=iris",
            "/v1/tools/stats",
        ):
            answer = await client.get(path)
            assert answer.status_code == 200, answer.text
            assert answer.json()["results"] == [], path
        mine = await acted(client, WORD)
        assert mine["strategy"] != theirs["strategy"], "an equal one of another workspace is none of ours"
        assert (await client.get("/v1/working/trip", params=IRIS)).json()["items"]["cart"]["value"] == WORD
    assert len(taken) > 20, "the statements were not stripped"
    assert await tables.counts(stranger.workspace_id) == before
    assert (await other_client.get(goal)).json()["version"] == 1
