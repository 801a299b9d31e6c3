"""Measures re-embedding under load: failed requests, latencies, and whether searches find the same afterwards.

    python -m bench.reembed [--memories 300] [--copies 0] [--kills 3] [--questions 30]

It starts the whole service on an embedded server, stores sentences, asks questions, and makes all vectors anew with the
same model (`reembed --again`), while one client searches and one stores, and the worker is killed with -9. As both
generations are of one model, a question has the same answers by vector from either: the old generation is the fresh
load that the new one is compared with. --copies writes each memory so many times more past the API, for other users
and with other words behind its text: --memories 2000 --copies 24 makes 50,000.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import asyncpg  # type: ignore[import-untyped]

from bench import sentences, target
from bench.clients import LOST, Client
from bench.numbers import percentile, table
from bench.recall import only
from bench.target import Service
from service.worker import loop

USER = {"user_id": "alice"}
BATCH, LIMIT = 20, 10
LEASE_S = loop.LEASE_S
BUILD_S = 6 * 3_600

COPIED = """
    CREATE TEMPORARY TABLE copied AS
        SELECT *, gen_random_uuid() AS copy_id, 'user-' || number AS copy_user,
               content || ', copy ' || number AS copy_text
          FROM memory CROSS JOIN generate_series(1, {copies}) AS number
"""
COPY = (
    """
    INSERT INTO memory (workspace_id, id, user_id, channel, content, hash, terms, bm25, type, type_confidence,
                        classification_source, importance, importance_level, tags, "timestamp", enriched_at,
                        embedding_status, created_at, updated_at)
    SELECT workspace_id, copy_id, copy_user, channel, copy_text, md5(copy_text), terms, bm25, type, type_confidence,
           classification_source, importance, importance_level, tags, "timestamp", now(), embedding_status, created_at,
           updated_at
      FROM copied
    """,
    """
    INSERT INTO memory_stat (workspace_id, memory_id, last_accessed)
    SELECT workspace_id, copy_id, created_at FROM copied
    """,
    """
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, channel, embedding, created_at)
    SELECT v.workspace_id, c.copy_id, v.generation, v.kind, c.copy_user, v.channel, v.embedding, v.created_at
      FROM copied c JOIN memory_vector v ON v.workspace_id = c.workspace_id AND v.memory_id = c.id
    """,
    "DROP TABLE copied",
    "ANALYZE",
)


@dataclass
class ClientNotes:
    """What the clients noticed. `failed`: no answer, an error, or a warning."""

    search_ms: list[float] = field(default_factory=list)
    store_ms: list[float] = field(default_factory=list)
    failed: int = 0
    stored: list[str] = field(default_factory=list)


async def post(client: Client, path: str, body: object) -> tuple[bool, float, dict[str, object]]:
    """Whether it went well, milliseconds, and the answer."""
    try:
        answer = await client.post(path, json.dumps(body).encode())
    except LOST:
        return False, 0.0, {}
    return answer.status < 400 and not answer.json.get("warnings"), answer.ms, answer.json


async def searches(service: Service, questions: Sequence[str], load: ClientNotes, over: asyncio.Event) -> None:
    client, at = Client(service.url, service.key), 0
    while not over.is_set():
        good, ms, _ = await post(client, "/v1/memories/search", {"query": questions[at % len(questions)], **USER})
        load.failed, at = load.failed + (not good), at + 1
        load.search_ms.append(ms)
    await client.close()


async def stores(service: Service, texts: Sequence[str], load: ClientNotes, over: asyncio.Event) -> None:
    client = Client(service.url, service.key)
    for content in texts:
        if over.is_set():
            break
        # a user of their own, so that what the questions find stays the same
        good, ms, _ = await post(client, "/v1/memories", {"content": content, "user_id": "bob"})
        load.failed += not good
        load.store_ms.append(ms)
        load.stored.append(content)
        await asyncio.sleep(0.2)
    await client.close()


async def multiply(database: asyncpg.Connection, copies: int) -> None:
    """Writes each memory so many times more, with the vector of the first."""
    await database.execute(COPIED.format(copies=copies))
    for statement in COPY:
        await database.execute(statement, timeout=3_600)


async def found(service: Service, questions: Sequence[str]) -> list[list[str]]:
    """The ids of the ten nearest of each question, by the vectors of the texts alone."""
    client, answers = Client(service.url, service.key), []
    for query in questions:
        _, _, answer = await post(
            client, "/v1/memories/search", {"query": query, "limit": LIMIT, **USER, **only(text_vector=1)}
        )
        answers.append([str(each["id"]) for each in answer["results"]])  # type: ignore[attr-defined]
    await client.close()
    return answers


async def run(service: Service, memories: int, copies: int, kills: int, questions: Sequence[str]) -> None:
    assert service.processes is not None
    assert service.database is not None
    texts = sentences.distinct(memories, 1)
    client = Client(service.url, service.key, timeout_s=300)
    began = time.monotonic()
    for first in range(0, memories, BATCH):
        items = [{"content": each, **USER} for each in texts[first : first + BATCH]]
        good, _, answer = await post(client, "/v1/memories/batch", {"items": items})
        assert good, answer
    database = await asyncpg.connect(service.database.replace("+asyncpg", ""))
    if copies:
        await multiply(database, copies)
    loaded_s = time.monotonic() - began
    before = await found(service, questions)
    quiet, busy, over = ClientNotes(), ClientNotes(), asyncio.Event()
    new = sentences.distinct(memories + 20_000, 2)[memories:]
    clients = [asyncio.create_task(searches(service, questions, quiet, over))]
    clients += [asyncio.create_task(stores(service, new[:1_000], quiet, over))]
    await asyncio.sleep(15)
    over.set()
    await asyncio.gather(*clients)
    over = asyncio.Event()
    clients = [asyncio.create_task(searches(service, questions, busy, over))]
    clients += [asyncio.create_task(stores(service, new[1_000:], busy, over))]
    began = time.monotonic()
    data_dir = service.processes.cluster.parent
    command = [sys.executable, "-m", "service", "reembed", "--again"]
    env = {**os.environ, "LOXODON_DATA_DIR": str(data_dir)}
    await asyncio.to_thread(subprocess.run, command, cwd=target.ROOT, env=env, check=True)
    total = await database.fetchval("SELECT count(*) FROM memory")
    made = "SELECT count(*) FROM memory_vector WHERE generation = 2"
    state = "SELECT state FROM embedding_generation WHERE generation = 2"
    killed = 0
    while await database.fetchval(state) != "active":
        assert time.monotonic() - began < BUILD_S, "it does not end"
        if killed < kills and await database.fetchval(made) > (killed + 0.5) * total / (kills + 1):
            worker = service.processes.pid("worker")
            if worker is not None:
                os.kill(worker, signal.SIGKILL)
                killed += 1
        await asyncio.sleep(0.1)
    built_s = time.monotonic() - began
    await asyncio.sleep(15)  # over the cut-over, and what the job does after it
    over.set()
    await asyncio.gather(*clients)
    after = await found(service, questions)
    lacking = await database.fetchval(
        "SELECT count(*) FROM memory m WHERE NOT EXISTS (SELECT FROM memory_vector v WHERE v.memory_id = m.id "
        "AND v.generation = 2 AND v.kind = 'text')"
    )
    await database.close()
    same = sum(len(set(one) & set(other)) for one, other in zip(before, after, strict=True))
    wanted = sum(map(len, before))
    print(f"\n{total} memories loaded in {loaded_s:.0f} s; vectors made anew in {built_s:.0f} s, {killed} kills")
    rows = [
        [name, len(of), percentile(of, 0.5), percentile(of, 0.95), max(of)]
        for name, of in (
            ("search before, ms", quiet.search_ms),
            ("search during, ms", busy.search_ms),
            ("store before, ms", quiet.store_ms),
            ("store during, ms", busy.store_ms),
        )
    ]
    print(table(["", "requests", "p50", "p95", "worst"], rows))
    print(f"failed requests: {quiet.failed} before, {busy.failed} during")
    print(f"stored during: {len(busy.stored)}; memories without a new vector: {lacking}")
    print(f"of the ten nearest of {len(questions)} questions the same as before: {same} of {wanted}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--copies", type=int, default=0)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--questions", type=int, default=30)
    options = parser.parse_args()
    with target.started(patient=True) as service:
        asyncio.run(
            run(service, options.memories, options.copies, options.kills, sentences.questions(options.questions, 3))
        )


if __name__ == "__main__":
    main()
