"""The migrations: up, down and up again. Rights and policies. The columns that the code knows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy.dialects.postgresql.base import PGDialect

from bench.superuser import login_url, own_database
from service.kit.settings import Settings
from service.postgres import migrate, tables
from service.postgres.roles import OWNER
from service.postgres.tables import TABLES
from tests.postgres.catalogue import snapshot

OBJECTS = """
    SELECT count(*) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
        AND c.relname NOT IN ('alembic_version', 'alembic_version_pkc')
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
"""
FUNCTIONS = """
    SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""


async def downgrade(owner_url: str, settings: Settings, revision: str) -> None:
    """Takes the database back to `revision` ("base" empties it); roles stay."""
    await migrate.run_as_owner(
        owner_url, lambda connection: command.downgrade(migrate.config(settings, connection), revision)
    )


@pytest.fixture(scope="module")
async def empty_url(owner_url: str) -> AsyncIterator[str]:
    """Another database of the same server, not migrated yet."""
    async with own_database(owner_url, "updown") as (url, _):
        yield url


@pytest.fixture(scope="module")
async def migrated(empty_url: str, settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    """That database after up, down and up; what was left after the way down is checked on the way."""
    connection = await asyncpg.connect(empty_url.replace("+asyncpg", ""))
    await migrate.upgrade_async(login_url(empty_url, OWNER), settings)
    made = await connection.fetchval(OBJECTS)
    assert made > 50
    await downgrade(login_url(empty_url, OWNER), settings, "base")
    assert await connection.fetchval(OBJECTS) == 0, "the way down left relations behind"
    assert await connection.fetchval(FUNCTIONS) == 0, "the way down left functions behind"
    await migrate.upgrade_async(login_url(empty_url, OWNER), settings)
    assert await connection.fetchval(OBJECTS) == made
    yield connection
    await connection.close()


async def test_up_down_up(migrated: asyncpg.Connection[Any]) -> None:
    version = await migrated.fetchval("SELECT version_num FROM alembic_version")
    assert version == migrate.head()
    assert await migrated.fetchval("SELECT revision FROM schema_revision()") == int(version)
    (applied,) = await migrated.fetch("SELECT * FROM schema_version")
    assert (applied["version"], applied["description"]) == (
        int(version),
        "The whole schema, as it was at the first release",
    )
    assert applied["applied_at"] <= datetime.now(UTC)


def test_every_file_of_the_schema_runs() -> None:
    """All but the roles that an administrator makes and the checks of the doctor."""
    files = {*tables.SERVICE.rglob("*.sql")} - {tables.SQL / "bootstrap.sql", tables.SQL / "doctor.sql"}
    assert {*tables.FUNCTION_FILES, *tables.TABLE_FILES, *tables.RULE_FILES} == files


FUNCTION_FILES = {file.stem: file.read_text() for file in tables.FUNCTION_FILES}


@pytest.mark.parametrize("name", FUNCTION_FILES)
async def test_each_function_file_can_be_run_again(migrated: asyncpg.Connection[Any], name: str) -> None:
    """With its body checked, unlike in the baseline. A file makes the function it is named after and no other."""
    async with migrated.transaction():
        await migrated.execute("SET LOCAL ROLE loxodon_owner")
        await migrated.execute(FUNCTION_FILES[name])
    assert re.findall(r"^CREATE OR REPLACE FUNCTION (\w+)\(", FUNCTION_FILES[name], re.MULTILINE) == [name]


async def test_each_step_down_can_be_taken_up_again(
    migrated: asyncpg.Connection[Any], empty_url: str, settings: Settings
) -> None:
    before = await snapshot(migrated)
    await downgrade(login_url(empty_url, OWNER), settings, "-1")
    await migrate.upgrade_async(login_url(empty_url, OWNER), settings)
    assert await snapshot(migrated) == before


async def test_a_second_upgrade_changes_nothing(
    migrated: asyncpg.Connection[Any], empty_url: str, settings: Settings
) -> None:
    before = await snapshot(migrated)
    await migrate.upgrade_async(login_url(empty_url, OWNER), settings)
    assert await snapshot(migrated) == before


async def test_the_code_knows_every_column_and_its_type(superuser: asyncpg.Connection[Any]) -> None:
    """Partitions, generated columns and the tables of the migrations themselves are nothing that statements name."""
    rows = await superuser.fetch("""
        SELECT c.relname || '.' || a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND c.relname NOT IN ('alembic_version', 'partitioned_table')
            AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    """)
    dialect = PGDialect()  # type: ignore[no-untyped-call]
    known = {
        f"{table.name}.{column.name}": column.type.compile(dialect).lower()
        for table in TABLES.values()
        for column in table.c
    }
    assert known == {row["name"]: row["type"].replace("character varying", "varchar") for row in rows}


def test_one_head() -> None:
    script = ScriptDirectory.from_config(migrate.config())
    assert len(script.get_heads()) == 1


@pytest.mark.parametrize("file", sorted((migrate.MIGRATIONS / "versions").glob("*.py")), ids=lambda file: file.name)
def test_each_migration_limits_its_wait_for_locks(file: Path) -> None:
    """The first statement up and down is a lock_timeout: requests must not queue behind a waiting migration."""
    source = file.read_text()
    for name in ("upgrade", "downgrade"):
        body = re.search(rf"def {name}\(\) -> None:\n\s+(.+)", source)
        assert body is not None
        assert "lock_timeout" in body[1], f"{file.name}: {name}"


@pytest.mark.parametrize("dimension", [1536])
async def test_another_dimension_can_be_chosen(owner_url: str, dimension: int) -> None:
    async with own_database(owner_url, f"wide{dimension}") as (url, connection):
        wide = Settings.of({"embedding_dim": dimension, "vector_partitions": 2})
        await migrate.upgrade_async(login_url(url, OWNER), wide)
        index = await connection.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'ix_memory_vector_hnsw_1'")
        partitions = await connection.fetchval(
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'memory\\_vector\\_p_'"
        )
    assert f"halfvec({dimension})" in index
    assert partitions == 2


# -- rights and policies ---------------------------------------------------------------------------

RIGHTS = {
    "api_key": "INSERT,SELECT",
    "audit_log": "INSERT,SELECT",
    "model_day": "DELETE,INSERT,SELECT,UPDATE",
    "conversation": "DELETE,INSERT,SELECT,UPDATE",
    "conversation_log": "INSERT,SELECT",
    "decision": "DELETE,INSERT,SELECT,UPDATE",
    "embedding_cache": "DELETE,INSERT,SELECT,UPDATE",
    "embedding_generation": "SELECT",
    "erased_memory": "SELECT",
    "entity": "DELETE,INSERT,SELECT,UPDATE",
    "entity_alias": "DELETE,INSERT,SELECT,UPDATE",
    "entity_edge": "DELETE,INSERT,SELECT,UPDATE",
    "entity_edge_source": "DELETE,INSERT,SELECT,UPDATE",
    "entity_vector": "DELETE,INSERT,SELECT,UPDATE",
    "goal": "DELETE,INSERT,SELECT,UPDATE",
    "goal_edge": "DELETE,INSERT,SELECT,UPDATE",
    "goal_memory": "DELETE,INSERT,SELECT,UPDATE",
    "goal_vector": "DELETE,INSERT,SELECT,UPDATE",
    "idempotency": "DELETE,INSERT,SELECT,UPDATE",
    "job": "DELETE,INSERT,SELECT,UPDATE",
    "llm_cache": "DELETE,INSERT,SELECT,UPDATE",
    "memory": "DELETE,INSERT,SELECT,UPDATE",
    "memory_edge": "DELETE,INSERT,SELECT,UPDATE",
    "memory_entity": "DELETE,INSERT,SELECT,UPDATE",
    "memory_history": "INSERT,SELECT",
    "memory_history_seq": "USAGE",
    "memory_source": "DELETE,INSERT,SELECT,UPDATE",
    "memory_stat": "DELETE,INSERT,SELECT,UPDATE",
    "memory_vector": "DELETE,INSERT,SELECT,UPDATE",
    "operation": "DELETE,INSERT,SELECT,UPDATE",
    "review": "DELETE,INSERT,SELECT,UPDATE",
    "schedule": "SELECT",
    "strategy": "DELETE,INSERT,SELECT,UPDATE",
    "strategy_conversation": "DELETE,INSERT,SELECT,UPDATE",
    "strategy_vector": "DELETE,INSERT,SELECT,UPDATE",
    "tool_invocation": "DELETE,INSERT,SELECT",
    "tool_invocation_seq": "USAGE",
    "term_stat": "DELETE,INSERT,SELECT,UPDATE",
    "turn": "DELETE,INSERT,SELECT,UPDATE",
    "turn_vector": "DELETE,INSERT,SELECT,UPDATE",
    "user_profile": "DELETE,INSERT,SELECT,UPDATE",
    "webhook": "DELETE,INSERT,SELECT,UPDATE",
    "webhook_delivery": "DELETE,INSERT,SELECT,UPDATE",
    "withdrawn_span": "DELETE,INSERT,SELECT,UPDATE",
    "working_item": "DELETE,INSERT,SELECT,UPDATE",
    "working_item_seq": "USAGE",
    "workspace": "SELECT",
}
"""What the app may do with which table. Audit and history are append-only, but for the end of a history interval."""

KEPT_OF_KEYS = {"workspace_id", "id", "created_at"}

COLUMN_RIGHTS = {
    *(f"api_key.{column.name}" for column in TABLES["api_key"].c if column.name not in KEPT_OF_KEYS),
    "memory_history.recorded_to",
    "workspace.name",
    "workspace.settings",
}


async def test_the_apps_rights_are_exactly_these(superuser: asyncpg.Connection[Any]) -> None:
    seen = await snapshot(superuser)
    grants = {what.split()[1]: how for what, how in seen.items() if re.fullmatch(r"grant \S+ loxodon_app", what)}
    listed = {name: ",".join(sorted(rights.split(","))) for name, rights in grants.items() if "." not in name}
    assert listed == RIGHTS
    columns = {name: rights for name, rights in grants.items() if "." in name}
    assert columns == dict.fromkeys(COLUMN_RIGHTS, "UPDATE")


async def test_policies_name_the_roles_they_are_for(superuser: asyncpg.Connection[Any]) -> None:
    policies = await superuser.fetch("SELECT tablename, policyname, roles::text[] AS roles, cmd, qual FROM pg_policies")
    roles = {(policy["policyname"], *sorted(policy["roles"])) for policy in policies}
    assert roles == {
        ("tenant", "loxodon_app", "loxodon_walled"),
        ("owner", "loxodon_owner"),
        ("everyone", "loxodon_app", "loxodon_walled"),
        ("everyone", "loxodon_app"),
        ("common", "loxodon_app", "loxodon_walled"),
        ("worker", "loxodon_worker"),
        ("wall", "loxodon_walled"),
        ("wall_of_turns", "loxodon_walled"),
        *((f"shared_{change}", "loxodon_app", "loxodon_walled") for change in ("insert", "update", "delete")),
    }
    workers = {policy["tablename"] for policy in policies if policy["policyname"] == "worker"}
    assert workers == {"job", "schedule"}
    common = [(policy["tablename"], policy["cmd"]) for policy in policies if policy["policyname"] == "common"]
    assert common == [("term_stat", "SELECT")]
    everyone = {policy["tablename"] for policy in policies if policy["policyname"] == "everyone"}
    assert everyone == {"embedding_generation", "schedule"}
    assert {policy["cmd"] for policy in policies if policy["policyname"] == "everyone"} == {"SELECT"}
