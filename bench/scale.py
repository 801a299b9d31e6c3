"""Latency and recall of search in 10,000, 100,000 and a million memories.

    python -m bench.scale 100000 [--plans] [--only recall|latency] [--questions 40]

Builds the database of that size once (scale_store.py) and keeps it. For the big user, who owns that many rows, and for
users of 2,000 and 20,000 rows beside it in the same tables, and for conditions that let 0.01 % to 100 % of the rows
through, a range of numbers in metadata and equality (=), both served by the index of filter keys:

- recall@10 of the vector arm against the exact order of the vectors, and whether as many candidates came as are wanted
  or there are
- milliseconds of the service's candidate statements, beside the floor: the same statements with the same values in the
  same transaction, sent by bare asyncpg on a connection of the application role
- milliseconds of a whole search over HTTP with the question's embedding known already (each is asked once before), with
  whole statements (nine words besides stop words) and with questions as people ask them (five), of all samples and of
  those taken while the machine ran at full speed (core_speed.py), beside the floor: all queries of such a search,
  from BEGIN to COMMIT, by bare asyncpg
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from bench import core_speed, scale_data, scale_store, sentences, target
from bench.clients import Client
from bench.numbers import mean, percentile, table
from bench.scale_data import SHARES, Sources
from bench.scale_store import Store
from bench.superuser import login_url
from service.domain import filters, sizes
from service.domain.query import ANYTHING, EVER, Narrow, Query
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.language import lexemes
from service.launch.run import is_ready
from service.memories.statements import visibility
from service.postgres import scopes
from service.postgres.engine import Database, driver
from service.postgres.rights import find_access
from service.postgres.roles import APP
from service.runtime.opening import open_resources
from service.runtime.resources import Resources
from service.search import indexed_conditions
from service.search.search import search
from service.search.statements import approximate, candidates, exact, term_statistics
from service.search.statements.search_plan import MIN_ARM_LIMIT, NOWHERE, Candidates, SearchPlan

SETTINGS = Settings.from_env({})
EXACT_ROWS, BINARY_ROWS = sizes.EXACT_ROWS, sizes.BINARY_ROWS
ARM, WANTED = MIN_ARM_LIMIT, 10
PERCENT = (100.0, 50.0, 10.0, 1.0, 0.1, 0.01)
EQUAL_PERCENT = (10.0, 1.0, 0.1, 0.01)
SMALLER = ("small-0", "mid-0")

TRUTH = """
    SELECT v.memory_id FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE {vectors} AND v.generation = 1 AND v.kind = 'text' AND {rows}
    ORDER BY (v.embedding <=> CAST(:query_vector AS halfvec)) + 0 LIMIT 10
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A user, the share of the rows that its searches may see, and whether equality says which."""

    user: str
    percent: float
    equal: bool = False

    def plan(self, workspace: UUID) -> SearchPlan:
        scope = Scope(workspace, user_id=self.user)
        narrow = self._narrow()
        rows = visibility.conditions("m", Query(scope, CleanText("?"), WANTED, narrow=narrow), datetime.now(UTC))
        found, within = indexed_conditions.find_keys(narrow), indexed_conditions.find_column_ranges(narrow, EVER)
        matching, vectors = scopes.readable("m", scope), scopes.readable("v", scope)
        return SearchPlan(matching, vectors, rows, 1, EXACT_ROWS, found, within, arm_limit=ARM, limit=WANTED)

    def _narrow(self) -> Narrow:
        """One share is 0.01 % of the rows, one topic 1 %."""
        if self.percent == 100:
            return ANYTHING
        share = round(SHARES * self.percent / 100)
        if not self.equal:
            return Narrow(filters.read({"field": "metadata.share", "operator": "lt", "value": share}))
        if self.percent >= 1:
            return Narrow(tags=tuple(f"topic:{each}" for each in range(round(self.percent))))
        return Narrow(filters.read({"field": "metadata.share", "operator": "in", "value": list(range(share))}))

    @property
    def shown(self) -> str:
        return f"{'= ' if self.equal else ''}{self.percent} %"


def cells(size: int) -> list[Cell]:
    """The big user with every condition, the others with none and a narrow one."""
    known = {name for name, _ in scale_data.users(size)}
    others = [Cell(name, percent) for name in SMALLER if name in known for percent in (100.0, 1.0)]
    equal = (Cell("big", percent, equal=True) for percent in EQUAL_PERCENT)
    return [*others, *(Cell("big", percent) for percent in PERCENT), *equal]


def asking(plan: SearchPlan, found: Sources, count: int, texts: Sequence[str] | None = None) -> list[SearchPlan]:
    """The plan with the terms and vector of each statement; `texts`: the terms of these instead."""
    return [
        replace(plan, terms=sorted({lexemes.term_id(term) for term in lexemes.lexemes(words)}), vector=vector)
        for words, vector in zip((texts or found.questions)[:count], found.asked, strict=False)
    ]


async def find(database: Database, plan: SearchPlan, scope_rows: int) -> Candidates:
    async with database.snapshot(plan.scope.values["workspace"]) as session:
        return await candidates.find(session, plan, scope_rows, binary_rows=BINARY_ROWS)


@asynccontextmanager
async def application(store: Store) -> AsyncIterator[Database]:
    access = await find_access(login_url(store.url, APP), wanted_role=APP, pooled=False)
    database = Database(access, pool_size=1, pool_timeout_s=10, statement_timeout_s=600)
    async with database.begin(store.workspace) as session:
        counted = await session.scalar(text("SELECT count(*) FROM term_stat"))
        if not counted:
            await term_statistics.count(session)
    yield database
    await database.close()


async def scope_rows_of(database: Database, plan: SearchPlan) -> int:
    async with database.read(plan.scope.values["workspace"]) as session:
        return (await candidates.summary(session, plan.scope, NOWHERE, count_to=BINARY_ROWS)).rows


# -- recall and counts ----------------------------------------------------------------------------------------------


async def recall(store: Store, found: Sources, count: int) -> str:
    rows = []
    async with application(store) as database:
        for cell in cells(store.size):
            plan = cell.plan(store.workspace)
            rows.append(await _recall(database, cell, plan, asking(plan, found, count)))
            print(".", end="", flush=True)
    print()
    return table(["user", "of the rows", "recall@10", "counts right", "paths"], rows)


async def _recall(database: Database, cell: Cell, plan: SearchPlan, asked: Sequence[SearchPlan]) -> list[object]:
    scope_rows = await scope_rows_of(database, plan)
    hits: list[float] = []
    right = 0
    paths: dict[str, int] = {}
    for each in asked:
        got = await find(database, each, scope_rows)
        wanted = await _nearest(database, each)
        first = list(got.arms.get("text_vector", ()))[:10]
        hits.append(len(set(first) & set(wanted)) / len(wanted) if wanted else 1.0)
        right += len({each for arm in got.arms.values() for each in arm}) >= len(wanted)
        paths[got.path] = paths.get(got.path, 0) + 1
    shown = ", ".join(f"{path} {times}" for path, times in sorted(paths.items()))
    return [cell.user, cell.shown, f"{mean(hits):.3f}", f"{right}/{len(asked)}", shown]


async def _nearest(database: Database, plan: SearchPlan) -> list[UUID]:
    """The ten nearest of all rows, exactly; fewer where there are fewer."""
    assert plan.vector is not None
    query_vector = "[" + ",".join(map(str, plan.vector.tolist())) + "]"
    sql = text(TRUTH.format(vectors=plan.vector_scope.sql, rows=plan.conditions.sql))
    async with database.snapshot(plan.scope.values["workspace"]) as session:
        values = {**plan.vector_scope.values, **plan.conditions.values, "query_vector": query_vector}
        return list(await session.scalars(sql, values))


# -- latency --------------------------------------------------------------------------------------------------------


async def latency(store: Store, found: Sources, count: int) -> str:
    """The service's statements beside the same by bare asyncpg."""
    rows = []
    async with application(store) as database:
        for cell in cells(store.size):
            plan = cell.plan(store.workspace)
            scope_rows = await scope_rows_of(database, plan)
            kinds = {"statements": asking(plan, found, count if cell.percent == 100 else max(4, count // 8))}
            if cell.percent == 100:
                kinds["questions"] = asking(plan, found, count, sentences.questions(count, 3))
            for kind, few in kinds.items():
                service, floor = await _timed(database, few, scope_rows)
                rows.append([cell.user, cell.shown, kind, *_percentiles(service), *_percentiles(floor)])
    head = ["user", "of the rows", "asked with", "service p50", "p95", "p99", "floor p50", "p95", "p99"]
    return table(head, rows)


async def _timed(database: Database, asked: Sequence[SearchPlan], scope_rows: int) -> tuple[list[float], list[float]]:
    """Milliseconds by the service, and by bare asyncpg of the very queries that it sent."""
    await find(database, asked[0], scope_rows)
    service, floor = [], []
    for each in asked:
        await find(database, each, scope_rows)  # the floor finds warm pages too
        async with _recorded(database) as sent:
            began = time.perf_counter()
            await find(database, each, scope_rows)
            service.append((time.perf_counter() - began) * 1000)
        floor.append(await _bare(database, sent))
    return service, floor


Sent = tuple[str, tuple[Any, ...]]
"""A query and its parameters."""


@asynccontextmanager
async def _recorded(database: Database) -> AsyncIterator[list[Sent]]:
    """What is sent inside the block on the only connection of the pool."""
    sent: list[Sent] = []
    async with database.read() as session:
        raw = await driver(session)
    with raw.query_logger(lambda asked: sent.append((asked.query, asked.args))):
        yield sent


async def _bare(database: Database, sent: Sequence[Sent]) -> float:
    """Milliseconds of the same queries, from BEGIN to COMMIT, on the driver's connection."""
    async with database.engine.connect() as session:
        raw = await driver(session)
        took = 0.0
        for _ in range(2):  # the first prepares
            began = time.perf_counter()
            for sql, values in sent:
                await (raw.fetch(sql, *values) if values else raw.execute(sql))
            took = (time.perf_counter() - began) * 1000
        return took


def _percentiles(found: Sequence[float]) -> list[str]:
    return [f"{percentile(found, share):.1f}" for share in (0.50, 0.95, 0.99)]


async def over_http(store: Store, found: Sources, count: int) -> str:
    """Whole searches, with statements and with short questions, beside all their queries by bare asyncpg."""
    rows = []
    settings = Settings.from_env({"LOXODON_DATABASE_URL": login_url(store.url, APP), "LOXODON_POOL_SIZE": "1"})
    asked = {"statements": found.questions[:count], "questions": sentences.questions(count, 3)}
    with serving(store) as url:
        client = Client(url, store.key, timeout_s=60)
        async with open_resources(settings) as res:
            for user in [*(name for name, _ in scale_data.users(store.size) if name in SMALLER), "big"]:
                for kind, texts in asked.items():
                    rows.append([user, kind, *await _whole(client, res, store, user, texts)])
        await client.close()
    head = ["user", "asked with", "HTTP p50", "p95", "p99", "steady p50", "p95", "p99", "of them", "floor p50", "p95"]
    return table([*head, "p99", "path", "counts right"], rows)


async def _whole(client: Client, res: Resources, store: Store, user: str, texts: Sequence[str]) -> list[object]:
    """A row of the table: every text searched for once to warm up, then by HTTP, then by bare asyncpg."""
    took, floor, right, path = [], [], 0, ""
    for words in texts:
        body = json.dumps({"query": words, "user_id": user, "limit": WANTED}).encode()
        await client.post("/v1/memories/search", body)
        before = core_speed.slowest_core_ms()
        answer = await client.post("/v1/memories/search", body)
        assert answer.status == 200, answer.body[:300]
        took.append(core_speed.Sample(answer.ms, max(before, core_speed.slowest_core_ms())))
        floor.append(await _floor(res, Query(Scope(store.workspace, user_id=user), CleanText(words), WANTED)))
        right += len(answer.json["results"]) == WANTED
        path = answer.json["vector_path"]
    steady, every = core_speed.steady(took), [each.ms for each in took]
    shown = [*_percentiles(every), *_percentiles(steady), len(steady), *_percentiles(floor)]
    return [*shown, path, f"{right}/{len(texts)}"]


async def _floor(res: Resources, query: Query) -> float:
    """Milliseconds of all that a search asks the database."""
    await search(query, res)  # what is remembered between searches is known to both
    async with _recorded(res.db) as sent:
        await search(query, res)
    return await _bare(res.db, sent)


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """The API alone on this database, without a worker."""
    port = target.free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOXODON_")}
    env = clean | {
        "LOXODON_DATABASE_URL": login_url(store.url, APP),
        "LOXODON_PORT": str(port),
        "LOXODON_AUDIT_LEVEL": "writes",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "service", "api"], cwd=target.ROOT, env=env, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while not is_ready(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("The API did not start.")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)


# -- plans ----------------------------------------------------------------------------------------------------------


async def plans(store: Store, found: Sources) -> str:
    """What EXPLAIN ANALYZE says of each path."""
    parts = []
    async with application(store) as database:
        wanted = [("exact", Cell("small-0", 100.0)), ("hnsw", Cell("big", 100.0)), ("fallback", Cell("big", 0.01))]
        for name, cell in wanted:
            plan = asking(cell.plan(store.workspace), found, 1)[0]
            async with database.snapshot(store.workspace) as session:
                if name == "exact":
                    shape, values = exact.statement(plan), exact.values(plan)
                else:
                    statistics = await approximate.read_frequencies(session, plan.terms)
                    shape = approximate.statement(plan, "hnsw")
                    values = approximate.values(plan, "hnsw", statistics)
                explained = text(f"EXPLAIN (ANALYZE, COSTS OFF) {shape.text}").bindparams(*shape._bindparams.values())
                lines = [row[0][:160] for row in await session.execute(explained, values)]
            parts.append("\n".join([f"== {name}", *lines]))
    return "\n\n".join(parts)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("size", type=int, nargs="?", default=100_000, help="rows of the big user")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--only", choices=["recall", "latency"])
    parser.add_argument("--plans", action="store_true", help="print the plan of each path and nothing else")
    options = parser.parse_args(words)
    found = scale_data.sources(scale_store.FOLDER)
    with scale_store.opened(options.size) as store:
        print(f"{options.size:,} rows; built in {store.took['all']:.0f} s")
        if options.plans:
            print(asyncio.run(plans(store, found)))
            return 0
        if options.only != "recall":
            print(asyncio.run(latency(store, found, options.questions)), end="\n\n")
            print(asyncio.run(over_http(store, found, options.questions)), end="\n\n")
        if options.only != "latency":
            print(asyncio.run(recall(store, found, options.questions)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
