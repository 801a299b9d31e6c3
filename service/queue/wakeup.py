"""Wakes the workers of every process when there are jobs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from service.kit import postgres_url
from service.postgres.driver_errors import LOST

log = logging.getLogger(__name__)

CHANNEL = "loxodon_jobs"
NOTIFY = f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}; COMMIT"
"""NOTIFY takes a transaction number, so its COMMIT would wait for the disk; there is nothing to keep."""

NOTIFY_INTERVAL_S = 0.25
"""Jobs that arrive in this time are claimed, run and finished together, which halves their cost."""

FIRST_NOTIFICATION_S = 1.0
CONNECT_S = 5.0
RECONNECT_S = (0.2, 5.0)
"""First and longest pause before a listener connects again."""

CONNECTION_ERRORS = (*LOST, asyncpg.PostgresError)


class Wakeup:
    """Wakes the workers of every process by LISTEN and NOTIFY. `arrived` is set by each notification and
    cleared by the code that waits for it.

    NOTIFY is sent after the commit, on a separate connection: in the transaction itself it takes a global lock at
    commit (16 writers went from 8,050 to 2,800 commits a second). Many calls make one NOTIFY every 250 ms; a lost one
    costs one poll. Behind a transaction pooler LISTEN succeeds and stays silent, so the listener sends a notification
    to itself over the second connection and warns when it does not arrive.
    """

    def __init__(self, url: str) -> None:
        self._dsn = postgres_url.libpq(url)
        self._sender: asyncpg.Connection[Any] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._wanted = False
        self._heard = asyncio.Event()
        self.arrived = asyncio.Event()

    @property
    def works(self) -> bool:
        """Whether notifications have reached this process over the current connection."""
        return self._heard.is_set()

    def notify(self) -> None:
        """Wakes the workers soon. Returns at once, never raises, does nothing while the database is unavailable."""
        self._wanted = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def listen(self) -> None:
        """Runs until cancelled: sets `arrived` for each notification and once after every new connection."""
        pause_s = RECONNECT_S[0]
        while True:
            try:
                await self._listen_once()
                pause_s = RECONNECT_S[0]
            except CONNECTION_ERRORS as exc:
                log.debug("listening failed: %s", type(exc).__name__)
            self._heard.clear()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RECONNECT_S[1])

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            with suppress(asyncio.CancelledError):
                await self._sending
        self._disconnect()

    async def _listen_once(self) -> None:
        connection = await asyncpg.connect(self._dsn, timeout=CONNECT_S)
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._on_notify)
            self.arrived.set()  # for notifications that were sent while there was no listener
            self.notify()
            try:
                async with asyncio.timeout(FIRST_NOTIFICATION_S):
                    await self._heard.wait()
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
            await asyncio.sleep(NOTIFY_INTERVAL_S)

    async def _sent(self) -> bool:
        try:
            if self._sender is None:
                self._sender = await asyncpg.connect(self._dsn, timeout=CONNECT_S)
            await self._sender.execute(NOTIFY, timeout=CONNECT_S)
        except CONNECTION_ERRORS as exc:
            log.debug("notifying failed: %s", type(exc).__name__)
            self._disconnect()
            return False
        return True

    def _disconnect(self) -> None:
        connection, self._sender = self._sender, None
        if connection is not None:
            connection.terminate()
