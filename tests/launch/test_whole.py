"""The real service starts, answers the printed commands, survives kill -9 of each part, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench.footprint import family, pss_mb
from service.launch import cluster
from service.postgres.roles import API_LOGIN, APP, JOBS_LOGIN, MIGRATE_LOGIN, WALLED, WORKER
from tests.launch import mcp_agent
from tests.launch.conftest import until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)
MOST_MB = 560.0
"""Of all processes right after the start: less than the 440 to 480 that were measured with ten warm connections
(docs/decisions/056-memory-at-rest.md)."""

PATIENCE_S = 120.0  # for machines that do ten other things


class Whole:
    """`python -m service run` on a folder of its own."""

    def __init__(self, data_dir: Path, port: int) -> None:
        self.data_dir = data_dir
        self.port = port
        kept = {name: value for name, value in os.environ.items() if not name.endswith("DATABASE_URL")}
        self.temporary = data_dir.with_name("t")
        self.temporary.mkdir()
        env = kept | {"LOXODON_DATA_DIR": str(data_dir), "LOXODON_PORT": str(port), "TMPDIR": str(self.temporary)}
        command = [sys.executable, "-m", "service", "run"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)

    def until_ready(self) -> str:
        assert self.process.stdout is not None
        printed = ""
        while "Ctrl-C stops it" not in printed:
            line = self.process.stdout.readline()
            assert line, printed
            printed += line
        return printed

    def child(self, word: str) -> int:
        """Returns the pid of the supervisor's child with an argument that ends so, 0 when there is none."""
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == self.process.pid and any(
                    each.endswith(word) for each in (entry / "cmdline").read_text().split("\0")
                ):
                    return int(entry.name)
            except OSError:
                continue
        return 0

    def paste(self, line: str) -> tuple[int, dict[str, object]]:
        """Returns status and answer of what the curl line would do."""
        words = shlex.split(line)
        headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("POST", re.sub("^http://[^/]+", "", words[2]), words[words.index("-d") + 1], headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def finds(self, line: str) -> bool:
        try:
            status, answer = self.paste(line)
        except (OSError, http.client.HTTPException):
            return False
        return status == 200 and bool(answer["results"])


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Whole]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    started = Whole(tmp_path / "a folder", port)
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_whole_service(whole: Whole) -> None:
    remember, find = [line for line in whole.until_ready().splitlines() if line.startswith("curl ")]
    assert whole.paste(remember)[0] == 201
    assert whole.finds(find)
    _check_logins(whole)
    assert pss_mb(family(whole.process.pid)) < MOST_MB
    asyncio.run(mcp_agent.remember(whole.data_dir, whole.port))
    for word in ("bin/postgres", "worker", "api"):
        old = whole.child(word)
        os.kill(old, signal.SIGKILL)
        until(lambda word=word, old=old: whole.child(word) not in (0, old), PATIENCE_S)  # type: ignore[misc]
        until(lambda: whole.finds(find), PATIENCE_S)
    asyncio.run(mcp_agent.recall_correct_and_forget(whole.data_dir, whole.port))
    whole.process.send_signal(signal.SIGTERM)
    assert whole.process.wait(PATIENCE_S) == 0
    assert list(whole.temporary.iterdir()) == []
    assert not (whole.data_dir / "tmp").exists()
    assert cluster.members(whole.data_dir / "postgres") == []
    assert cluster.read_pid(whole.data_dir / "postgres") is None, "Postgres was shut down cleanly"
    asyncio.run(mcp_agent.is_told_where_nothing_runs(whole.data_dir, whole.port))


def _environment(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)


async def _reached(url: str) -> set[str]:
    """The roles that the login of the URL may become; after each, SET ROLE NONE leads back to the login."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    login, found = await connection.fetchval("SELECT session_user"), set()
    for (role,) in await connection.fetch("SELECT rolname FROM pg_roles"):
        with contextlib.suppress(asyncpg.InsufficientPrivilegeError):
            await connection.execute(f'SET ROLE "{role}"')
            found.add(role)
        await connection.execute("SET ROLE NONE")
        assert await connection.fetchval("SELECT current_user") == login
    await connection.execute("BEGIN; SET LOCAL loxodon.workspace = '00000000-0000-0000-0000-000000000000'")
    assert await connection.fetchval("SELECT count(*) FROM memory") == 0
    await connection.close()
    return found


def _check_logins(whole: Whole) -> None:
    """API and worker know one login each, and come from it nowhere; the superuser is refused."""
    for word, variable, login, role in (
        ("api", "DATABASE_URL", API_LOGIN, APP),
        ("worker", "LOXODON_WORKER_DATABASE_URL", JOBS_LOGIN, WORKER),
    ):
        env = _environment(whole.child(word))
        assert f"//{login}:" in env[variable]
        assert asyncio.run(_reached(env[variable])) == {login, role, APP, WALLED}
        assert MIGRATE_LOGIN not in str(env)
        assert word == "worker" or JOBS_LOGIN not in str(env)
    superuser = re.sub("//[^@]+@", "//postgres@", env["DATABASE_URL"]).replace("+asyncpg", "")
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="rejects connection"):
        asyncio.run(asyncpg.connect(superuser))


def test_a_database_that_is_away_is_named_without_its_password(tmp_path: Path) -> None:
    url = "postgresql+asyncpg://me:hush@127.0.0.1:1/there"
    env = os.environ | {"DATABASE_URL": url, "LOXODON_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "service", "migrate"]
    done = subprocess.run(command, check=False, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Cannot use the database postgresql://me:***@127.0.0.1:1/there" in done.stderr
    assert "hush" not in done.stderr
    assert "Traceback" not in done.stderr
