"""A Unix socket in front of Postgres that cuts the connection at a chosen statement of a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy.engine import make_url

WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
READ = b"BEGIN READ ONLY"
SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
Moment = Literal["before", "after"]


@dataclass
class PostgresProxy:
    """`cut_at`: bytes of a statement (b"": none). A connection that sends them in a transaction begun with `begun_by`
    ends before the statement has run, or after it, with its answer lost."""

    url: str
    upstream: str
    cut_at: bytes = b""
    moment: Moment = "before"
    begun_by: bytes = WRITE

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self.upstream)
        muted = asyncio.Event()
        back = asyncio.create_task(self._answers(server_reader, writer, muted))
        may_cut = False
        try:
            while data := await reader.read(65_536):
                if b"BEGIN" in data:
                    may_cut = self.begun_by in data
                cut = may_cut and bool(self.cut_at) and self.cut_at in data
                if cut and self.moment == "before":
                    break
                if cut:
                    muted.set()
                server_writer.write(data)
                if cut:
                    await back  # until Postgres has answered; the answer is dropped
                    break
        finally:
            back.cancel()
            writer.transport.abort()
            server_writer.transport.abort()

    async def _answers(
        self, server_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, muted: asyncio.Event
    ) -> None:
        while data := await server_reader.read(65_536):
            if muted.is_set():
                return
            writer.write(data)
        writer.close()


@asynccontextmanager
async def postgres_proxy(owner_url: str, folder: Path) -> AsyncIterator[PostgresProxy]:
    """A proxy before the test database, listening in `folder` (which must have a short path)."""
    real = make_url(owner_url)
    name = f".s.PGSQL.{real.query['port']}"
    url = real.update_query_dict({"host": str(folder)}).render_as_string(hide_password=False)
    proxy = PostgresProxy(url, f"{real.query['host']}/{name}")
    server = await asyncio.start_unix_server(proxy.connected, str(folder / name))
    async with server:
        yield proxy
