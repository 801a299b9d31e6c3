"""The worker's own port: health for probes and metrics for Prometheus (LOXODON_WORKER_PORT).

A small separate server, because a web framework would take 15 MB for four addresses. It needs no key, so it should
listen where only monitors can reach it (docs/metrics.md).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from service.domain.errors import SchemaMismatch, ServiceError
from service.kit.settings import Settings, SettingsError
from service.postgres import readiness
from service.runtime.resources import Resources
from service.worker.scrape import CONTENT_TYPE, Scrape

REQUEST_S = 5.0
"""Time-out for receiving a request, and for sending the answer."""

HEAD_BYTES = 16 * 1024
CONNECTIONS = 100  # beyond this the oldest is closed, so that a probe is always answered
READY_TIMEOUT_S = 2.0

log = logging.getLogger(__name__)
Answer = tuple[HTTPStatus, str, bytes]


class HealthPort:
    """Answers of the port: that the process is alive, whether it works and if not why, and its metrics."""

    def __init__(self) -> None:
        self._res: Resources | None = None
        self._scrape: Scrape | None = None
        self._why = "The worker has not found its database yet."

    def working(self, res: Resources) -> None:
        """Marks the worker as claiming jobs with these resources."""
        self._res, self._scrape = res, Scrape(res)

    def stopped(self, why: str) -> None:
        """Marks the worker as not claiming jobs. `why`: a sentence for readiness probes."""
        self._res, self._why = None, why

    async def answer(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return _sentence(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is served here.")
        if path == "/livez":
            return _json(HTTPStatus.OK, {"status": "ok"})
        if path == "/readyz":
            why = await self._why_not_ready()
            return (
                _json(HTTPStatus.OK, {"status": "ok"})
                if why is None
                else _sentence(HTTPStatus.SERVICE_UNAVAILABLE, why)
            )
        if path == "/metrics":
            if self._scrape is None:
                return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, self._why)
            return HTTPStatus.OK, CONTENT_TYPE, await self._scrape.text()
        return _sentence(HTTPStatus.NOT_FOUND, "Served here are /livez, /readyz and /metrics.")

    async def _why_not_ready(self) -> str | None:
        if self._res is None:
            return self._why
        try:
            await asyncio.wait_for(readiness.check(self._res.db), READY_TIMEOUT_S)
        except SchemaMismatch as exc:
            return exc.detail
        except (ServiceError, TimeoutError):
            return "The database does not answer."
        return None


@asynccontextmanager
async def serve(settings: Settings, port: HealthPort) -> AsyncIterator[None]:
    """Opens the port within the block, if the settings name one. Raises SettingsError if it is taken."""
    if settings.jobs.port is None:
        yield
        return

    held: dict[asyncio.StreamWriter, None] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held[writer] = None
        if len(held) > CONNECTIONS:
            (oldest := next(iter(held))).close()
            del held[oldest]
        try:
            async with asyncio.timeout(REQUEST_S):
                await _exchange(reader, writer, port)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a monitor that went away, or sent no request
        except Exception as exc:  # a probe must not end the worker
            log.warning("the health port failed: %s", type(exc).__name__)
        finally:
            held.pop(writer, None)
            writer.close()

    where = f"{settings.server.host}:{settings.jobs.port}"
    try:
        server = await asyncio.start_server(connected, settings.server.host, settings.jobs.port, limit=HEAD_BYTES)
    except OSError as exc:
        raise SettingsError(f"LOXODON_WORKER_PORT: the worker cannot listen on {where}: {exc.strerror}.") from exc
    async with server:
        log.info("health and metrics on %s", where)
        yield


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: HealthPort) -> None:
    """Handles one request and closes the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    method, target = (words[0], words[1]) if len(words) == 3 else ("", "")
    status, kind, body = await port.answer(method, target.partition("?")[0])
    writer.write(
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n".encode("latin-1")
    )
    if method != "HEAD":
        writer.write(body)
    await writer.drain()


def _json(status: HTTPStatus, said: dict[str, str]) -> Answer:
    return status, "application/json", json.dumps(said).encode()


def _sentence(status: HTTPStatus, why: str) -> Answer:
    return _json(status, {"status": "unavailable", "detail": why})
