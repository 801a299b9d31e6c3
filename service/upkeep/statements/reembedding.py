"""The part of re-embedding that the owner of the tables does: beginning a generation, rolling back to the last one,
dropping old ones.

Each generation has its own graph (HNSW index) on each table of vectors, and a CHECK on the length of its vectors. The
graphs are created empty, before the first vector and CONCURRENTLY, so they block nobody and are complete as soon as the
last vector is stored. The vectors are made by the job `reembed`. docs/decisions/065-re-embedding.md
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool
from uuid_utils.compat import uuid7

from service.domain.errors import Conflict
from service.domain.job import LONG_MAX_ATTEMPTS
from service.domain.scope import NIL_WORKSPACE
from service.postgres import readiness, rights, roles
from service.postgres.driver_errors import LOCK_TIMEOUT, translated_errors
from service.queue.statements import queue
from service.runtime.statements import generations
from service.runtime.statements.generations import Generation

LOCK_TRIES, LOCK_WAIT_MS = 100, 500
"""A CHECK, or dropping a graph, needs an exclusive lock on the table for a moment. While it waits for the lock, all
others queue after it, so it waits half a second at most, lets them pass, and tries again."""

KEPT_S = 60.0
"""For this long after the cut-over the previous generation is not dropped: processes notice within seconds, and
requests that began before it end after LOXODON_REQUEST_DEADLINE_S."""

# tried, never waited for, because CREATE INDEX CONCURRENTLY waits for all older statements, even for one that waits for
# it
ALONE = text("SELECT pg_try_advisory_lock(hashtextextended('loxodon:reembed', 0))")

ADD = text("""
    INSERT INTO embedding_generation (generation, model, dimension, state)
    VALUES (:number, :model, :dimension, 'retired')
""")
MOVE = text("UPDATE embedding_generation SET state = :state WHERE generation = :number")
ACTIVATE = text("UPDATE embedding_generation SET state = 'active', activated_at = now() WHERE generation = :number")
FORMER = text("""
    SELECT generation FROM embedding_generation WHERE state = 'retired' AND activated_at IS NOT NULL
    ORDER BY activated_at DESC LIMIT 1
""")
IS_FRESH = text("""
    SELECT activated_at > now() - make_interval(secs => :seconds) FROM embedding_generation WHERE state = 'active'
""")
LEAVES = text("""
    SELECT i.relid::regclass::text AS name FROM pg_partition_tree(CAST(:parent AS regclass)) i WHERE i.isleaf ORDER BY 1
""")
IS_BROKEN = text("SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")
IS_ATTACHED = text("SELECT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(:name))")
HAS_CHECK = text("SELECT convalidated FROM pg_constraint WHERE conrelid = CAST(:on AS regclass) AND conname = :name")
# A running job that has made nothing yet may have looked before there was anything to do.
WORKING = text("""
    SELECT EXISTS (SELECT FROM job WHERE workspace_id = :workspace AND kind = 'reembed' AND run_after <= now()
                   AND (state = 'ready' OR (state = 'running' AND progress IS NOT NULL)))
""")


@dataclass(frozen=True, slots=True)
class VectorGraph:
    """The graph of a table of vectors. `only`: the condition for its rows."""

    table: str
    is_partitioned: bool = False
    only: str = ""
    options: str = ""

    def name(self, number: int, table: str | None = None) -> str:
        return f"ix_{table or self.table}_hnsw_{number}"

    def sql(self, generation: Generation, table: str, how: str = "CONCURRENTLY") -> str:
        """CREATE INDEX on the table, or on one of its partitions. The baseline migration made those of generation 1."""
        create = "ON ONLY" if how == "ONLY" else "ON"
        concurrently = "CONCURRENTLY " if how == "CONCURRENTLY" else ""
        return (
            f"CREATE INDEX {concurrently}IF NOT EXISTS {self.name(generation.number, table)} {create} {table} "
            f"USING hnsw ((embedding::halfvec({generation.dimension})) halfvec_cosine_ops){self.options} "
            f"WHERE generation = {generation.number}{self.only}"
        )


GRAPHS = (
    VectorGraph("memory_vector", True, " AND kind = 'text'", " WITH (m = 24, ef_construction = 200)"),
    VectorGraph("turn_vector", True),
    VectorGraph("strategy_vector"),
    VectorGraph("entity_vector"),
)
CHECKED = ("memory_vector", "turn_vector", "goal_vector", "strategy_vector")
"""Tables that check the length of a generation's vectors."""


async def begin(owner_url: str, model: str, dimension: int, *, again: bool = False) -> tuple[Generation, bool]:
    """Begins to build a generation of this embedder, or continues one that was begun or active before; returns it, and
    whether a job was queued. `again`: a new one even if the active one is of this embedder.

    Raises Conflict if there is nothing to do, or another one is being built.
    """
    async with _alone(owner_url) as owner:
        known = await generations.read_all_in(owner)
        building, current = generations.in_state(known, "building"), generations.in_state(known, "active")
        assert current is not None, "read_all_in() has seen one"
        if building and (building.model, building.dimension) != (model, dimension):
            raise Conflict(f"Vectors of {building} are being made. Stop that first: `loxodon reembed --rollback`.")
        if not building and not again and (current.model, current.dimension) == (model, dimension):
            raise Conflict(
                f"The vectors are of {current} already, the embedder that the settings name. "
                "`loxodon reembed --again` computes all of them again."
            )
        wanted = building or await _choose_generation(owner, known, model, dimension, current)
        await _make_graphs(owner, wanted)
        async with _transaction(owner):
            await owner.execute(MOVE, {"state": "building", "number": wanted.number})
            queued = await _queue(owner)
        return replace(wanted, state="building"), queued


async def roll_back(owner_url: str) -> tuple[Generation, Generation]:
    """Gives up the generation that is being built, or else activates the last retired one again; a job makes the
    vectors that it lacks. Returns the generation that searches use now, and the one that they no longer use. Raises
    Conflict if none is kept."""
    async with _alone(owner_url) as owner, _transaction(owner):
        known = await generations.read_all_in(owner)
        building, current = generations.in_state(known, "building"), generations.in_state(known, "active")
        assert current is not None, "read_all_in() has seen one"
        if building:
            await owner.execute(MOVE, {"state": "retired", "number": building.number})
            return current, building
        former = await owner.scalar(FORMER)
        if former is None:
            raise Conflict("No earlier generation of vectors is kept: there is nothing to go back to.")
        await owner.execute(MOVE, {"state": "retired", "number": current.number})
        await owner.execute(ACTIVATE, {"number": former})
        await _queue(owner)
        return next(generation for generation in known if generation.number == former), current


async def drop_retired(owner_url: str) -> list[Generation]:
    """Drops the graphs of retired generations, and queues a job that deletes their vectors; returns them. Raises
    Conflict while one is being built, or if none is kept."""
    async with _alone(owner_url) as owner:
        known = await generations.read_all_in(owner)
        if generations.in_state(known, "building"):
            raise Conflict("Vectors are being made, and searches use the old ones until then. Drop these afterwards.")
        old = [
            generation for generation in known if generation.state in ("retired", "dropped")
        ]  # of a run that was killed, too
        if not any(generation.state == "retired" for generation in old):
            raise Conflict("No earlier generation of vectors is kept: there is nothing to drop.")
        if await owner.scalar(IS_FRESH, {"seconds": KEPT_S}):
            raise Conflict(
                "The switch to the new vectors was less than a minute ago, and older requests may still run."
            )
        async with _transaction(owner):
            for generation in old:
                await owner.execute(MOVE, {"state": "dropped", "number": generation.number})
            await _queue(owner)
        for generation in old:
            for graph in GRAPHS:
                await _patiently(owner, f"DROP INDEX IF EXISTS {graph.name(generation.number)}")
        return [generation for generation in old if generation.state == "retired"]


async def _choose_generation(
    owner: AsyncConnection, known: list[Generation], model: str, dimension: int, current: Generation
) -> Generation:
    """A retired generation of this embedder, as after a roll-back, or a new one; `retired` until its graphs exist."""
    kept = [
        generation
        for generation in known
        if generation.state == "retired" and (generation.model, generation.dimension) == (model, dimension)
    ]
    if kept and (current.model, current.dimension) != (model, dimension):
        return kept[-1]
    number = known[-1].number + 1
    await owner.execute(ADD, {"number": number, "model": model, "dimension": dimension})
    return Generation(number, model, dimension, "retired")


async def _make_graphs(owner: AsyncConnection, generation: Generation) -> None:
    """Creates missing graphs and CHECKs, and completes those that a killed run left unfinished."""
    number = generation.number
    for graph in GRAPHS:
        tables = [graph.table]
        if graph.is_partitioned:
            tables = list(await owner.scalars(LEAVES, {"parent": graph.table}))
            await _patiently(owner, graph.sql(generation, graph.table, "ONLY"))
        for table in tables:
            name = graph.name(number, table)
            if await owner.scalar(IS_BROKEN, {"name": name}):
                await owner.execute(text(f"DROP INDEX CONCURRENTLY {name}"))
            await owner.execute(text(graph.sql(generation, table)))
            if graph.is_partitioned and not await owner.scalar(IS_ATTACHED, {"name": name}):
                await _patiently(owner, f"ALTER INDEX {graph.name(number)} ATTACH PARTITION {name}")
    for table in CHECKED:
        await _make_check(owner, table, generation)


async def _make_check(owner: AsyncConnection, table: str, generation: Generation) -> None:
    name = f"ck_{table}_dimension_{generation.number}"
    is_valid = await owner.scalar(HAS_CHECK, {"on": table, "name": name})
    if is_valid is None:
        condition = f"generation <> {generation.number} OR vector_dims(embedding) = {generation.dimension}"
        await _patiently(owner, f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID")
    if not is_valid:
        await _patiently(owner, f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")


async def _patiently(owner: AsyncConnection, statement: str) -> None:
    """Runs DDL that locks a table exclusively, without blocking others for long."""
    for left in range(LOCK_TRIES, -1, -1):
        try:
            await owner.execute(text(f"SET lock_timeout = {LOCK_WAIT_MS}"))
            await owner.execute(text(statement))
            return
        except DBAPIError as exc:
            if getattr(exc.orig, "sqlstate", None) != LOCK_TIMEOUT or not left:
                raise
            await asyncio.sleep(LOCK_WAIT_MS / 1000)
        finally:
            await owner.execute(text("SET lock_timeout = 0"))


async def _queue(owner: AsyncConnection) -> bool:
    """Queues the job, unless one is queued or running; returns whether it did."""
    if await owner.scalar(WORKING, {"workspace": NIL_WORKSPACE}):
        return False
    row = {"workspace": NIL_WORKSPACE, "id": uuid7(), "name": "reembed", "reason": "request"}
    await owner.execute(queue.INSERT_RUN, {**row, "max_attempts": LONG_MAX_ATTEMPTS, "payload": json.dumps({})})
    return True


@asynccontextmanager
async def _alone(url: str) -> AsyncIterator[AsyncConnection]:
    """A connection as the owner with autocommit, exclusive among such blocks. Raises StoreUnavailable, or Conflict."""
    engine = create_async_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    try:
        with rights.require_usable(url), translated_errors():
            async with engine.connect() as owner:
                await owner.run_sync(rights.check_owner)
                await readiness.check_session(owner)
                if not await owner.scalar(ALONE):
                    raise Conflict("Another `reembed` is running on this database: try again when it has finished.")
                await owner.execute(text(f"SET ROLE {roles.OWNER}"))
                yield owner
    finally:
        await engine.dispose()


@asynccontextmanager
async def _transaction(owner: AsyncConnection) -> AsyncIterator[None]:
    await owner.execute(text("BEGIN"))
    try:
        yield
    except BaseException:
        await owner.execute(text("ROLLBACK"))
        raise
    await owner.execute(text("COMMIT"))
