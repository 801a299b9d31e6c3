"""A real PgBouncer before the tests' server, with the parameters of the Kubernetes component."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import yaml  # type: ignore[import-untyped]

from bench.target import free_port
from service.launch import programs
from service.postgres.roles import API_LOGIN

ROOT = Path(__file__).resolve().parents[2]
COMPONENT = ROOT / "deploy" / "kubernetes" / "components" / "pooler" / "pooler.yaml"
PGBOUNCER = os.environ.get("PGBOUNCER") or shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")


@contextmanager
def pooling(owner_url: str, *, servers: int) -> Iterator[str]:
    """The URL of the API's login through a PgBouncer with this many connections to the server, during the block."""
    assert PGBOUNCER is not None, "There is no PgBouncer: apt-get install pgbouncer, or name it in PGBOUNCER."
    sockets = re.search(r"host=([^&]+)", owner_url)
    assert sockets is not None
    pooler = yaml.safe_load(COMPONENT.read_text())["spec"]["pgbouncer"]
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="pooler-") as folder:
        Path(folder).chmod(0o755)
        parameters = pooler["parameters"] | {
            "default_pool_size": servers,
            "pool_mode": pooler["poolMode"],
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": Path(folder) / "users",
        }
        (Path(folder) / "users").write_text(f'"{API_LOGIN}" ""\n')
        lines = ["[databases]", f"* = host={unquote(sockets[1])} port=5432", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in parameters.items()]
        (Path(folder) / "pgbouncer.ini").write_text("\n".join(lines))
        account = programs.choose_account(Path(folder) / "none")  # PgBouncer does not run as root
        command = (*account.prefix, PGBOUNCER, "-q", str(Path(folder) / "pgbouncer.ini"))
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 30
            while not _listens(port):
                assert process.poll() is None, "PgBouncer ended"
                assert time.monotonic() < until, "PgBouncer does not listen"
                time.sleep(0.05)
            yield f"postgresql+asyncpg://{API_LOGIN}@127.0.0.1:{port}/loxodon"
        finally:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0
