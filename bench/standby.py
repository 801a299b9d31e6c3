"""A streaming standby of the Postgres of a started service, for chaos: the service knows nothing of it.

    async with standing_by(service, folder) as standby: ...

pg_basebackup copies the running cluster, with a replication slot so that no WAL is dropped while the standby is dead.
A process of its own (`python -m bench.standby`) starts its server again whenever it dies, as an operator would.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg  # type: ignore[import-untyped]

from bench.superuser import SUPERUSER
from bench.target import ROOT, Service, children
from service.launch import parent_death, postgres, programs
from service.launch.parent_death import end_with_parent
from service.launch.postgres import DATABASE, EmbeddedPostgres
from service.launch.programs import call, find_binaries, tail

SLOT = "loxodon_chaos"
BACK_S, CAUGHT_UP_S = 90.0, 120.0

GONE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)
"""The server is dead, or starting."""


@dataclass(frozen=True, slots=True)
class Standby:
    """`primary`, `url`: asyncpg URLs of the superuser."""

    primary: str
    url: str
    keeper: int
    log: Path

    def pid(self) -> int | None:
        """The postmaster's, None while it is dead."""
        return next(iter(children(self.keeper)), None)

    async def follows(self) -> bool:
        """Whether it takes connections and gets WAL."""
        try:
            return await asked(self.url, "SELECT status FROM pg_stat_wal_receiver") == "streaming"
        except GONE:
            return False

    async def caught_up(self) -> None:
        """Returns once it has replayed what the primary has written by now, and stops it there: what it would replay
        cancels long queries. Raises SystemExit if it does not catch up."""
        written = await asked(self.primary, "SELECT pg_current_wal_insert_lsn()::text")
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"
        deadline = time.monotonic() + CAUGHT_UP_S
        while True:
            try:
                if await asked(self.url, replayed):
                    await asked(self.url, "SELECT pg_wal_replay_pause()")
                    return
            except GONE:
                pass
            if time.monotonic() > deadline:
                raise SystemExit(f"the standby did not catch up:\n{tail(self.log.read_text(errors='replace'))}")
            await asyncio.sleep(0.1)


async def asked(url: str, query: str) -> object:
    """The only value of the answer."""
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@asynccontextmanager
async def standing_by(service: Service, folder: Path) -> AsyncIterator[Standby]:
    """Within the block a standby in `folder`, which is empty, follows the service's database."""
    assert service.database is not None
    assert service.processes is not None
    await asyncio.to_thread(copy_cluster, service.database, service.processes.cluster, folder, slot=SLOT)
    with _kept_alive(folder) as keeper:
        host = postgres.socket_folder(folder, programs.choose_account(folder / "postgres"))
        url = f"postgresql://{SUPERUSER}@/{DATABASE}?host={host}&port={postgres.PORT}"
        found = Standby(service.database, url, keeper, folder / "postgres.log")
        deadline = time.monotonic() + BACK_S
        while not await found.follows():
            assert time.monotonic() < deadline, "the standby did not start"
            await asyncio.sleep(0.1)
        yield found


def copy_cluster(primary: str, cluster: Path, folder: Path, *, slot: str | None = None) -> None:
    """Copies the primary's cluster as that of a standby, with a replication slot of its own if `slot` names one. Raises
    SystemExit."""
    where = parse_qs(urlsplit(primary).query)
    account, target = programs.choose_account(cluster), folder / "postgres"
    target.mkdir(mode=0o700)
    account.give(target)
    command = [*account.prefix, str(find_binaries() / "pg_basebackup"), "-h", where["host"][0], "-p", where["port"][0]]
    command += ["-U", SUPERUSER, "-D", str(target), "-R", "-X", "stream", "-c", "fast"]
    command += ["-C", "-S", slot] if slot else []
    done = call(end_with_parent(command, signal.SIGTERM, uid=account.uid, gid=account.gid))
    if done.returncode != 0:
        raise SystemExit(f"The standby could not be made:\n{tail(done.stderr)}")


@contextmanager
def _kept_alive(folder: Path) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.standby", str(folder), "--parent", str(os.getpid())], cwd=ROOT
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def main(words: Sequence[str] | None = None) -> None:
    """Keeps the server of a folder running until SIGTERM."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parent", type=int, required=True, help="end with this process")
    options = parser.parse_args(words)
    parent_death.arm(signal.SIGTERM, options.parent)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = EmbeddedPostgres(options.folder)
    try:
        while True:
            server.start(timeout_s=BACK_S)
            while server.pid is not None:
                time.sleep(0.05)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
