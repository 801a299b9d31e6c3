"""The service refuses to serve with a login from which another tenant's rows, or their owner, could be reached."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import text

from bench.superuser import SUPERUSER, login_url
from service.domain.errors import StoreUnavailable
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import API_LOGIN, APP, JOBS_LOGIN, LOGINS, OWNER, WALLED, WORKER
from service.runtime.opening import open_resources

USUAL = "GRANT loxodon_worker TO {login}"

FORBIDDEN: dict[str, tuple[str, str]] = {
    "t_super": ("ALTER ROLE {login} SUPERUSER", "is a superuser"),
    "t_bypass": ("ALTER ROLE {login} BYPASSRLS", "bypasses row-level security"),
    "t_maker": ("ALTER ROLE {login} CREATEROLE", "may make roles"),
    "t_copier": ("ALTER ROLE {login} REPLICATION", "may copy the whole cluster"),
    "t_owner": ("GRANT loxodon_owner TO {login}", "member of loxodon_owner"),
    "t_noinherit": ("GRANT loxodon_owner TO {login} WITH INHERIT FALSE, SET TRUE", "member of loxodon_owner"),
    "t_admin": ("GRANT loxodon_owner TO {login} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE", "member of loxodon_owner"),
    "t_chain": (
        "CREATE ROLE t_between; GRANT loxodon_owner TO t_between WITH ADMIN TRUE, INHERIT FALSE, SET FALSE; "
        "GRANT t_between TO {login} WITH INHERIT FALSE, SET FALSE, ADMIN TRUE",
        "member of loxodon_owner",
    ),
    "t_login": ("GRANT loxodon_migrate TO {login}", "member of loxodon_owner"),
    "t_bypass_chain": (
        "CREATE ROLE t_sees BYPASSRLS; GRANT t_sees TO {login} WITH INHERIT FALSE",
        "t_sees, which bypass",
    ),
    "t_table": ("CREATE TABLE t_mine (); ALTER TABLE t_mine OWNER TO {login}", "owns t_mine"),
    "t_function": (
        "CREATE FUNCTION t_f() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION t_f() OWNER TO {login}",
        r"owns t_f\(\)",
    ),
    "t_creator": ("GRANT CREATE ON SCHEMA public TO {login}", "may create objects in the schema public"),
    "t_everything": ("GRANT ALL ON ALL TABLES IN SCHEMA public TO {login}", "may TRUNCATE"),
    "t_caller": ("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {login}", "may call"),
    **{
        f"t_{role}": (f"GRANT {role} TO {{login}}", f"is a member of {role}")
        for role in (
            "pg_read_all_data",
            "pg_write_all_data",
            "pg_execute_server_program",
            "pg_read_server_files",
            "pg_write_server_files",
            "pg_monitor",
        )
    },
}
"""Logins that may do all that the worker may, one statement that gives too much, and what is said of it."""


@pytest.fixture(scope="module")
async def logins(superuser: asyncpg.Connection[Any]) -> AsyncIterator[None]:
    for name, (too_much, _) in FORBIDDEN.items():
        await superuser.execute(f"CREATE ROLE {name} LOGIN; {USUAL.format(login=name)}; {too_much.format(login=name)}")
    await superuser.execute("CREATE ROLE t_bare LOGIN; CREATE ROLE t_none LOGIN")
    await superuser.execute("GRANT loxodon_worker TO t_none WITH INHERIT FALSE")
    yield
    for name in (*FORBIDDEN, "t_bare", "t_none", "t_between", "t_sees"):
        await superuser.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


def url_of(owner_url: str, login: str) -> str:
    return owner_url.replace(f"//{SUPERUSER}@", f"//{login}@")


async def refusal(url: str, role: str) -> str:
    """What is said to a process that starts with `url`."""
    settings = Settings.of({"database_url": url})
    with pytest.raises(StoreUnavailable) as caught:
        async with open_resources(settings, role=role):
            pass
    return caught.value.detail


@pytest.mark.parametrize("login", FORBIDDEN)
async def test_refuses_to_start_as(owner_url: str, logins: None, login: str) -> None:
    said = await refusal(url_of(owner_url, login), WORKER)
    assert re.search(FORBIDDEN[login][1], said), said
    assert f"LOXODON_WORKER_DATABASE_URL to the login {JOBS_LOGIN}" in said
    assert "bootstrap-sql" in said
    assert "postgresql" not in said


@pytest.mark.parametrize("role", [APP, WORKER])
async def test_refuses_the_superuser_and_the_owner(owner_url: str, role: str) -> None:
    assert "postgres is a superuser" in await refusal(owner_url, role)
    assert "member of loxodon_owner" in await refusal(login_url(owner_url, OWNER), role)


async def test_the_api_refuses_a_login_that_sees_every_workspaces_jobs(owner_url: str) -> None:
    said = await refusal(login_url(owner_url, WORKER), APP)
    assert "member of loxodon_worker, which sees the jobs of every workspace" in said
    assert f"DATABASE_URL to the login {API_LOGIN}" in said


async def test_too_much_that_was_given_to_our_own_login_is_to_be_taken_from_it(
    owner_url: str, superuser: asyncpg.Connection[Any]
) -> None:
    await superuser.execute(f"CREATE ROLE t_extra CREATEROLE; GRANT t_extra TO {API_LOGIN}")
    try:
        said = await refusal(login_url(owner_url, APP), APP)
        assert f"{API_LOGIN} is a member of t_extra, which may make roles" in said
        assert "take that from it (REVOKE)" in said
    finally:
        await superuser.execute("DROP ROLE t_extra")


@pytest.mark.parametrize("login", ["t_bare", "t_none"])
async def test_refuses_a_login_that_may_do_too_little(owner_url: str, logins: None, login: str) -> None:
    assert f"GRANT {WORKER} TO {login} WITH INHERIT TRUE;" in await refusal(url_of(owner_url, login), WORKER)


@pytest.mark.parametrize("role", [APP, WORKER])
async def test_a_role_set_when_a_connection_starts_hides_nothing(
    owner_url: str, superuser: asyncpg.Connection[Any], logins: None, role: str
) -> None:
    """SET ROLE NONE goes back to the login."""
    await superuser.execute(f"ALTER ROLE t_super SET role = {role}")
    try:
        assert "t_super is a superuser" in await refusal(url_of(owner_url, "t_super"), role)
    finally:
        await superuser.execute("ALTER ROLE t_super RESET role")


@pytest.mark.parametrize("role", [APP, WORKER])
async def test_nothing_else_can_be_reached_from_a_login_that_serves(
    owner_url: str, superuser: asyncpg.Connection[Any], role: str
) -> None:
    access = await find_access(login_url(owner_url, role), wanted_role=role, pooled=False)
    connection = await asyncpg.connect(access.url.replace("+asyncpg", ""))
    reached = set()
    for other in [row["rolname"] for row in await superuser.fetch("SELECT rolname FROM pg_roles")]:
        with suppress(asyncpg.InsufficientPrivilegeError):
            await connection.execute(f'SET ROLE "{other}"')
            reached.add(other)
    assert reached == {LOGINS[role], role, APP, WALLED}
    for statement in ("SET ROLE NONE", "RESET ROLE", "SET SESSION AUTHORIZATION DEFAULT", "RESET ALL"):
        await connection.execute(statement)
        assert await connection.fetchval("SELECT current_user") == LOGINS[role]
        await connection.execute("BEGIN; SET LOCAL loxodon.workspace = '00000000-0000-0000-0000-000000000000'")
        assert await connection.fetchval("SELECT count(*) FROM memory") == 0
        await connection.execute("COMMIT")
    await connection.close()


async def test_the_worker_sees_other_workspaces_only_in_the_queue(worker_database: Database) -> None:
    """Outside job and schedule it is the app: the nil workspace shows it nobody's rows."""
    async with worker_database.read() as session:
        for table in ("memory", "memory_vector", "api_key", "workspace", "turn", "idempotency", "operation"):
            assert await session.scalar(text(f"SELECT count(*) FROM {table}")) == 0, table
