"""Kills the primary under load, promotes its synchronous standby, and counts what was acknowledged and is lost.

Clients store with an Idempotency-Key and repeat until they are answered, as ours do; then they read what they stored.
The killed server becomes the standby of the next round. In the end every acknowledged text must be there once, and no
text twice.

    python -m bench.failover --rounds 20
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import aiohttp
import httpx2

from bench.rolling import WORDS, Backend, migrate, replace
from bench.standby import GONE, asked, copy_cluster
from bench.superuser import SUPERUSER, login_url, trusting
from service.launch import cluster, postgres, programs
from service.launch.postgres import DATABASE, EmbeddedPostgres
from service.postgres.roles import APP, LOGINS, URL_VARIABLES

CLIENTS = 8
LOADED_S = 2.0
"""Of load before each kill."""
REPEAT_S = 0.2
PATIENCE_S = 120.0
POSITION = "X-Loxodon-Position"


class ServerPair:
    """Two servers, of which one is the primary and the other its synchronous standby."""

    def __init__(self, folder: Path) -> None:
        self._folders = [folder / "a", folder / "b"]
        self._primary = 0
        self._servers: list[EmbeddedPostgres | None] = [None, None]
        for each in self._folders:
            each.mkdir()

    def start(self) -> str:
        """Starts the primary, alone; returns the superuser's URL."""
        self._start(0)
        return self.url

    @property
    def url(self) -> str:
        """The superuser's, on the primary."""
        return self._url(self._primary)

    def urls_of(self, role: str) -> tuple[str, list[str]]:
        """The URL of a role's login on whichever server takes writes, and its URLs on each."""
        hosts = ",".join(str(self._socket(number)) for number in (0, 1))
        ports = f"{postgres.PORT},{postgres.PORT}"
        either = f"postgresql://{LOGINS[role]}@/{DATABASE}?host={quote(hosts, safe=',')}&port={ports}"
        return f"{either}&target_session_attrs=read-write", [login_url(self._url(number), role) for number in (0, 1)]

    async def add_standby(self) -> None:
        """Makes the other server a standby for which each commit waits."""
        other = 1 - self._primary
        shutil.rmtree(self._folders[other] / "postgres", ignore_errors=True)
        source = self._folders[self._primary] / "postgres"
        await asyncio.to_thread(copy_cluster, self.url, source, self._folders[other])
        self._start(other)
        await asked(self.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        await asked(self.url, "SELECT pg_reload_conf()")
        state = "SELECT sync_state FROM pg_stat_replication"
        await _until(lambda: asked(self.url, state), "sync")

    def kill_standby(self) -> None:
        self._kill(1 - self._primary)

    def restart_standby(self) -> None:
        self._start(1 - self._primary)

    async def fail_over(self) -> None:
        """Kills all of the primary at once and promotes the standby."""
        self._kill(self._primary)
        self._primary = 1 - self._primary
        await asked(self.url, "SELECT pg_promote()")

    def stop(self) -> None:
        for server in self._servers:
            if server is not None:
                server.stop()

    def _start(self, number: int) -> None:
        folder = self._folders[number]
        server = self._servers[number] = EmbeddedPostgres(folder, settings=trusting(folder))
        server.start()

    def _kill(self, number: int) -> None:
        server = self._servers[number]
        assert server is not None
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        cluster.kill_members(server.cluster)
        server.stop()

    def _socket(self, number: int) -> Path:
        folder = self._folders[number]
        return postgres.socket_folder(folder, programs.choose_account(folder / "postgres"))

    def _url(self, number: int) -> str:
        host = quote(str(self._socket(number)), safe="")
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={host}&port={postgres.PORT}"


TRY_AGAIN = {408, 429, 500, 502, 503, 504}


@dataclass
class Promises:
    """What clients were told. `stored`: the id of each acknowledged text; `statuses`: of all answers."""

    stored: dict[str, str] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    unseen: list[str] = field(default_factory=list)
    longest_s: float = 0.0


async def keep_storing(client: httpx2.AsyncClient, number: int, stop: asyncio.Event, told: Promises) -> None:
    """Stores texts until it is to stop, and reads each when it is acknowledged."""
    position = ""
    for turn in itertools.count():
        if stop.is_set():
            return
        text = f"Note {turn} of client {number}: {WORDS[turn % len(WORDS)]} for {turn * 7} guests"
        body = {"content": text, "user_id": f"user-{number}", "dedup": False}
        headers = {"Idempotency-Key": uuid4().hex}
        answer = await _answered(lambda: client.post("/v1/memories", json=body, headers=headers), told)  # noqa: B023
        position = max(position, answer.headers.get(POSITION, ""))
        told.stored[text] = answer.json()["results"][0]["id"]
        path, seen = f"/v1/memories/{told.stored[text]}", {POSITION: position} if position else {}
        found = await _answered(lambda: client.get(path, headers=seen), told)  # noqa: B023
        if found.status_code != 200 or found.json()["memory"] != text:
            told.unseen.append(text)


async def _answered(ask: Callable[[], object], told: Promises) -> httpx2.Response:
    """The first answer that does not ask to try again."""
    began = time.monotonic()
    while time.monotonic() < began + PATIENCE_S:
        try:
            answer: httpx2.Response = await ask()  # type: ignore[misc]
        except httpx2.HTTPError as exc:
            told.statuses[type(exc).__name__] += 1
        else:
            told.statuses[str(answer.status_code)] += 1
            if answer.status_code not in TRY_AGAIN:
                told.longest_s = max(told.longest_s, time.monotonic() - began)
                return answer
        await asyncio.sleep(REPEAT_S)
    raise AssertionError(f"no answer within {PATIENCE_S:.0f} s: {told.statuses}")


async def fail_over_under_load(
    pair: ServerPair, connect: Callable[[], httpx2.AsyncClient], rounds: int, *, clients: int = CLIENTS
) -> Promises:
    """`connect`: a new client of the service."""
    told, stop = Promises(), asyncio.Event()
    connected = [connect() for _ in range(clients)]
    load = [asyncio.create_task(keep_storing(each, number, stop, told)) for number, each in enumerate(connected)]
    for number in range(rounds):
        await asyncio.sleep(LOADED_S * (0.5 + number % 3 / 2))
        before = len(told.stored)
        await pair.fail_over()
        await pair.add_standby()
        await _until(lambda: _more_than(told, before + clients), True)  # noqa: B023
    stop.set()
    await asyncio.gather(*load)
    for each in connected:
        await each.aclose()
    return told


async def _more_than(told: Promises, count: int) -> bool:
    return len(told.stored) > count


async def _until(ask: Callable[[], object], wanted: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if await ask() == wanted:  # type: ignore[misc]
                return
        except GONE:
            pass
        assert time.monotonic() < deadline, f"{wanted} did not come"
        await asyncio.sleep(0.05)


async def violations(pair: ServerPair, told: Promises) -> list[str]:
    """Acknowledged texts that are not there, texts that are there twice, and acknowledged texts that nobody saw."""
    counted = "SELECT coalesce(json_object_agg(content, n), '{}')::text FROM "
    counted += "(SELECT content, count(*) AS n FROM memory WHERE NOT archived GROUP BY 1) counted"
    there: dict[str, int] = json.loads(str(await asked(pair.url, counted)))
    lost = [f"lost: {text}" for text in told.stored if text not in there]
    doubled = [f"{count} times: {text}" for text, count in there.items() if count > 1]
    return lost + doubled + [f"not seen by its writer: {text}" for text in told.unseen]


@contextmanager
def two_servers() -> Iterator[ServerPair]:
    with tempfile.TemporaryDirectory(prefix="failover-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        pair = ServerPair(Path(folder))
        try:
            yield pair
        finally:
            pair.stop()


@asynccontextmanager
async def served(pair: ServerPair) -> AsyncIterator[tuple[str, str]]:
    """URL and key of an API process on both servers, whose schema is made here."""
    key, env = await migrate(pair.url)
    await pair.add_standby()
    either, each = pair.urls_of(APP)
    env |= {URL_VARIABLES[APP]: either, "LOXODON_READ_DATABASE_URL": ",".join(each)}
    backend = Backend()
    async with aiohttp.ClientSession() as session:
        try:
            await replace(backend, env | {"LOXODON_LOG_LEVEL": "error"}, session)
            yield backend.url, key
        finally:
            backend.kill()


async def measure(pair: ServerPair, rounds: int) -> int:
    """Prints what became of the promises; returns how many were broken."""
    async with served(pair) as (url, key):

        def connect() -> httpx2.AsyncClient:
            return httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30)

        began = time.monotonic()
        told = await fail_over_under_load(pair, connect, rounds)
        wrong = await violations(pair, told)
    print(f"{rounds} failovers in {time.monotonic() - began:.0f} s, {CLIENTS} clients; answers: {dict(told.statuses)}")
    print(f"{len(told.stored)} texts acknowledged, {len(wrong)} lost, doubled or not seen by their writer")
    print(f"the longest wait for an answer: {told.longest_s:.1f} s", *wrong[:20], sep="\n")
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with two_servers() as pair:
        pair.start()
        return int(asyncio.run(measure(pair, given.rounds)) > 0)


if __name__ == "__main__":
    sys.exit(main())
