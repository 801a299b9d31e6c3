"""How does a worker learn at once that there is work?

By LISTEN and NOTIFY on connections of our own, never inside a write transaction: there NOTIFY takes a global lock at
commit (16 writers went from 8,050 to 2,800 commits a second, B2). Whoever committed calls `notify()`; many calls make
one NOTIFY every 50 ms. A lost one costs one poll. Behind a transaction pooler LISTEN succeeds and stays silent, so
the listener sends itself one over a second connection and says so when nothing arrives.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import make_url

CHANNEL = "loxodon_jobs"
NOTIFY = f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}; COMMIT"
"""NOTIFY takes a transaction number, so its COMMIT would wait for the disk; there is nothing to keep."""

GAP_S = 0.05
PROOF_S = 1.0
CONNECT_S = 5.0
PATIENCE_S = (0.2, 5.0)
"""First and longest pause before a listener connects again."""

TROUBLE = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)

log = logging.getLogger(__name__)


def _dsn(url: str) -> str:
    """The URL as asyncpg reads it: libpq's spelling."""
    found = make_url(url)
    query = {"sslmode" if name == "ssl" else name: value for name, value in found.query.items()}
    return found.set(drivername="postgresql", query=query).render_as_string(hide_password=False)


class Wakeup:
    """Tells and is told. `arrived` is set by each notification; whoever waits for it clears it."""

    def __init__(self, url: str) -> None:
        self._dsn = _dsn(url)
        self._sender: asyncpg.Connection[Any] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._wanted = False
        self._heard = asyncio.Event()
        self.arrived = asyncio.Event()

    @property
    def works(self) -> bool:
        """Has a notification reached this process over the current connection?"""
        return self._heard.is_set()

    def notify(self) -> None:
        """Wakes the workers soon. Returns at once, never raises, does nothing while the database is away."""
        self._wanted = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def listen(self) -> None:
        """Runs until cancelled: sets `arrived` for each notification and once after every new connection."""
        pause_s = PATIENCE_S[0]
        while True:
            try:
                await self._listen_once()
                pause_s = PATIENCE_S[0]
            except TROUBLE as exc:
                log.debug("listening failed: %s", type(exc).__name__)
            self._heard.clear()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PATIENCE_S[1])

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            with suppress(asyncio.CancelledError):
                await self._sending
        self._hang_up()

    async def _listen_once(self) -> None:
        connection = await asyncpg.connect(self._dsn, timeout=CONNECT_S)
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._on_notify)
            self.arrived.set()  # what came while nobody listened
            self.notify()
            try:
                await asyncio.wait_for(self._heard.wait(), PROOF_S)
            except TimeoutError:
                log.warning("notifications do not arrive (a transaction pooler?): work is found by polling")
            await lost.wait()
        finally:
            connection.terminate()

    def _on_notify(self, *_: object) -> None:
        self._heard.set()
        self.arrived.set()

    async def _send(self) -> None:
        while self._wanted:
            self._wanted = False
            used = self._sender is not None
            if not await self._sent() and used:  # the connection had died since
                await self._sent()
            await asyncio.sleep(GAP_S)

    async def _sent(self) -> bool:
        try:
            if self._sender is None:
                self._sender = await asyncpg.connect(self._dsn, timeout=CONNECT_S)
            await self._sender.execute(NOTIFY, timeout=CONNECT_S)
        except TROUBLE as exc:
            log.debug("notifying failed: %s", type(exc).__name__)
            self._hang_up()
            return False
        return True

    def _hang_up(self) -> None:
        connection, self._sender = self._sender, None
        if connection is not None:
            connection.terminate()
