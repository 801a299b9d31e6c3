"""Fixtures for embedded servers in folders of their own, without fsync, because nothing outlives the test."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.launch.postgres import EmbeddedPostgres, Server
from service.launch.programs import call, find_binaries
from service.postgres.roles import MIGRATE_LOGIN

ROOT = Path(__file__).parents[2]
UNSAFE = {"fsync": "off", "shared_buffers": "16MB"}
RunSql = Callable[[Server, str], str]


def until(condition: Callable[[], bool], timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data with a space"


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster that was started and stopped once; copying it is faster than initdb."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("made"), settings=UNSAFE)
    server.start()
    server.stop()
    return server.cluster


@pytest.fixture
def postgres(data_dir: Path, made_cluster: Path) -> Iterator[EmbeddedPostgres]:
    """A server that can be started on a copy of the made cluster."""
    shutil.copytree(made_cluster, data_dir / "postgres")
    server = EmbeddedPostgres(data_dir, settings=UNSAFE)
    yield server
    server.stop()


@pytest.fixture
def run_sql() -> RunSql:
    """Returns what a statement answers, as the login that migrates."""
    binaries = find_binaries()

    def run(server: Server, statement: str) -> str:
        url = server.url(MIGRATE_LOGIN).replace("+asyncpg", "")
        done = call([str(binaries / "psql"), "-XAtqw", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python programs from source text; what is left of them is killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def run(source: str, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [*prefix, sys.executable, "-c", source, *arguments]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="loxodon-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
