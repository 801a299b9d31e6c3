"""`loxodon backup` and `restore`: the embedded database as a whole, copied while it runs.

pg_basebackup copies the files and the write-ahead log that was written meanwhile: as it began, so it is consistent when
it ends. Restored, the server replays that log at its first start.

    <folder>/base.tar.gz, pg_wal.tar.gz, backup_manifest    as pg_basebackup writes them
    <folder>/first-key                                      the first key, if the data folder keeps one
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.launch import accounts, data_dir
from service.launch.binaries import environment, find_binaries, tail
from service.launch.data_dir import KEY_FILE, FolderLock
from service.launch.logins import BACKUP_LOGIN
from service.launch.postgres import EmbeddedPostgres, Server, running_server
from service.launch.problems import AlreadyRunning, LaunchError
from service.settings import Settings

BASE, LOG, MANIFEST = "base.tar.gz", "pg_wal.tar.gz", "backup_manifest"
NOT_EMBEDDED = (
    "DATABASE_URL names a Postgres of your own, and `loxodon backup` copies the embedded one: back it up as its "
    "operator does (docs/command.md), or take `loxodon export` for one workspace."
)


def backup(settings: Settings, folder: Path) -> int:
    """Copies the embedded database into a new folder, while the service goes on. Returns the bytes of the copy; it is
    there whole, or not at all. Raises LaunchError."""
    if settings.database_url is not None or settings.owner_database_url is not None:
        raise LaunchError(NOT_EMBEDDED)
    cluster = settings.data_dir.absolute() / "postgres"
    if not cluster.exists():
        raise LaunchError(f"There is no database in {settings.data_dir}: LOXODON_DATA_DIR names the folder.")
    if folder.exists():
        raise LaunchError(f"{folder} is there already. Name a folder that is not.")
    fresh = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700, parents=True)
    with _server(settings.data_dir) as server:
        where = ["-h", str(server.socket_dir), "-p", str(server.port), "-U", BACKUP_LOGIN, "--no-password"]
        how = ["-D", str(fresh), "-Ft", "-z", "-X", "stream", "-c", "fast"]
        _run(["pg_basebackup", *where, *how], "The backup failed", {"PGPASSWORD": server.passwords[BACKUP_LOGIN]})
    key = settings.data_dir / KEY_FILE
    if key.exists():
        shutil.copy2(key, fresh / KEY_FILE)
    fresh.rename(folder)
    return sum(each.stat().st_size for each in folder.iterdir())


def restore(settings: Settings, folder: Path) -> None:
    """Makes the embedded database in LOXODON_DATA_DIR, which must have none, from a backup; it is verified, started
    once and stopped. Raises LaunchError, and leaves nothing behind that looks finished."""
    if not (folder / BASE).is_file() or not (folder / MANIFEST).is_file():
        raise LaunchError(f"{folder} is no backup: it lacks {BASE} or {MANIFEST}.")
    target = settings.data_dir.absolute()
    cluster = target / "postgres"
    data_dir.prepare(target)
    if cluster.exists():
        raise LaunchError(
            f"There is a database in {target} already. Set LOXODON_DATA_DIR to a folder without one, or move {cluster} "
            "away first."
        )
    lock = FolderLock(target / "postgres.lock")
    if not lock.acquire():
        raise AlreadyRunning(f"A running process owns the database in {target}.")
    try:
        fresh = cluster.with_name("postgres.restoring")
        _unpack(folder, fresh)
        _run(["pg_verifybackup", "-q", str(fresh)], f"The backup in {folder} is damaged", {})
        account = accounts.choose(cluster)
        for each in (fresh, *fresh.rglob("*")):
            account.give(each)
        fresh.rename(cluster)
    finally:
        lock.release()
    key = folder / KEY_FILE
    if key.exists() and not (target / KEY_FILE).exists():
        shutil.copy2(key, target / KEY_FILE)
    with EmbeddedPostgres(target):
        pass


def _unpack(folder: Path, fresh: Path) -> None:
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    try:
        for name, where in ((BASE, fresh), (LOG, fresh / "pg_wal")):
            with tarfile.open(folder / name) as packed:
                packed.extractall(where, filter=_as_ours)  # noqa: S202 (the filter keeps them inside)
        shutil.copy2(folder / MANIFEST, fresh / MANIFEST)
    except (OSError, EOFError, tarfile.TarError) as exc:
        raise LaunchError(f"The backup in {folder} is damaged: {exc}.") from exc
    fresh.chmod(0o700)


def _as_ours(member: tarfile.TarInfo, where: str) -> tarfile.TarInfo | None:
    """A file of the caller's: the archive names the user that Postgres ran as, as it saw itself."""
    return tarfile.tar_filter(member, where).replace(uid=os.geteuid(), gid=os.getegid(), uname="", gname="", deep=False)


@contextmanager
def _server(folder: Path) -> Iterator[Server]:
    """The running server of a data folder, or one that is started for the block."""
    if (server := running_server(folder)) is None:
        with EmbeddedPostgres(folder) as started:
            yield started
    elif BACKUP_LOGIN in server.passwords:
        yield server
    else:
        raise LaunchError("The server was started by an earlier version, which has no login for backups: restart it.")


def _run(command: Sequence[str], failed: str, env: Mapping[str, str]) -> None:
    """Runs a program of Postgres, which may take as long as it needs."""
    name, *words = command
    done = subprocess.run(
        [str(find_binaries() / name), *words],
        check=False,
        env={**environment(), **env},
        cwd=os.sep,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise LaunchError(f"{failed}:\n{tail(done.stderr or done.stdout)}")
