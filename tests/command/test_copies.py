"""A backup is taken while the server is written to; restored elsewhere it is the same database."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from service.command import transfer
from service.kit.settings import Settings
from service.launch.backup import BASE, LOG, MANIFEST, backup, restore
from service.launch.postgres import EmbeddedPostgres, login_url
from service.launch.problems import LaunchError
from service.launch.programs import Account
from service.postgres import migrate
from service.postgres.roles import MIGRATE_LOGIN, OWNER
from service.runtime.statements import generations
from tests.conftest import DIMENSION
from tests.fakes.embedder import AngleEmbedder
from tests.launch.conftest import UNSAFE
from tests.postgres.test_doctor import WHOLE, Names

WRITES = """
import asyncio, asyncpg, sys, uuid

async def write():
    connection = await asyncpg.connect(sys.argv[1].replace("+asyncpg", ""))
    print("writing", flush=True)
    await connection.execute("SET ROLE loxodon_owner")
    while True:
        id = uuid.uuid4()
        await connection.execute("INSERT INTO audit_log (workspace_id, id, operation) VALUES ($1, $1, 'x')", id)

asyncio.run(write())
"""


async def contents(settings: Settings) -> dict[str, list[str]]:
    """Every row of the tables that travel, in workspaces that exist."""
    with login_url(settings, OWNER) as url:
        connection = await asyncpg.connect(url.replace("+asyncpg", ""))
        await connection.execute("SET ROLE loxodon_owner")
        found = {}
        for table in transfer.tables():
            rows = await connection.fetch(
                f"SELECT to_jsonb(t)::text FROM {table.name} t JOIN workspace USING (workspace_id) ORDER BY 1"
            )
            found[table.name] = [row[0] for row in rows]
        await connection.close()
        return found


def test_a_backup_is_restored(tmp_path: Path, settings: Settings) -> None:
    of_a = settings.changed(data_dir=tmp_path / "a")
    of_b = settings.changed(data_dir=tmp_path / "b")
    with pytest.raises(LaunchError, match="There is no database"):
        backup(of_a, tmp_path / "copy")
    with pytest.raises(LaunchError, match="There is no database"), login_url(of_a, OWNER):
        pass
    assert not of_a.server.data_dir.exists()
    with EmbeddedPostgres(of_a.server.data_dir, settings=UNSAFE) as server:
        url = server.url(MIGRATE_LOGIN)
        migrate.upgrade(url, settings)
        asyncio.run(generations.record_first(url, AngleEmbedder.model, DIMENSION))
        (of_a.server.data_dir / "first-key").write_text("lox_first")
        asyncio.run(fill(url))
        with subprocess.Popen([sys.executable, "-c", WRITES, url], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            assert backup(of_a, tmp_path / "copy") > 1_000_000
            writer.kill()
        with pytest.raises(LaunchError, match="already exists"):
            backup(of_a, tmp_path / "copy")
        restore(of_b, tmp_path / "copy")
        before, after = asyncio.run(contents(of_a)), asyncio.run(contents(of_b))
        assert sum(map(len, after.values())) > 20
        assert before | {"working_item": []} == after, "all but what Postgres does not log"
    assert (of_b.server.data_dir / "first-key").read_text() == "lox_first"
    with pytest.raises(LaunchError, match="There is a database in"):
        restore(of_b, tmp_path / "copy")

    of_c = settings.changed(data_dir=tmp_path / "c")
    damaged = (tmp_path / "copy" / BASE).read_bytes()
    (tmp_path / "copy" / BASE).write_bytes(damaged[: len(damaged) // 2])
    with pytest.raises(LaunchError, match="is damaged"):
        restore(of_c, tmp_path / "copy")
    assert not of_c.server.data_dir.exists()


@pytest.mark.parametrize(
    "member",
    [
        {"name": "../outside"},
        {"name": "link", "type": tarfile.SYMTYPE, "linkname": "/etc"},
        {"name": "link", "type": tarfile.SYMTYPE, "linkname": "../../outside"},
        {"name": "link", "type": tarfile.LNKTYPE, "linkname": "/etc/passwd"},
        {"name": "device", "type": tarfile.CHRTYPE},
    ],
)
def test_a_backup_that_reaches_outside_is_refused(tmp_path: Path, settings: Settings, member: dict[str, Any]) -> None:
    forged, target = tmp_path / "copy", tmp_path / "data"
    forged.mkdir()
    for name in (BASE, LOG):
        with tarfile.open(forged / name, "w:gz") as packed:
            made = tarfile.TarInfo()
            for field, value in member.items():
                setattr(made, field, value)
            packed.addfile(made)
    (forged / MANIFEST).write_text("{}")
    with pytest.raises(LaunchError, match="is damaged"):
        restore(settings.changed(data_dir=target), forged)
    assert {each.name for each in tmp_path.iterdir()} == {"copy"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_link_is_given_away_and_not_what_it_leads_to(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.touch()
    link.symlink_to(kept)
    Account(uid=65534, gid=65534).give(link)
    assert (kept.stat().st_uid, link.lstat().st_uid) == (0, 65534)


def test_a_backup_that_fails_leaves_nothing(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_a = settings.changed(data_dir=tmp_path / "a")
    with EmbeddedPostgres(of_a.server.data_dir, settings=UNSAFE):
        seen = list[tuple[str, int, int]]()
        backup(of_a, tmp_path / "copy", lambda *far: seen.append(far))
        assert seen[-1][1] == seen[-1][2] > 1_000

        def stopped(*_: object) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            backup(of_a, tmp_path / "other", stopped)
        monkeypatch.setattr("service.launch.backup.BACKUP_LOGIN", "loxodon_migrate")  # who may not copy
        with pytest.raises(LaunchError, match="The backup failed"):
            backup(of_a, tmp_path / "other")
    of_b = settings.changed(data_dir=tmp_path / "b")
    with pytest.raises(KeyboardInterrupt):
        restore(of_b, tmp_path / "copy", stopped)
    of_b.server.data_dir.mkdir()
    with pytest.raises(KeyboardInterrupt):
        restore(of_b, tmp_path / "copy", stopped)
    assert {each.name for each in tmp_path.iterdir()} == {"a", "copy", "b"}
    assert not [each for each in of_b.server.data_dir.iterdir() if each.is_dir()]


def test_a_restore_that_is_refused_leaves_the_other_alone(tmp_path: Path, settings: Settings) -> None:
    copy, target = tmp_path / "copy", tmp_path / "data"
    copy.mkdir()
    for name in (BASE, LOG, MANIFEST):
        (copy / name).touch()
    other = EmbeddedPostgres(target)
    other.own()
    begun = target / "postgres.restoring" / "base"
    begun.mkdir(parents=True)
    with pytest.raises(LaunchError, match="A running process owns the database"):
        restore(settings.changed(data_dir=target), copy)
    other.stop()
    assert begun.exists()


def test_a_full_disk_is_no_damage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, target = tmp_path / "copy", tmp_path / "data"
    copy.mkdir()
    for name in (BASE, LOG, MANIFEST):
        with tarfile.open(copy / name, "w:gz"):
            pass

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(LaunchError, match="no room for the backup in LOXODON_DATA_DIR"):
        restore(settings.changed(data_dir=target), copy)
    assert not target.exists()


WITH_CHILD = """#!/bin/sh
sleep 600 &
echo $! $$ > "$2.new" && mv "$2.new" "$2"
wait
"""
RUN = """
import signal, sys
from pathlib import Path
from service.launch import backup
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
folder = Path(sys.argv[1])
backup.find_binaries = lambda: folder
backup._run(["program", str(folder / "pids")], "it failed", {}, lambda *_: None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process learns of the death of its parent")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_program_ends_with_the_command_and_so_does_its_child(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "program").write_text(WITH_CHILD)
    (tmp_path / "program").chmod(0o700)
    with subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], stderr=subprocess.DEVNULL) as command:
        wait_until((tmp_path / "pids").exists)
        command.send_signal(number)
        command.wait(10)
    pids = (tmp_path / "pids").read_text().split()
    wait_until(lambda: not any(map(runs, pids)))


def wait_until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def fill(url: str) -> None:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    await connection.execute("SET ROLE loxodon_owner")
    await connection.execute(Names().put_into(WHOLE))
    await connection.close()


def test_a_postgres_of_ones_own_is_not_copied(tmp_path: Path) -> None:
    own = Settings.of({"database_url": "postgresql://loxodon_jobs@db.example/memories"})
    with pytest.raises(LaunchError, match="a Postgres of your own"):
        backup(own, tmp_path / "copy")
