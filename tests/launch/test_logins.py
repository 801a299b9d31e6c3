"""The logins of the embedded cluster: made once, also in one that had none, with the superuser refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench.superuser import SUPERUSER, TRUST
from service.launch import cluster
from service.launch.postgres import EmbeddedPostgres, Server
from service.postgres.roles import LOGINS, MIGRATE_LOGIN

RunSql = Callable[[Server, str], str]


async def _connect(url: str) -> str:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    found = str(await connection.fetchval("SELECT session_user"))
    await connection.close()
    return found


def test_each_login_has_a_password_and_the_superuser_is_refused(postgres: EmbeddedPostgres) -> None:
    server = postgres.start()
    assert (postgres.cluster / cluster.PASSWORDS).stat().st_mode & 0o777 == 0o600
    assert set(server.passwords) == {*LOGINS.values(), cluster.BACKUP_LOGIN}
    for login in LOGINS.values():
        assert asyncio.run(_connect(server.url(login))) == login
        with pytest.raises(asyncpg.InvalidPasswordError):
            asyncio.run(_connect(server.url(login).replace(server.passwords[login], "guess")))
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="rejects connection"):
        asyncio.run(_connect(server.url(SUPERUSER)))
    assert not [word for word in server.passwords.values() if word in repr(server)]


def test_the_passwords_are_the_same_at_every_start(postgres: EmbeddedPostgres) -> None:
    first = postgres.start().passwords
    postgres.stop()
    assert postgres.start().passwords == first


def test_a_cluster_of_an_earlier_version_gets_its_logins(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    """It had the roles, and let the superuser in over the socket."""
    run_sql(postgres.start(), "CREATE TABLE kept AS SELECT 7 AS seven")
    postgres.stop()
    (postgres.cluster / cluster.PASSWORDS).unlink()
    (postgres.cluster / "pg_hba.conf").write_text(TRUST)
    server = postgres.start()
    assert run_sql(server, "SELECT seven FROM kept") == "7"
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="rejects connection"):
        asyncio.run(_connect(server.url(SUPERUSER)))


def test_changed_statements_are_run_again(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    run_sql(postgres.start(), "SELECT 1")
    postgres.stop()
    path = postgres.cluster / cluster.PASSWORDS
    path.write_text(json.dumps(json.loads(path.read_text()) | {cluster.FINGERPRINT: "of another version"}))
    server = postgres.start()
    assert asyncio.run(_connect(server.url(MIGRATE_LOGIN))) == MIGRATE_LOGIN
    assert cluster.FINGERPRINT not in server.passwords
