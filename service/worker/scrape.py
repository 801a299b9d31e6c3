"""Metrics of the API and of the worker: those of the process, and those read from the database.

The database is read at most every few seconds; while it is down, only the process's own numbers are served, and
`loxodon_database_up` is 0.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import nan
from typing import get_args

from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

from service import __version__
from service.domain.errors import ServiceError
from service.domain.job import JobName
from service.observability.metrics import POOL, POOL_SIZE, POOL_WAITING
from service.postgres import readiness, vitals
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
TABLE_BYTES = Gauge("loxodon_table_bytes", "The same in bytes, with indexes and TOAST", ["table"])
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
        jobs = await vitals.queue(session)
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
            for table in await vitals.tables(session):
                TABLE_ROWS.labels(table.name).set(table.rows)
                TABLE_BYTES.labels(table.name).set(table.bytes)
            for (kind, figure), value in (await vitals.upkeep(session)).items():
                gauge = CONSOLIDATION_LAG if figure == "lag_s" else JOB_ITEMS.labels(kind, figure)
                gauge.set(nan if value is None else value)
            self._tables_until = self._clock() + TABLES_KEPT_S
