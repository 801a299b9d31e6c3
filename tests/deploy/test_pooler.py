"""The service behind a real PgBouncer, where one is installed, with the parameters of the Kubernetes component."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import pytest
import yaml  # type: ignore[import-untyped]
from sqlalchemy import text

from bench.rolling import free_port
from service.launch import accounts
from service.postgres import readiness
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import API_LOGIN, APP
from tests.deploy.kubernetes import MANIFESTS

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
SERVERS = 2
"""Connections to Postgres, far fewer than the service opens: so each is used by many in turn."""


@pytest.fixture
def pooled_url(owner_url: str, tmp_path: Path) -> Iterator[str]:
    assert PGBOUNCER is not None
    sockets = re.search(r"host=([^&]+)", owner_url)
    assert sockets is not None
    pooler = yaml.safe_load((MANIFESTS / "components" / "pooler" / "pooler.yaml").read_text())["spec"]["pgbouncer"]
    port = free_port()
    parameters = pooler["parameters"] | {
        "default_pool_size": SERVERS,
        "pool_mode": pooler["poolMode"],
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": tmp_path / "users",
    }
    (tmp_path / "users").write_text(f'"{API_LOGIN}" ""\n')
    lines = ["[databases]", f"loxodon = host={unquote(sockets[1])} port=5432", "[pgbouncer]"]
    (tmp_path / "pgbouncer.ini").write_text(
        "\n".join([*lines, *(f"{name} = {value}" for name, value in parameters.items())])
    )
    account = accounts.choose(tmp_path / "none")  # PgBouncer does not run as root
    command = (*account.prefix, PGBOUNCER, "-q", str(tmp_path / "pgbouncer.ini"))
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while not listens(port):
            assert process.poll() is None
            assert time.monotonic() < until, "PgBouncer does not listen"
            time.sleep(0.05)
        yield f"postgresql+asyncpg://{API_LOGIN}@127.0.0.1:{port}/loxodon"
    finally:
        process.kill()
        process.wait()


def listens(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(PGBOUNCER is None, reason="needs PgBouncer: apt-get install pgbouncer")
async def test_processes_share_connections_and_nothing_else(pooled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several start one after the other on the same connections, and none finds what another has set."""
    processes = []
    for _ in range(3):
        monkeypatch.setattr("asyncpg.connection._uid", 0)  # each process names its statements from one on
        access = await find_access(pooled_url, wanted_role=APP, pooled=True)
        processes.append(Database.open(access, pool_size=4, pool_timeout_s=30))

    async def found_own(database: Database) -> bool:
        workspace = uuid4()
        async with database.read(workspace) as session:
            found = await session.scalar(text("SELECT current_setting('loxodon.workspace')"))
            await session.execute(text("SELECT count(*) FROM memory WHERE user_id = :user"), {"user": "alice"})
        return bool(found == str(workspace))

    try:
        for each in processes:
            await readiness.check(each)
        assert all(await asyncio.gather(*(found_own(each) for each in processes * 10)))
    finally:
        for each in processes:
            await each.close()
