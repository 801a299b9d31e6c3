"""TLS to Postgres: what a URL and the settings ask for is what happens, or the start ends with one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from sqlalchemy import make_url, text

from bench.superuser import login_url
from service.domain.errors import StoreUnavailable
from service.kit import postgres_url
from service.kit.settings import Settings, SettingsError
from service.postgres.engine import Access, Database
from service.postgres.rights import find_access
from service.postgres.roles import APP
from service.queue.wakeup import Wakeup
from tests.fakes.tls_postgres import Authority, TlsPostgres, tls_postgres

AWAY = "postgresql://me:secret@db.example/memories"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("tls"), "theirs")


@pytest.fixture(scope="session")
def app_url(owner_url: str) -> str:
    return login_url(owner_url, APP)


@pytest.fixture
async def server(app_url: str, authority: Authority) -> AsyncIterator[TlsPostgres]:
    async with tls_postgres(app_url, authority.sign("127.0.0.1")) as found:
        yield found


def asked(server: TlsPostgres, query: str = "", **settings: str) -> str:
    """The URL as settings make it."""
    env = {"DATABASE_URL": postgres_url.libpq(server.url) + query, **settings}
    url = Settings.from_env(env).database.url
    assert url is not None
    return url.get_secret_value()


async def read(url: str) -> None:
    """As the service connects: the look at its login, and then the pool."""
    access: Access = await find_access(url, wanted_role=APP, pooled=False)
    database = Database(access, pool_size=1, pool_timeout_s=5)
    try:
        async with database.read() as session:
            assert await session.scalar(text("SELECT 1")) == 1
    finally:
        await database.close()


@pytest.mark.parametrize("mode", ["verify-full", "verify-ca"])
async def test_the_right_authority_connects(server: TlsPostgres, authority: Authority, mode: str) -> None:
    await read(asked(server, f"?sslmode={mode}&sslrootcert={authority.certificate}"))
    assert (server.encrypted, server.plain) == (2, 0)


async def test_the_file_can_be_a_setting(server: TlsPostgres, authority: Authority) -> None:
    await read(asked(server, "?sslmode=verify-full", LOXODON_DATABASE_CA_FILE=str(authority.certificate)))
    assert (server.encrypted, server.plain) == (2, 0)


async def test_require_encrypts_without_looking(server: TlsPostgres) -> None:
    await read(asked(server, "?sslmode=require"))
    assert (server.encrypted, server.plain) == (2, 0)


async def test_a_listener_is_encrypted_too(server: TlsPostgres, authority: Authority) -> None:
    wakeup = Wakeup(asked(server, f"?sslmode=verify-full&sslrootcert={authority.certificate}"))
    listening = asyncio.create_task(wakeup.listen())
    try:
        await asyncio.wait_for(wakeup.arrived.wait(), 20)
        assert server.encrypted >= 1
        assert server.plain == 0
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await wakeup.close()


async def test_another_authority_is_refused(server: TlsPostgres, other_authority: Authority) -> None:
    url = asked(server, f"?sslmode=verify-full&sslrootcert={other_authority.certificate}")
    with pytest.raises(StoreUnavailable) as refused:
        await read(url)
    assert "unable to get local issuer certificate. See DATABASE_URL, " in refused.value.detail
    assert "\n" not in refused.value.detail


async def test_another_host_name_is_refused(server: TlsPostgres, authority: Authority) -> None:
    elsewhere = make_url(server.url).set(host="127.0.0.2").render_as_string(hide_password=False)
    moved = TlsPostgres(elsewhere, server.upstream, None)
    query = f"?sslmode=verify-full&sslrootcert={authority.certificate}"
    with pytest.raises(StoreUnavailable) as refused:
        await read(asked(moved, query))
    assert "IP address mismatch, certificate is not valid for '127.0.0.2'" in refused.value.detail
    await read(asked(moved, query.replace("verify-full", "verify-ca")))  # which does not look at the name


async def test_a_server_without_tls_is_refused(app_url: str) -> None:
    async with tls_postgres(app_url, None) as server:
        with pytest.raises(StoreUnavailable, match="rejected SSL upgrade"):
            await read(asked(server, "?sslmode=require"))
        assert server.plain == 0
        await read(asked(server))
        assert server.plain == 2


@pytest.mark.parametrize(
    ("url", "settings", "says"),
    [
        (f"{AWAY}?sslmode=verify-full", {}, "needs the file of a certificate authority"),
        (
            f"{AWAY}?sslmode=verify-full&sslrootcert=/nowhere.pem",
            {},
            "/nowhere.pem as sslrootcert, which does not exist",
        ),
        (AWAY, {"LOXODON_DATABASE_TLS": "verify-full"}, "needs the file of a certificate authority"),
        (f"{AWAY}?sslmode=prefer", {"LOXODON_DATABASE_TLS": "require"}, "asks for require"),
        (f"{AWAY}?sslmode=require", {"LOXODON_DATABASE_TLS": "verify-full"}, "asks for verify-full"),
        (f"{AWAY}?sslmode=always", {}, "an sslmode that is not one of"),
        (f"{AWAY}?channel_binding=require", {}, "the parameter channel_binding"),
    ],
)
def test_what_cannot_be_had_ends_the_start(url: str, settings: dict[str, str], says: str) -> None:
    with pytest.raises(SettingsError, match="LOXODON_DATABASE_URL") as refused:
        Settings.from_env({"DATABASE_URL": url, **settings})
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_demand_counts_for_every_url_to_another_machine() -> None:
    for name in ("DATABASE_URL", "LOXODON_OWNER_DATABASE_URL", "LOXODON_LISTEN_DATABASE_URL"):
        found = Settings.from_env({name: AWAY, "LOXODON_DATABASE_TLS": "require"})
        urls = (found.database.url, found.database.owner_url, found.database.listen_url)
        assert [each.get_secret_value().endswith("?ssl=require") for each in urls if each] == [True]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@localhost/memories",
        "postgresql://me@127.0.0.1:6000/memories",
        "postgresql://me@/memories?host=%2Frun%2Fpostgres&port=5432",
    ],
)
def test_on_this_machine_nothing_is_demanded(url: str) -> None:
    found = Settings.from_env({"DATABASE_URL": url, "LOXODON_DATABASE_TLS": "require"}).database.url
    assert found is not None
    assert "ssl" not in found.get_secret_value()


def test_a_url_is_read_again_as_it_was(tmp_path: Path) -> None:
    """Settings of a workspace are made of the service's."""
    ca = tmp_path / "ca.pem"
    ca.touch()
    once = postgres_url.normal(f"{AWAY}?sslmode=verify-full&sslrootcert={ca}")
    assert postgres_url.normal(once) == once
    assert unquote(postgres_url.libpq(once)) == f"{AWAY}?sslmode=verify-full&sslrootcert={ca}"
