"""The embedded server starts, belongs to one owner, and comes back after every kind of death."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from service.launch import cluster, programs
from service.launch.postgres import EmbeddedPostgres, Server
from service.launch.problems import LaunchError
from service.postgres.roles import MIGRATE_LOGIN
from tests.launch.conftest import until

RunSql = Callable[[Server, str], str]
Python = Callable[..., "subprocess.Popen[str]"]
UNSAFE = {"fsync": "off", "shared_buffers": "16MB"}
OWNER = """
import sys, time
from pathlib import Path
from service.launch import postgres
if sys.argv[2] == "unleashed":
    postgres.ended_with_parent = lambda command, on_death, **account: list(command)
server = postgres.EmbeddedPostgres(Path(sys.argv[1]), settings={"fsync": "off", "shared_buffers": "16MB"})
server.start()
print(server.pid, flush=True)
sys.stdin.readline()
server.stop()
print("stopped", flush=True)
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


async def test_first_start_makes_a_database_with_pgvector(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=UNSAFE) as server:
        await _use(server.url(MIGRATE_LOGIN))


async def _use(url: str) -> None:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        row = (
            await connection.execute(text("SELECT current_database(), '[1,2]'::vector <-> '[1,4]', lower('Ä')"))
        ).one()
    await engine.dispose()
    assert tuple(row) == ("loxodon", 2.0, "ä")
    direct = await asyncpg.connect(url.replace("+asyncpg", ""))
    assert await direct.fetchval("SHOW jit") == "off"
    await direct.close()


def test_stop_is_clean_and_a_second_start_finds_the_data(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    run_sql(postgres.start(), "CREATE TABLE kept AS SELECT 7 AS seven")
    postgres.stop()
    assert postgres.pid is None
    assert cluster.members(postgres.cluster) == []
    assert run_sql(postgres.start(), "SELECT seven FROM kept") == "7"
    postgres.stop()
    postgres.stop()


def test_only_the_socket_and_only_the_owner(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    server = postgres.start()
    assert run_sql(server, "SHOW listen_addresses") == ""
    assert server.socket_dir.stat().st_mode & 0o777 == 0o700
    assert postgres.cluster.stat().st_mode & 0o777 == 0o700
    assert run_sql(server, "SHOW fsync") == "off", "settings of the caller win"


def test_a_path_too_long_for_a_socket(tmp_path: Path, run_sql: RunSql) -> None:
    postgres = EmbeddedPostgres(tmp_path / ("deep " * 25) / "data", settings=UNSAFE)
    with postgres as server:
        assert len(str(server.socket_dir)) < 90
        assert run_sql(server, "SELECT 1") == "1"
    assert not server.socket_dir.exists()


def test_first_start_after_a_killed_one_in_a_hostile_environment(
    data_dir: Path, run_sql: RunSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    leftover = data_dir / "postgres.new"
    leftover.mkdir(parents=True)
    (leftover / "PG_VERSION").write_text("18\n")
    for name, value in {"LC_ALL": "xx_XX.none", "PGDATA": "/nowhere", "PGPORT": "1", "PGOPTIONS": "-c x=y"}.items():
        monkeypatch.setenv(name, value)
    with EmbeddedPostgres(data_dir, settings=UNSAFE) as server:
        assert run_sql(server, "SHOW server_encoding") == "UTF8"


def test_killed_postmaster_is_restarted_with_all_committed_rows(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    run_sql(postgres.start(), "CREATE TABLE kept AS SELECT generate_series(1, 1000)")
    pid = postgres.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: postgres.pid is None)
    assert run_sql(postgres.start(), "SELECT count(*) FROM kept") == "1000"
    assert postgres.pid != pid


def test_all_processes_killed_at_once(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    run_sql(postgres.start(), "CREATE TABLE kept AS SELECT 1")
    cluster.kill_members(postgres.cluster)
    assert run_sql(postgres.start(), "SELECT count(*) FROM kept") == "1"


def test_the_server_dies_with_its_killed_owner(python: Python, data_dir: Path, run_sql: RunSql) -> None:
    owner = python(OWNER, str(data_dir), "leashed")
    pid = _first_number(owner)
    owner.kill()
    until(lambda: not _alive(pid))
    assert cluster.read_pid(data_dir / "postgres") is None, "it went down cleanly"


def test_an_orphan_server_is_taken_over(python: Python, data_dir: Path, run_sql: RunSql) -> None:
    owner = python(OWNER, str(data_dir), "unleashed")
    orphan = _first_number(owner)
    owner.kill()
    owner.wait()
    assert _alive(orphan)
    with EmbeddedPostgres(data_dir, settings=UNSAFE) as server:
        assert not _alive(orphan)
        assert run_sql(server, "SELECT 1") == "1"


def test_a_living_owner_is_respected(python: Python, data_dir: Path) -> None:
    owner = python(OWNER, str(data_dir), "leashed")
    pid = _first_number(owner)
    with pytest.raises(LaunchError, match="data with a space"):
        EmbeddedPostgres(data_dir).start()
    assert _alive(pid)
    out, _ = owner.communicate("\n", timeout=10)
    assert out == "stopped\n"


def test_a_reused_pid_is_neither_believed_nor_harmed(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    postgres.start()
    postgres.stop()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        _write_stale_pid(postgres, stranger.pid)
        assert run_sql(postgres.start(), "SELECT 1") == "1"
        assert stranger.poll() is None
        stranger.kill()


def test_a_zombie_does_not_count_as_running(postgres: EmbeddedPostgres, run_sql: RunSql) -> None:
    postgres.start()
    postgres.stop()
    with subprocess.Popen(["true"]) as zombie:
        time.sleep(0.1)
        _write_stale_pid(postgres, zombie.pid)
        assert run_sql(postgres.start(), "SELECT 1") == "1"


def test_another_major_version_is_refused_with_advice(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.stop()
    (postgres.cluster / "PG_VERSION").write_text("15\n")
    with pytest.raises(LaunchError, match=r"made by Postgres 15.*\n.*LOXODON_DATA_DIR"):
        postgres.start()


def test_a_broken_setting_is_told_with_the_servers_words(data_dir: Path) -> None:
    with pytest.raises(LaunchError, match="no_such_setting"):
        EmbeddedPostgres(data_dir, settings=UNSAFE | {"no_such_setting": "1"}).start()


@as_root
def test_as_root_without_namespaces_the_closed_folder_is_named(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "namespaces_allowed", lambda: False)
    data_dir.parent.chmod(0o700)
    with pytest.raises(LaunchError, match="'nobody' cannot enter /"):
        EmbeddedPostgres(data_dir).start()


@as_root
def test_as_root_without_namespaces_nobody_runs_it(
    open_folder: Path, run_sql: RunSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "namespaces_allowed", lambda: False)
    with EmbeddedPostgres(open_folder / "data", settings=UNSAFE) as server:
        assert run_sql(server, "SELECT 1") == "1"
    monkeypatch.undo()
    with EmbeddedPostgres(open_folder / "data", settings=UNSAFE) as server:  # the owner of the folder is kept
        assert run_sql(server, "SELECT 1") == "1"


@as_root
def test_an_ordinary_user(python: Python, data_dir: Path) -> None:
    if not programs.namespaces_allowed():
        pytest.skip("user namespaces are forbidden here")
    owner = python(
        "import os; assert os.geteuid() == 1000" + OWNER, str(data_dir), "leashed", prefix=programs.NAMESPACE
    )
    assert _first_number(owner) > 0
    assert owner.communicate("\n", timeout=10)[0] == "stopped\n"


def _write_stale_pid(postgres: EmbeddedPostgres, pid: int) -> None:
    words = [str(pid), str(postgres.cluster), "0", "5432", "", "", "0 0", "ready"]
    (postgres.cluster / "postmaster.pid").write_text("\n".join(words) + "\n")


def _first_number(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line.strip().isdigit(), process.stderr.read()
    return int(line)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
