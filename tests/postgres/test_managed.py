"""A server of one's own, where an administrator who is no superuser runs what bootstrap-sql prints."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from typer.testing import CliRunner

from bench.superuser import SUPERUSER, trusting
from service.command.cli import app
from service.domain.errors import StoreUnavailable
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.launch.programs import call, find_binaries
from service.postgres import migrate, roles
from service.postgres.engine import Access, Database
from service.postgres.rights import find_access
from service.postgres.roles import APP, LOGINS, MIGRATE_LOGIN, SESSION_SETTINGS, URL_VARIABLES, WORKER, bootstrap_sql

CLEAN = """
DROP DATABASE loxodon;
DROP ROLE loxodon_migrate, loxodon_api, loxodon_jobs;
DROP ROLE loxodon_worker; DROP ROLE loxodon_owner; DROP ROLE loxodon_app; DROP ROLE loxodon_walled;
CREATE ROLE administrator LOGIN CREATEROLE;
CREATE DATABASE memories OWNER administrator
"""
LACKS = {
    "GRANT loxodon_owner TO loxodon_migrate;": "REVOKE loxodon_owner FROM loxodon_migrate GRANTED BY administrator",
    "GRANT loxodon_app TO loxodon_worker;": "REVOKE loxodon_app FROM loxodon_worker GRANTED BY administrator",
    "GRANT USAGE, CREATE ON SCHEMA public TO loxodon_owner;": "REVOKE CREATE ON SCHEMA public FROM loxodon_owner",
    "GRANT loxodon_walled TO loxodon_app WITH INHERIT FALSE, SET TRUE;": "REVOKE loxodon_walled FROM loxodon_app "
    "GRANTED BY administrator",
    "GRANT USAGE ON SCHEMA public TO loxodon_walled;": "REVOKE USAGE ON SCHEMA public FROM PUBLIC, loxodon_walled",
    "GRANT USAGE ON SCHEMA public TO loxodon_app;": "REVOKE USAGE ON SCHEMA public FROM PUBLIC, loxodon_app",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC;": "GRANT CREATE ON SCHEMA public TO PUBLIC",
    "CREATE EXTENSION vector SCHEMA public;": "DROP EXTENSION vector",
    "ALTER EXTENSION vector SET SCHEMA public;": "CREATE SCHEMA elsewhere; ALTER EXTENSION vector SET SCHEMA elsewhere",
    "GRANT CONNECT ON DATABASE memories TO loxodon_migrate;": "REVOKE CONNECT ON DATABASE memories "
    "FROM PUBLIC, loxodon_migrate",
}
"""The statement that an error names, and one that makes the error."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The superuser's URL of a server that has never seen the service, with an administrator who owns a database."""
    with tempfile.TemporaryDirectory(prefix="loxodon-tests-") as folder:
        fast = {"fsync": "off", "synchronous_commit": "off", "shared_buffers": "16MB"}
        server = EmbeddedPostgres(Path(folder), settings=fast | trusting(Path(folder)))
        try:
            clean = server.start().url(SUPERUSER)
            for statement in CLEAN.split(";"):
                psql(clean.replace("/loxodon?", "/postgres?"), statement)
            memories = clean.replace("/loxodon?", "/memories?")
            psql(memories, "CREATE EXTENSION vector")  # as providers do it where it is not a trusted one
            psql(as_login(memories, "administrator"), bootstrap_sql())
            yield memories
        finally:
            server.stop()


def psql(url: str, statements: str) -> str:
    command = [str(find_binaries() / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url.replace("+asyncpg", "")]
    done = call([*command, "-f", "-"], given=statements)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def as_login(url: str, login: str) -> str:
    return url.replace(f"//{SUPERUSER}@", f"//{login}@")


@pytest.mark.parametrize("cure", LACKS)
async def test_a_missing_right_is_one_sentence_with_the_statement_that_grants_it(
    url: str, settings: Settings, cure: str
) -> None:
    psql(url, LACKS[cure])
    try:
        with pytest.raises(StoreUnavailable) as caught:
            await migrate.upgrade_async(as_login(url, MIGRATE_LOGIN), settings)
        assert cure in caught.value.detail
        assert "\n" not in caught.value.detail
    finally:
        psql(url, cure)
    psql(as_login(url, "administrator"), bootstrap_sql())


async def test_the_printed_statements_are_enough_and_can_be_run_again(url: str, settings: Settings) -> None:
    psql(as_login(url, "administrator"), bootstrap_sql())
    for _ in range(2):
        await migrate.upgrade_async(as_login(url, MIGRATE_LOGIN), settings)
    for role in (APP, WORKER):
        access = await find_access(as_login(url, LOGINS[role]), wanted_role=role, pooled=False)
        database = Database(access, pool_size=1, pool_timeout_s=5)
        async with database.read() as session:
            assert await session.scalar(text("SELECT current_user")) == LOGINS[role]
            assert await session.scalar(text("SELECT count(*) FROM memory")) == 0
        await database.close()


def test_the_command_gives_passwords_and_prints_the_urls(url: str) -> None:
    command = [sys.executable, "-m", "service", "bootstrap-sql", "--passwords", "db.example/memories"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    psql(as_login(url, "administrator"), done.stdout)
    urls = dict(line.split("=", 1) for line in done.stderr.splitlines())
    assert set(urls) == set(URL_VARIABLES.values())
    for role, login in LOGINS.items():
        assert f"//{login}:" in urls[URL_VARIABLES[role]]
        assert urls[URL_VARIABLES[role]].endswith("@db.example/memories")
        stored = psql(url, f"SELECT rolpassword FROM pg_authid WHERE rolname = '{login}'")
        assert is_of(str(make_url(urls[URL_VARIABLES[role]]).password), stored)


@pytest.mark.parametrize("word", ["foo", "db.example/", "postgresql://db.example/memories", "me@db.example/memories"])
def test_a_place_that_is_none_is_refused_before_anything_is_printed(word: str) -> None:
    ended = CliRunner().invoke(app, ["bootstrap-sql", "--passwords", word])
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "HOST/DATABASE" in ended.stderr


@pytest.mark.parametrize("place", ["[::1]:5432/memories?sslmode=require", "/memories?host=/run/postgresql"])
def test_a_place_may_be_whatever_a_url_names(place: str) -> None:
    ended = CliRunner().invoke(app, ["bootstrap-sql", "--passwords", place])
    assert [line.partition("@")[2] for line in ended.stderr.splitlines()] == [place] * len(LOGINS)


def test_the_containers_script_gives_passwords(url: str) -> None:
    """The image of the database runs it with psql on its path, and the secrets in its environment."""
    given = {f"LOXODON_{name}_PASSWORD": f"hush '{name}" for name in ("API", "JOBS", "MIGRATE")}
    parts = make_url(url)
    where = {"PGHOST": str(parts.query["host"]), "PGPORT": str(parts.query["port"]), "POSTGRES_DB": "memories"}
    path = {"PATH": f"{find_binaries()}:{os.environ['PATH']}"}
    script = roles.BOOTSTRAP.parents[2] / "launch" / "compose_passwords.sh"
    subprocess.run(["sh", str(script)], check=True, env=given | where | path, capture_output=True)
    for name in ("API", "JOBS", "MIGRATE"):
        stored = psql(url, f"SELECT rolpassword FROM pg_authid WHERE rolname = 'loxodon_{name.lower()}'")
        assert is_of(f"hush '{name}", stored)


def is_of(password: str, stored: str) -> bool:
    """Whether a SCRAM verifier is that of the password."""
    rounds, salt, stored_key = re.findall(r"SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):", stored)[0]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(rounds))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest() == base64.b64decode(stored_key)


@pytest.mark.parametrize("role", [APP, WORKER])
async def test_the_logins_have_the_settings_of_every_session(url: str, role: str) -> None:
    """Behind a pooler nothing can be set when a connection starts."""
    database = Database(Access(as_login(url, LOGINS[role]), pooled=True), pool_size=1, pool_timeout_s=5)
    async with database.read() as session:
        found = {name: await session.scalar(text("SELECT current_setting(:name)"), {"name": name}) for name in SETTINGS}
    await database.close()
    assert found == SETTINGS


SETTINGS = {**SESSION_SETTINGS, "idle_in_transaction_session_timeout": "1min"}
"""As Postgres writes them."""
