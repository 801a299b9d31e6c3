"""The lower bound of write times: the same rows by bare asyncpg, with no product around it.

The rows are those that the service wrote: read back, given new ids, a workspace of their own and slightly turned
vectors (equal ones would cost HNSW nothing), and inserted again: as the application role, under row-level security,
with all indexes and constraints, one transaction per memory, one prepared INSERT per table, no look-up, no lock. Jobs
are due in an hour, so no worker takes them up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg  # type: ignore[import-untyped]
import numpy as np
from pgvector import HalfVector
from pgvector.asyncpg import register_vector

from bench.clients import LoadRun, TimedResponse
from service.postgres.engine import Access, connect_arguments
from service.postgres.roles import APP

Row = Mapping[str, Any]

# In the order of the service's write. By memory_id, except where another column holds it.
TABLES = ("memory", "memory_stat", "memory_vector", "memory_history", "job", "audit_log")
HOLDS = {
    "memory": "id = $1",
    "audit_log": "affected_ids = ARRAY[$1::uuid]",
    "job": "memory_id = $1 AND kind = 'enrich'",
}
# what the service leaves to the server, so do we
BY_DEFAULT = frozenset({"seq", "recorded_at", "position", "binary_embedding"})
TURN = 0.02  # noise per dimension: cosine about .93 to the original
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL loxodon.workspace = '{}'; SET LOCAL lock_timeout = 5000"


@dataclass(frozen=True, slots=True)
class Written:
    """One memory's rows in all tables."""

    rows: tuple[tuple[str, tuple[Row, ...]], ...]


async def read(database: str, memory_ids: Sequence[str], workspace: UUID) -> list[Written]:
    """The rows of these memories, made new for `workspace`."""
    connection = await _connect(database, role=None)
    chance = np.random.default_rng(7)
    found = []
    for memory_id in memory_ids:
        ids = {UUID(memory_id): uuid4()}
        rows = []
        for table in TABLES:
            old = await connection.fetch(f"SELECT * FROM {table} WHERE {HOLDS.get(table, 'memory_id = $1')}", *ids)
            rows.append((table, tuple(_renewed(row, ids, workspace, chance) for row in old)))
        found.append(Written(tuple(rows)))
    await connection.close()
    return found


def _renewed(row: Row, ids: Mapping[UUID, UUID], workspace: UUID, chance: np.random.Generator) -> Row:
    new = {name: value for name, value in row.items() if name not in BY_DEFAULT} | {"workspace_id": workspace}
    if "id" in new:
        new["id"] = ids.get(new["id"]) or uuid4()
    if "memory_id" in new:
        new["memory_id"] = ids[new["memory_id"]]
    if "affected_ids" in new:
        new["affected_ids"] = list(ids.values())
    if "embedding" in new:
        vector = new["embedding"].to_numpy().astype(np.float32)
        turned = vector + chance.normal(0, TURN, len(vector)).astype(np.float32)
        new["embedding"] = HalfVector(turned / np.linalg.norm(turned))
    if "run_after" in new:
        later = datetime.now(UTC) + timedelta(hours=1)
        new |= {"run_after": later, "state": "ready", "worker": None, "attempts": 0, "lease_until": None}
        new["finished_at"] = None
    return new


async def write(database: str, memories: Sequence[Written], workspace: UUID, *, connections: int) -> LoadRun:
    """Writes every memory in a transaction of its own, `connections` at a time; each connection's first is not timed:
    it prepares the statements and fills the backend's caches, as a pool's connections have long done."""
    begin = BEGIN.format(workspace)
    pool = [await _Connection.open(database, begin) for _ in range(connections)]
    for connection, memory in zip(pool, memories, strict=False):
        await connection.write(memory)
    rest = iter(memories[connections:])
    answers: list[TimedResponse] = []

    async def work(connection: _Connection) -> None:
        for memory in rest:
            began = time.perf_counter()
            await connection.write(memory)
            answers.append(TimedResponse(201, b"", (time.perf_counter() - began) * 1000))

    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work(connection) for connection in pool))
    wall_s = time.perf_counter() - began
    generator_cpu = (time.process_time() - cpu) / wall_s
    for connection in pool:
        await connection.close()
    return LoadRun(answers, wall_s, generator_cpu)


class _Connection:
    """One connection of the application with its prepared statements."""

    def __init__(self, raw: asyncpg.Connection[Any], begin: str) -> None:
        self._raw, self._begin = raw, begin
        self._statements: dict[str, Any] = {}

    @classmethod
    async def open(cls, database: str, begin: str) -> _Connection:
        return cls(await _connect(database, role=APP), begin)

    async def write(self, memory: Written) -> None:
        await self._raw.execute(self._begin)
        for table, rows in memory.rows:
            for row in rows:
                if table not in self._statements:
                    self._statements[table] = await self._raw.prepare(_insert(table, list(row)))
                await self._statements[table].fetch(*row.values())
        await self._raw.execute("COMMIT")

    async def close(self) -> None:
        await self._raw.close()


def _insert(table: str, columns: Sequence[str]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({', '.join(f'${place}' for place in range(1, len(columns) + 1))})"


async def _connect(database: str, *, role: str | None) -> asyncpg.Connection[Any]:
    settings = connect_arguments(Access(database))["server_settings"]
    connection = await asyncpg.connect(database, server_settings=settings | ({"role": role} if role else {}))
    await register_vector(connection)
    return connection
