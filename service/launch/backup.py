"""`loxodon backup` and `restore`: the embedded database as a whole, copied while it runs.

pg_basebackup copies the files and the write-ahead log written during the copy: as it began, so it is consistent when
it ends. Restored, the server replays that log at its first start.

    <folder>/base.tar.gz, pg_wal.tar.gz, backup_manifest    as pg_basebackup writes them
    <folder>/first-key                                      the first key, if the data folder keeps one
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from service.kit.settings import Settings
from service.launch import programs
from service.launch.cluster import BACKUP_LOGIN
from service.launch.data_dir import KEY_FILE, removed_on_failure
from service.launch.parent_death import end_with_parent
from service.launch.postgres import EmbeddedPostgres, running_or_started
from service.launch.problems import LaunchError
from service.launch.programs import environment, find_binaries, tail

BASE, LOG, MANIFEST = "base.tar.gz", "pg_wal.tar.gz", "backup_manifest"
FAR = re.compile(r"\s*(\d+)/(\d+) kB ")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
AS_GROUP = 'trap "trap - TERM; kill 0" TERM; "$@" & wait $!'
"""Runs a program, and ends it with its children: that of pg_basebackup would go on alone, and fill the disk."""

NOT_EMBEDDED = (
    "DATABASE_URL names a Postgres of your own, and `loxodon backup` copies the embedded one: back it up as its "
    "operator does (docs/command.md; a Citus cluster: docs/citus.md), or take `loxodon export` for one workspace."
)


Advance = Callable[[str, int, int], None]
"""Called with the current step, and how much of how much of it is done."""


def backup(settings: Settings, folder: Path, advance: Advance = lambda *_: None) -> int:
    """Copies the embedded database into a new folder while the service runs, and returns the bytes of the copy. After a
    failure there is no folder. Raises LaunchError."""
    if settings.database.url is not None or settings.database.owner_url is not None:
        raise LaunchError(NOT_EMBEDDED)
    cluster = settings.server.data_dir.absolute() / "postgres"
    if not cluster.exists():
        raise LaunchError(f"There is no database in {settings.server.data_dir}: LOXODON_DATA_DIR names the folder.")
    if folder.exists():
        raise LaunchError(f"{folder} already exists. Name a folder that does not.")
    fresh = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(fresh, ignore_errors=True)
    with removed_on_failure(fresh), running_or_started(settings.server.data_dir) as server:
        fresh.mkdir(mode=0o700, parents=True)
        where = ["-h", str(server.socket_dir), "-p", str(server.port), "-U", BACKUP_LOGIN, "--no-password"]
        how = ["-D", str(fresh), "-Ft", "-z", "-X", "stream", "-c", "fast"]
        password = {"PGPASSWORD": server.passwords[BACKUP_LOGIN]}
        _run(["pg_basebackup", *where, *how], "The backup failed", password, advance)
        key = settings.server.data_dir / KEY_FILE
        if key.exists():
            shutil.copy2(key, fresh / KEY_FILE)
        fresh.rename(folder)
    return sum(path.stat().st_size for path in folder.iterdir())


def restore(settings: Settings, folder: Path, advance: Advance = lambda *_: None) -> None:
    """Makes the embedded database in LOXODON_DATA_DIR, which must have none, from a backup; it is verified, started
    once and stopped. Raises LaunchError, and then leaves no database there."""
    if not (folder / BASE).is_file() or not (folder / MANIFEST).is_file():
        raise LaunchError(f"{folder} is not a backup: it lacks {BASE} or {MANIFEST}.")
    target = settings.server.data_dir.absolute()
    was_there, server = target.exists(), EmbeddedPostgres(target)
    server.own()
    try:
        if server.cluster.exists():
            raise LaunchError(
                f"There is a database in {target} already. Set LOXODON_DATA_DIR to a folder without one, or move "
                f"{server.cluster} away first."
            )
        fresh = server.cluster.with_name("postgres.restoring")
        with removed_on_failure(*([fresh, server.cluster] if was_there else [target])):
            _restore(folder, server.cluster, fresh, advance)
            with server:
                pass
            key = folder / KEY_FILE
            if key.exists() and not (target / KEY_FILE).exists():
                shutil.copy2(key, target / KEY_FILE)
    finally:
        server.stop()


def _restore(folder: Path, cluster: Path, fresh: Path, advance: Advance) -> None:
    _unpack(folder, fresh, advance)
    _run(["pg_verifybackup", str(fresh)], f"The backup in {folder} is damaged", {}, advance)
    account = programs.choose_account(cluster)
    for path in (fresh, *fresh.rglob("*")):
        account.give(path)
    fresh.rename(cluster)


def _unpack(folder: Path, fresh: Path, advance: Advance) -> None:
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    try:
        for name, where in ((BASE, fresh), (LOG, fresh / "pg_wal")):
            advance(f"unpacking {name}", 0, 1)
            with tarfile.open(folder / name) as packed:
                packed.extraction_filter = lambda member, _: member  # is checked here: Debian's Python has no filters
                for member in packed:
                    packed.extract(_checked(member), where)
        shutil.copy2(folder / MANIFEST, fresh / MANIFEST)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as exc:
        if getattr(exc, "errno", None) in NO_ROOM:
            raise LaunchError(f"There is no room for the backup in LOXODON_DATA_DIR, {fresh.parent}: {exc}.") from exc
        raise LaunchError(f"The backup in {folder} is damaged: {exc}.") from exc
    fresh.chmod(0o700)


def _checked(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The member as the caller's; raises TarError for what is no file or folder inside the archive's own folder."""
    path = PurePosixPath(member.name)
    if not (member.isreg() or member.isdir()) or path.is_absolute() or ".." in path.parts:
        raise tarfile.TarError(f"{member.name!r} is no file or folder of a database")
    member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
    return member


def _run(command: Sequence[str], failed: str, env: Mapping[str, str], advance: Advance) -> None:
    """Runs a program of Postgres that says how far it is, and may take as long as it needs."""
    name, *words = command
    program = ["/bin/sh", "-c", AS_GROUP, name, str(find_binaries() / name), "--progress", *words]
    with subprocess.Popen(
        end_with_parent(program, signal.SIGTERM),
        env={**environment(), **env},
        cwd=os.sep,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        output = list[str]()
        try:
            for line in running.stdout:
                if far := FAR.match(line):
                    advance("kB", int(far[1]), int(far[2]))
                else:
                    output.append(line)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    if running.returncode != 0:
        raise LaunchError(f"{failed}:\n{tail(''.join(output))}")
