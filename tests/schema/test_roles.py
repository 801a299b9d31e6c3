"""The service refuses to serve as a role that row-level security does not hold back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import text

from service.db.engine import Access, Database, check_role, find_access
from service.db.roles import APP, OWNER, WORKER
from service.errors import StoreUnavailable
from service.resources import open_resources
from service.settings import Settings

LOGINS = {
    "t_plain": ("", f"GRANT {APP} TO t_plain"),
    "t_bypass": ("BYPASSRLS", f"GRANT {APP} TO t_bypass"),
    "t_super": ("SUPERUSER", "SELECT 1"),
    "t_owner": ("", f"GRANT {OWNER} TO t_owner"),
    "t_table_owner": (
        "",
        f"GRANT {APP} TO t_table_owner; CREATE TABLE t_mine (); ALTER TABLE t_mine OWNER TO t_table_owner",
    ),
}


@pytest.fixture(scope="module")
async def logins(superuser: asyncpg.Connection[Any]) -> AsyncIterator[None]:
    for name, (attributes, more) in LOGINS.items():
        await superuser.execute(f"CREATE ROLE {name} LOGIN {attributes}; {more}")
    yield
    await superuser.execute("DROP TABLE t_mine")
    for name in LOGINS:
        await superuser.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def url_of(owner_url: str, login: str) -> str:
    return owner_url.replace("//postgres@", f"//{login}@")


@pytest.mark.parametrize(
    ("login", "why"),
    [
        ("postgres", "is a superuser"),
        ("t_super", "is a superuser"),
        ("t_bypass", "bypasses row-level security"),
        ("t_owner", "inherits the owner role"),
        ("t_table_owner", "owns tables"),
    ],
)
@pytest.mark.parametrize("role", [APP, WORKER])
async def test_refuses_to_start_as(owner_url: str, logins: None, login: str, why: str, role: str) -> None:
    """With a URL of its own for the owner, DATABASE_URL is taken as it is: it must be harmless."""
    settings = Settings.model_validate({"database_url": url_of(owner_url, login), "owner_database_url": owner_url})
    with pytest.raises(StoreUnavailable, match=why) as caught:
        async with open_resources(settings, role=role):
            pass
    assert "postgresql" not in caught.value.detail


@pytest.mark.parametrize("role", [APP, WORKER])
async def test_an_owner_that_may_not_take_the_role_is_an_error(owner_url: str, logins: None, role: str) -> None:
    settings = Settings.model_validate({"database_url": url_of(owner_url, "t_owner")})
    with pytest.raises(StoreUnavailable, match=role):
        async with open_resources(settings, role=role):
            pass


@pytest.mark.parametrize("role", [APP, WORKER])
async def test_with_one_url_the_process_takes_the_role(owner_url: str, logins: None, role: str) -> None:
    access = await find_access(owner_url, wanted_role=role, own_login=False, pooled=False)
    database = Database.open(access, pool_size=1, pool_timeout_s=5)
    await check_role(database)
    async with database.engine.connect() as connection:
        assert await connection.scalar(text("SELECT current_user")) == role
        await connection.execute(text("RESET ROLE"))
        assert await connection.scalar(text("SELECT current_user")) == role, "RESET ROLE must lead back to it"
    await database.close()


async def test_a_plain_member_of_the_app_serves(owner_url: str, logins: None) -> None:
    url = url_of(owner_url, "t_plain")
    access = await find_access(url, wanted_role=APP, own_login=True, pooled=False)
    assert access == Access(url, None, False)
    database = Database.open(access, pool_size=1, pool_timeout_s=5)
    await check_role(database)
    async with database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM memory")) == 0
    await database.close()


async def test_behind_a_pooler_a_process_cannot_take_a_role(owner_url: str, logins: None) -> None:
    with pytest.raises(StoreUnavailable, match="is a superuser"):
        await find_access(owner_url, wanted_role=APP, own_login=False, pooled=True)


async def test_the_role_is_checked_again_on_the_pool(owner_url: str, logins: None) -> None:
    database = Database.open(Access(url_of(owner_url, "t_bypass"), None), pool_size=1, pool_timeout_s=5)
    with pytest.raises(StoreUnavailable, match="bypasses"):
        await check_role(database)
    await database.close()


async def test_the_worker_sees_other_workspaces_only_in_the_queue(worker_database: Database) -> None:
    """Outside job, job_run and schedule it is the app: the nil workspace shows it nobody's rows."""
    async with worker_database.read() as session:
        for table in ("memory", "memory_vector", "api_key", "workspace", "turn", "idempotency", "operation"):
            assert await session.scalar(text(f"SELECT count(*) FROM {table}")) == 0, table
