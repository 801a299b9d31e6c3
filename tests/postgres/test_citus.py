"""Isolation on the nodes of a Citus cluster: what the service's logins reach there, past the coordinator."""

from __future__ import annotations

import asyncio
import os

import asyncpg  # type: ignore[import-untyped]
import httpx2
import pytest

from bench.shard_access import SHARDS, WORKERS, connected, counted, read_shards, workers
from bench.superuser import login_url
from service.kit.settings import Settings
from service.postgres import migrate
from service.postgres.roles import API_LOGIN, APP, JOBS_LOGIN, OWNER, WALLED
from tests.conftest import Tenant
from tests.support.application import Tables

pytestmark = pytest.mark.skipif("CITUS_BIN" not in os.environ, reason="needs a cluster: make test-citus CITUS_BIN=...")

PLACEMENT = """
    SELECT s.shardid, s.nodename, s.nodeport,
           (SELECT count(*) FROM pg_dist_node n WHERE n.groupid > 0 AND n.nodeid < here.nodeid) > 0 AS nth
    FROM citus_shards s JOIN pg_dist_node here ON here.nodename = s.nodename AND here.nodeport = s.nodeport
    WHERE s.shardid = get_shard_id_for_distribution_column('memory', $1::uuid)
"""


@pytest.fixture
async def stored(client: httpx2.AsyncClient) -> None:
    for user in ("alice", "bob"):
        body = {"content": f"{user} keeps bees behind the old mill", "user_id": user, "infer": False}
        assert (await client.post("/v1/memories", json=body)).status_code in (200, 201)


async def test_migrating_again_changes_nothing(owner_url: str, settings: Settings) -> None:
    await migrate.upgrade_async(login_url(owner_url, OWNER), settings)


async def test_every_shard_has_the_policies_of_its_table(tables: Tables) -> None:
    seen = 0
    for node in await workers(tables.fetch):
        async with connected("postgres", node) as connection:
            for shard in await connection.fetch(SHARDS):
                assert shard["protected"], shard["name"]
                assert shard["policies"] == shard["wanted"] >= 2, dict(shard)
                seen += 1
    assert seen > 300


async def test_partitions_that_are_made_later_belong_to_the_role_that_replication_needs(tables: Tables) -> None:
    assert await tables.value("SELECT ensure_partitions(now() + interval '40 days')") > 0
    owners = await tables.fetch(
        "SELECT DISTINCT relowner::regrole::text AS owner FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relpersistence = 'p'"
    )
    assert [row["owner"] for row in owners] == ["loxodon_tables"]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("login", [API_LOGIN, JOBS_LOGIN])
async def test_shards_show_no_row_of_another_tenant(
    login: str, tables: Tables, tenant: Tenant, stranger: Tenant
) -> None:
    reads = await read_shards(tables.fetch, login, tenant.workspace_id, stranger.workspace_id)
    assert reads.wrong == []
    assert reads.own > 5
    assert reads.refused > 900


@pytest.mark.usefixtures("stored")
async def test_shards_keep_to_a_wall(tables: Tables, tenant: Tenant) -> None:
    seen = 0
    wall = (
        f"SET LOCAL loxodon.workspace = '{tenant.workspace_id}'; SET LOCAL loxodon.wall_user_id = 'alice'; "
        f"SET LOCAL loxodon.wall_digest = 'x'; SET LOCAL ROLE {WALLED}"
    )
    for node in await workers(tables.fetch):
        async with connected("postgres", node) as superuser:
            shards = [row["name"] for row in await superuser.fetch(SHARDS) if row["name"].startswith("memory_1")]
        async with connected(API_LOGIN, node) as connection:
            for shard in shards:
                of_bob = await counted(
                    connection,
                    f"SELECT count(*) FROM {shard} WHERE user_id IS DISTINCT FROM 'alice'",
                    settings=wall,
                )
                of_alice = await counted(connection, f"SELECT count(*) FROM {shard}", settings=wall)
                assert of_bob == 0, shard
                seen += int(of_alice)
    assert seen == 1


async def test_a_wall_holds_in_a_session_that_has_served_another_workspace(
    owner_url: str, tables: Tables, tenant: Tenant, stranger: Tenant
) -> None:
    """A plan made for one workspace would find nothing in the other, and what does not exist is not outside."""
    goal = "INSERT INTO goal (workspace_id, id, user_id, description, updated_at) VALUES ($1, $1, 'bob', 'x', now())"
    for each in (tenant, stranger):
        await tables.fetch(goal, each.workspace_id)
    connection = await asyncpg.connect(login_url(owner_url, APP).replace("+asyncpg", ""))
    for each in (*[tenant] * 8, stranger):
        wall = (
            f"SET LOCAL loxodon.workspace = '{each.workspace_id}'; SET LOCAL loxodon.wall_user_id = 'alice'; "
            f"SET LOCAL loxodon.wall_digest = 'x'; SET LOCAL citus.propagate_set_commands = 'local'; "
            "SET LOCAL loxodon.on_nodes = 'on'"
        )
        async with connection.transaction():
            await connection.execute(f"SET LOCAL citus.propagate_set_commands = 'none'; {wall}")
            assert await connection.fetchval("SELECT is_outside('goal', $1)", each.workspace_id)
    await connection.close()


@pytest.mark.usefixtures("stored")
async def test_the_tables_of_a_node_show_no_row_of_another_tenant(
    tables: Tables, tenant: Tenant, stranger: Tenant
) -> None:
    """Each node knows the distributed tables and can be asked for all of their rows."""
    for node in await workers(tables.fetch):
        async with connected(API_LOGIN, node) as connection:
            for name in ("memory", "memory_vector", "memory_history", "workspace", "api_key"):
                sql = f"SELECT count(*) FROM {name} WHERE workspace_id = '{tenant.workspace_id}'"
                settings = f"SET LOCAL loxodon.workspace = '{stranger.workspace_id}'"
                assert await counted(connection, sql, settings=settings) == 0, name


@pytest.mark.usefixtures("stored")
async def test_writes_to_a_shard_stay_in_their_workspace(tables: Tables, tenant: Tenant, stranger: Tenant) -> None:
    changed = 0
    for node in await workers(tables.fetch):
        async with connected("postgres", node) as superuser:
            shards = [row["name"] for row in await superuser.fetch(SHARDS) if row["name"].startswith("memory_1")]
        async with connected(API_LOGIN, node) as connection:
            for shard in shards:
                await connection.execute(f"BEGIN; SET LOCAL loxodon.workspace = '{stranger.workspace_id}'")
                for sql in (f"UPDATE {shard} SET archived = true", f"DELETE FROM {shard}"):
                    assert (await connection.execute(sql)).endswith(" 0"), (shard, sql)
                    changed += 1
                await connection.execute("ROLLBACK")
    assert changed >= 16
    left = await tables.value("SELECT count(*) FROM memory WHERE workspace_id = $1", tenant.workspace_id)
    assert left == 2


@pytest.mark.usefixtures("stored")
async def test_a_workspace_moves_to_another_node_while_it_is_written(
    client: httpx2.AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    """Replication, as the owner of the tables, brings what is written meanwhile."""
    (placed,) = await tables.fetch(PLACEMENT, tenant.workspace_id)
    (other,) = await tables.fetch(f"{WORKERS} OFFSET $1 LIMIT 1", 0 if placed["nth"] else 1)
    move = "SELECT citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')"
    places = placed["nodename"], placed["nodeport"], other["nodename"], other["nodeport"]
    moving = asyncio.create_task(tables.fetch(move, placed["shardid"], *places))
    told = ["alice", "bob"]
    while not moving.done() or len(told) < 4:
        told.append(f"carol-{len(told)}")
        body = {"content": f"{told[-1]} keeps goats", "user_id": told[-1], "infer": False}
        assert (await client.post("/v1/memories", json=body)).status_code in (200, 201)
    await moving
    (moved,) = await tables.fetch(PLACEMENT, tenant.workspace_id)
    assert moved["nodename"] == other["nodename"]
    assert await tables.value("SELECT count(*) FROM memory WHERE workspace_id = $1", tenant.workspace_id) == len(told)
    await test_every_shard_has_the_policies_of_its_table(tables)
