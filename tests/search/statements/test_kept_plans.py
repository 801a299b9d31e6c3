"""A kept plan reads no whole workspace, where the average one is small and this one is not.

Such a plan is made without values. The statistics are those of a database of hundreds of thousands of small workspaces;
ANALYZE is told here what service/postgres/sql/statistics.sql tells it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from service.postgres import opening
from service.postgres.engine import Database
from service.postgres.roles import APP
from service.runtime.resources import Resources
from tests.conftest import Tenant, open_as
from tests.support.application import Tables
from tests.support.connections import pooled
from tests.support.scripted_model import ConversationScript, with_scripted_model
from tests.support.tasks import work

MIND = ConversationScript(facts={"blue": ["User likes blue"], "both": ["User likes blue", "User likes the sea"]})
ROWS, WORKSPACES = 2_000_000, 400_000

SIZES = """UPDATE pg_class SET relpages = greatest(1, pg_relation_size(oid) / 8192), reltuples = $1
    WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace AND reltuples > 0"""
NO_FREQUENT = ", ".join(f"stakind{number} = 0" for number in range(1, 6))
TENANTS = f"""UPDATE pg_statistic s SET {NO_FREQUENT}, stadistinct = coalesce((
        SELECT split_part(option, '=', 2)::float4 FROM unnest(a.attoptions) option WHERE option LIKE 'n_distinct=%'
    ), $1::float4)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE s.starelid = a.attrelid AND s.staattnum = a.attnum AND a.attname = 'workspace_id'
      AND c.relnamespace = 'public'::regnamespace"""
OTHERS = f"""UPDATE pg_statistic s SET {NO_FREQUENT}, stadistinct = -0.3
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE s.starelid = a.attrelid AND s.staattnum = a.attnum AND c.relnamespace = 'public'::regnamespace
      AND (a.attname ~ '_id$' OR a.attname IN ('hash', 'dedup_key')) AND a.attname <> 'workspace_id'"""
WHOLE = re.compile(r"Index Cond: \(workspace_id = (?:\$\d+|\w+\.workspace_id|\(current_setting\([^)]*\)\)::uuid)\)$")

KEPT = "SELECT statement, parameter_types::text[] AS types FROM pg_prepared_statements WHERE generic_plans > 0"


async def _kept(database: Database) -> dict[str, list[str]]:
    """Statements that some connection of the pool keeps a plan of, with the types of their parameters."""
    found: dict[str, list[str]] = {}
    async with AsyncExitStack() as stack:
        for _ in range(10):
            connection = await stack.enter_async_context(pooled(database))
            raw = (await connection.get_raw_connection()).driver_connection
            assert raw is not None
            found |= {row["statement"]: row["types"] for row in await raw.fetch(KEPT)}
    return {statement: types for statement, types in found.items() if not statement.lower().startswith("show")}


async def _whole(connection: asyncpg.Connection[Any], statement: str, types: list[str]) -> list[str]:
    """The lines of its plan that read a whole workspace, or table, each with the one before."""
    declared, given = (f"({', '.join(each)})" if each else "" for each in (types, ["NULL"] * len(types)))
    await connection.execute(f"PREPARE kept{declared} AS {statement}")
    plan = [row[0].strip() for row in await connection.fetch(f"EXPLAIN EXECUTE kept{given}")]
    await connection.execute("DEALLOCATE kept")
    return [
        f"{before} | {line}"
        for before, line in zip(["", *plan], plan, strict=False)
        if (WHOLE.match(line) and "pk_workspace" not in before) or "Seq Scan on" in line
    ]


@pytest.fixture
async def apart(owner_url: str) -> AsyncIterator[Database]:
    """Connections that keep the plans of this test alone."""
    async with open_as(owner_url, APP) as found:
        yield found


async def test_every_table_says_how_many_workspaces_there_are(tables: Tables) -> None:
    told = await tables.fetch("""
        SELECT c.relname, a.attoptions FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attname = 'workspace_id'""")
    assert len(told) > 40
    assert {row[0] for row in told if row[1] != ["n_distinct=10"]} == set()


async def test_no_kept_plan_reads_a_whole_workspace(
    resources: Resources, apart: Database, tenant: Tenant, tables: Tables, owner_url: str
) -> None:
    async with with_scripted_model(replace(resources, db=apart), tenant, MIND) as scripted:

        async def send(method: str, path: str, body: dict[str, Any]) -> Any:
            answer = await scripted.client.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json()

        body = {"name": "Acme", "type": "organization", "aliases": ["Acme Ltd"], "user_id": "ann"}
        acme = await send("PUT", "/v1/entities", body)
        eva = await send("PUT", "/v1/entities", {"name": "Eva Lund", "type": "person", "user_id": "ann"})
        relation = {"source_id": eva["id"], "target_id": acme["id"], "type": "works_at"}
        await send("POST", "/v1/entities/relations", relation)  # an empty table has no statistics to scale
        for year in (2023, 2024, 2025):
            told = {"content": f"Eva Lund moved to Porto in May {year} and works at Acme", "user_id": "ann"}
            await send("POST", "/v1/memories", told)
        await send("POST", "/v1/memories", {**told, "agent_id": "a", "run_id": "r", "channel": "x"})
        for text, more in (("I like blue", {}), ("both of them", {}), ("Hi, it is Eva", {"infer": False})):
            turn = {"messages": [{"role": "user", "content": text}], "user_id": "ann", "run_id": "talk", **more}
            added = await send("POST", "/v1/memories", turn)
        await send(
            "POST", "/v1/memories/batch", {"items": [{"content": f"Item {n}", "user_id": "ann"} for n in (1, 2)]}
        )
        await send("PATCH", f"/v1/memories/{added['results'][0]['id']}", {"content": "Hi, it is Eva Lund"})
        for _ in range(2):
            await work(replace(resources, db=apart), tables, tenant.workspace_id, "enrich")
    statements = await _kept(apart)
    assert len(statements) > 30
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    await connection.execute("ANALYZE")
    found: dict[str, list[str]] = {}
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(SIZES, ROWS)
    await connection.execute(TENANTS, WORKSPACES)
    await connection.execute(OTHERS)
    await connection.execute(
        f"SET LOCAL ROLE {APP}; SET LOCAL loxodon.workspace = '{tenant.workspace_id}'; {opening.ON_ONE_SERVER.generic}"
    )
    for statement, types in statements.items():
        if whole := await _whole(connection, statement, types):
            found[" ".join(statement.split())[:200]] = whole
    await transaction.rollback()
    await connection.close()
    assert not found
