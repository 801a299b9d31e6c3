"""Counts the requests that fail while two API processes behind a proxy are replaced, one after the other, under load.

The proxy does what a Service with readiness and the `preStop` of deploy/kubernetes do: a process that is to end gets no
new requests, then SIGTERM; its successor gets some once `/readyz` says 200. It repeats nothing. Stores and searches go
on all the time; whatever is not answered with 2xx has failed.

    python -m bench.rolling --rounds 3 --clients 8
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from bench.superuser import SUPERUSER, login_url, trusting
from bench.target import ROOT, clean_environment, free_port
from service.launch.postgres import EmbeddedPostgres
from service.postgres.roles import APP, OWNER, URL_VARIABLES

PROCESSES = 2
READY_S, DRAIN_S = 240.0, 60.0
QUIET_S = 1.0
"""Between the last new request and SIGTERM. Proxies of a cluster hear of it late, so there it is 10 s."""

WORDS = ("tea", "coffee", "Lisbon", "the garden", "chess", "a red bicycle", "jazz", "rye bread")


@dataclass
class Backend:
    """A place behind the proxy and the process that serves there now."""

    url: str = ""
    process: subprocess.Popen[bytes] | None = None
    takes_requests: bool = False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Outcomes:
    """What became of the requests."""

    statuses: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0

    @property
    def failed(self) -> int:
        return sum(count for status, count in self.statuses.items() if not status.startswith("2"))


class SmallProxy:
    """Sends each request to the next process that takes some."""

    def __init__(self, backends: list[Backend], session: aiohttp.ClientSession) -> None:
        self._backends, self._session = backends, session
        self._turns = itertools.count()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        ready = [each for each in self._backends if each.takes_requests]
        if not ready:
            return web.Response(status=502, text="no process takes requests")
        chosen = ready[next(self._turns) % len(ready)]
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        body = await request.read()
        async with self._session.request(
            request.method, chosen.url + request.path_qs, data=body, headers=headers
        ) as got:
            return web.Response(status=got.status, body=await got.read(), content_type=got.content_type)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often both processes are replaced")
    parser.add_argument("--clients", type=int, default=8, help="requests at once")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loxodon-rolling-") as folder:
        server = EmbeddedPostgres(Path(folder), settings=trusting(Path(folder)))
        url = server.start().url(SUPERUSER)
        try:
            tally, took_s = asyncio.run(measure(url, rounds=given.rounds, clients=given.clients))
        finally:
            server.stop()
    total = sum(tally.statuses.values())
    print(f"{given.rounds * PROCESSES} processes replaced in {took_s:.0f} s, {given.clients} clients:")
    print(f"{total} requests, {tally.failed} failed, the longest took {tally.longest_s:.1f} s; {dict(tally.statuses)}")
    return 1 if tally.failed else 0


async def measure(url: str, *, rounds: int, clients: int) -> tuple[Outcomes, float]:
    """`url`: the superuser's of a new database. Returns what became of the requests, and the seconds."""
    key, env = await migrate(url)
    backends = [Backend() for _ in range(PROCESSES)]
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        try:
            for each in backends:
                await replace(each, env, session)
            async with proxied(SmallProxy(backends, session)) as address:
                tally, stop, began = Outcomes(), asyncio.Event(), time.monotonic()
                load = [asyncio.create_task(keep_asking(session, address, key, n, stop, tally)) for n in range(clients)]
                for _, each in itertools.product(range(rounds), backends):
                    await asyncio.sleep(QUIET_S)
                    await replace(each, env, session)
                await asyncio.sleep(QUIET_S)
                stop.set()
                await asyncio.gather(*load)
                return tally, time.monotonic() - began
        finally:
            for each in backends:
                each.kill()


async def migrate(url: str) -> tuple[str, dict[str, str]]:
    """Makes the schema. `url`: the superuser's of a new database. Returns the first key, and the environment of an API
    process."""
    key, clean = f"lox_{secrets.token_urlsafe(24)}", clean_environment()
    owner = {URL_VARIABLES[OWNER]: login_url(url, OWNER), "LOXODON_BOOTSTRAP_API_KEY": key}
    command = (sys.executable, "-m", "service", "migrate")
    await asyncio.to_thread(subprocess.run, command, cwd=ROOT, env=clean | owner, check=True)
    return key, clean | {URL_VARIABLES[APP]: login_url(url, APP), "LOXODON_LOG_LEVEL": "warning"}


async def replace(backend: Backend, env: dict[str, str], session: aiohttp.ClientSession) -> None:
    """Ends the process of a place, if there is one, and starts its successor; returns when that is ready."""
    backend.takes_requests = False
    if backend.process is not None:
        await asyncio.sleep(QUIET_S)
        backend.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(backend.process.wait, DRAIN_S)
        assert code in (0, -signal.SIGTERM), f"an API process ended with {code}"
    port = free_port()
    backend.url = f"http://127.0.0.1:{port}"
    command = (sys.executable, "-m", "service", "api")
    backend.process = await asyncio.to_thread(
        subprocess.Popen, command, cwd=ROOT, env=env | {"LOXODON_PORT": str(port)}
    )
    until = time.monotonic() + READY_S
    while not await is_ready(session, backend.url):
        assert backend.process.poll() is None, "an API process did not start"
        assert time.monotonic() < until, f"an API process is not ready after {READY_S:.0f} s"
        await asyncio.sleep(0.2)
    backend.takes_requests = True


async def is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def keep_asking(
    session: aiohttp.ClientSession, address: str, key: str, number: int, stop: asyncio.Event, tally: Outcomes
) -> None:
    """Stores and searches in turns, for a user of its own, until it is to stop."""
    headers = {"Authorization": f"Bearer {key}"}
    for turn in itertools.count():
        if stop.is_set():
            return
        word, began = WORDS[turn // 2 % len(WORDS)], time.monotonic()
        body = {"content": f"Note {turn}: likes {word} more than on day {turn}", "user_id": f"user-{number}"}
        asked = {"query": f"who likes {word}", "user_id": f"user-{number}"}
        try:
            async with (
                session.get(f"{address}/v1/memories/search", params=asked, headers=headers)
                if turn % 2
                else session.post(f"{address}/v1/memories", json=body, headers=headers)
            ) as answer:
                await answer.read()
                tally.statuses[str(answer.status)] += 1
        except (aiohttp.ClientError, TimeoutError) as exc:
            tally.statuses[type(exc).__name__] += 1
        tally.longest_s = max(tally.longest_s, time.monotonic() - began)


@asynccontextmanager
async def proxied(proxy: SmallProxy) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
