"""What monitors read: the metrics of a process, and the worker's own port for probes (LOXODON_WORKER_PORT).

Metrics of the API and of the worker are those of the process, and those read from the database, at most every few
seconds; while it is down, only the process's own numbers are served, and `loxodon_database_up` is 0.

The port is a small separate server, because a web framework would take 15 MB for four addresses. It needs no key, so it
should listen where only monitors can reach it (docs/metrics.md).
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from math import nan
from typing import get_args

from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

from service import __version__
from service.domain.errors import ServiceError
from service.domain.job import JobName
from service.kit.settings import Settings, SettingsError
from service.observability.metrics import POOL, POOL_SIZE, POOL_WAITING
from service.postgres import readiness
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.working.statements import working

CONTENT_TYPE = CONTENT_TYPE_LATEST

KEPT_S = 5.0
"""How long figures of the database are cached: monitors scrape every 15 to 60 s, each of several replicas."""

TABLES_KEPT_S = 30.0
"""How long sizes of tables are cached, which only VACUUM and ANALYZE change."""

TIMEOUT_S = 3.0
"""The longest read; monitors usually wait 10 s."""

INFO = Gauge(
    "loxodon_info",
    "1, with the version of the service and the revision of the schema it expects",
    ["version", "revision"],
)
DATABASE_UP = Gauge(
    "loxodon_database_up", "Whether the database answered, and has a schema that this version can serve"
)
QUEUE_JOBS = Gauge("loxodon_queue_jobs", "Jobs of all workspaces that are due, running or dead", ["kind", "state"])
QUEUE_AGE = Gauge("loxodon_queue_age_seconds", "How long the oldest job of the kind is due", ["kind"])
JOB_ITEMS = Gauge("loxodon_job_items", "What the last run in every workspace did, added up", ["kind", "what"])
CONSOLIDATION_LAG = Gauge(
    "loxodon_consolidation_lag_seconds", "The longest time from a turn to its facts in the last hour; NaN: none came"
)
TABLE_ROWS = Gauge("loxodon_table_rows", "Rows of a table, as of its last VACUUM or ANALYZE", ["table"])
TABLE_BYTES = Gauge("loxodon_table_bytes", "Size of a table in bytes, with its indexes and TOAST", ["table"])
WORKING_BYTES = Gauge("loxodon_working_memory_bytes", "Size of working memory with its indexes, of all workspaces")


class Scrape:
    """Serves the metrics of a process."""

    def __init__(self, res: Resources, clock: Callable[[], float] = time.monotonic) -> None:
        self._res = res
        self._clock = clock
        self._looking = asyncio.Lock()
        self._until = self._tables_until = float("-inf")
        INFO.labels(__version__, str(readiness.EXPECTED_REVISION)).set(1)

    async def text(self) -> bytes:
        """The metrics in the text format of Prometheus; never raises for the database."""
        async with self._looking:
            if self._clock() >= self._until:
                DATABASE_UP.set(await self._look())
                self._until = self._clock() + KEPT_S
        pool = self._res.db.pool
        POOL_SIZE.set(pool.size)
        POOL_WAITING.set(pool.waiting)
        POOL.labels("in_use").set(pool.in_use)
        POOL.labels("idle").set(pool.idle)
        return generate_latest()

    async def _look(self) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await readiness.check(self._res.db)
                async with self._res.db.read() as session:
                    await self._read(session)
        except (ServiceError, TimeoutError):
            return False
        return True

    async def _read(self, session: Session) -> None:
        jobs = await session.execute(readiness.QUEUE)
        QUEUE_JOBS.clear()
        QUEUE_AGE.clear()
        for kind in get_args(JobName):  # 0 rather than no series, which an autoscaler would treat as unknown
            QUEUE_AGE.labels(kind).set(0)
        for state in jobs:
            QUEUE_JOBS.labels(state.kind, state.state).set(state.jobs)
            if state.state == "due":
                QUEUE_AGE.labels(state.kind).set(state.oldest_s)
        WORKING_BYTES.set(await working.size_bytes(session))
        if self._clock() >= self._tables_until:
            for table in await session.execute(readiness.TABLES):
                TABLE_ROWS.labels(table.name).set(table.rows)
                TABLE_BYTES.labels(table.name).set(table.bytes)
            for row in await session.execute(readiness.UPKEEP):
                gauge = CONSOLIDATION_LAG if row.what == "lag_s" else JOB_ITEMS.labels(row.kind, row.what)
                gauge.set(nan if row.items is None else row.items)
            self._tables_until = self._clock() + TABLES_KEPT_S


REQUEST_S = 5.0
"""Time-out for receiving a request, and for sending the answer."""

HEAD_BYTES = 16 * 1024
CONNECTIONS = 100  # beyond this the oldest is closed, so that a probe is always answered

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
            if (why := await self._why_not_ready()) is not None:
                return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, why)
            return _json(HTTPStatus.OK, {"status": "ok"})
        if path == "/metrics":
            if self._scrape is None:
                return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, self._why)
            return HTTPStatus.OK, CONTENT_TYPE, await self._scrape.text()
        return _sentence(HTTPStatus.NOT_FOUND, "Served here are /livez, /readyz and /metrics.")

    async def _why_not_ready(self) -> str | None:
        if self._res is None:
            return self._why
        try:
            await readiness.check(self._res.db, within_s=readiness.PROBE_S, writes=True)
        except ServiceError as exc:
            return exc.detail
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


def _json(status: HTTPStatus, body: dict[str, str]) -> Answer:
    return status, "application/json", json.dumps(body).encode()


def _sentence(status: HTTPStatus, why: str) -> Answer:
    return _json(status, {"status": "unavailable", "detail": why})
