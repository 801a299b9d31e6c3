"""Checks of a database after chaos: every answer was kept, and rows that belong together are all there.

The invariants of every database are those of `loxodon doctor` (service/postgres/sql/doctor.sql). OF_THIS_LOAD has what
holds beside them after this load: each query returns rows that must not exist. All of it reads past row-level security.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

import asyncpg  # type: ignore[import-untyped]

from bench.chaos_writes import AnswerRecord
from service.postgres import doctor

ANSWERED = """
SELECT m.id AS memory_id, memory.content,
    (SELECT count(*) FROM memory_history h WHERE h.memory_id = m.id AND h.event = 'ADD') AS adds,
    (SELECT count(*) FROM audit_log a WHERE a.affected_ids @> ARRAY[m.id] AND a.operation = 'store') AS audits,
    (SELECT count(*) FROM job j WHERE j.memory_id = m.id AND j.kind = 'enrich') AS jobs,
    (SELECT count(*) FROM memory_stat s WHERE s.memory_id = m.id) AS stats,
    (SELECT count(*) FROM memory_vector v WHERE v.memory_id = m.id AND v.kind = 'text') AS vectors
FROM unnest($1::uuid[]) AS m (id) LEFT JOIN memory ON memory.id = m.id
"""
ONCE = ("adds", "audits", "jobs", "stats", "vectors")

COPIES = "SELECT content, count(*) AS copies FROM memory WHERE content = ANY($1) GROUP BY content"

OF_THIS_LOAD: Mapping[str, str] = MappingProxyType(
    {
        "memory without one enrich job per version": "SELECT id FROM memory m WHERE "
        "(SELECT count(*) FROM job j WHERE j.memory_id = m.id AND j.kind = 'enrich') <> "
        "(SELECT count(*) FROM memory_history h WHERE h.memory_id = m.id AND h.event IN ('ADD', 'UPDATE'))",
        "memory without audit": "SELECT id FROM memory m WHERE NOT EXISTS "
        "(SELECT FROM audit_log a WHERE a.affected_ids @> ARRAY[m.id] AND a.operation = 'store')",
        "audit without memory": "SELECT a.id FROM audit_log a, unnest(a.affected_ids) AS of (id) "
        "WHERE a.operation = 'store' AND NOT EXISTS (SELECT FROM memory m WHERE m.id = of.id) "
        "AND NOT EXISTS (SELECT FROM memory_history h WHERE h.memory_id = of.id AND h.event = 'DELETE')",
        "job without memory": "SELECT id FROM job j WHERE memory_id IS NOT NULL AND NOT EXISTS "
        "(SELECT FROM memory m WHERE m.id = j.memory_id)",
        "turn without source": "SELECT id FROM turn t WHERE NOT EXISTS "
        "(SELECT FROM memory_source s WHERE s.turn_id = t.id) AND NOT EXISTS "
        "(SELECT FROM audit_log a WHERE a.affected_ids @> ARRAY[t.id] AND a.operation = 'store_turn')",
        "memory of a turn without source": "SELECT id FROM memory m WHERE conversation_id IS NOT NULL AND NOT EXISTS "
        "(SELECT FROM memory_source s WHERE s.memory_id = m.id)",
        "conversation whose turns are not 0 to turn_count - 1": "SELECT c.id FROM conversation c LEFT JOIN turn t "
        "ON t.conversation_id = c.id GROUP BY c.id, c.turn_count HAVING count(t.id) <> c.turn_count "
        "OR min(t.turn_index) <> 0 OR max(t.turn_index) <> c.turn_count - 1",
    }
)
"""What holds as long as nothing is deleted, no job is cleaned up and every request is audited."""

STATES = "SELECT kind, state, count(*) AS jobs FROM job GROUP BY kind, state ORDER BY kind, state"


async def answers(database: str, record: AnswerRecord) -> list[str]:
    """Returns what the service acknowledged and did not store exactly once, and texts that are stored twice."""
    wrong = []
    async with _connected(database) as connection:
        answered = await connection.fetch(ANSWERED, list(record.added))
        sent = set(record.added.values()) | record.given_up
        copies = {row["content"]: row["copies"] for row in await connection.fetch(COPIES, list(sent))}
    for row in answered:
        if row["content"] is None:
            wrong.append(f"acknowledged memory {row['memory_id']} is lost")
        elif row["content"] != record.added[row["memory_id"]]:
            wrong.append(f"acknowledged memory {row['memory_id']} has another text")
        else:
            wrong += [f"memory {row['memory_id']} has {row[part]} {part}" for part in ONCE if row[part] != 1]
    wrong += [f"stored {count} times: {text}" for text, count in copies.items() if count > 1]
    wrong += [f"sent with a key and not stored: {text}" for text in record.keyed if text not in copies]
    return wrong


async def rows(database: str) -> list[str]:
    """Returns rows that lack others of their transaction, at most five of a kind."""
    wrong = []
    for found in await doctor.examine(database, examples=5):
        wrong += [f"{found.check.name}: {row.id} ({found.broken} in all)" for row in found.examples]
    async with _connected(database) as connection:
        for what, query in OF_THIS_LOAD.items():
            found = await connection.fetch(query)
            wrong += [f"{what}: {row[0]} ({len(found)} in all)" for row in found[:5]]
    return wrong


async def job_counts(database: str) -> str:
    """Returns the number of jobs by kind and state. Those of a killed worker run until their lease ends."""
    async with _connected(database) as connection:
        found = [f"{row['kind']} {row['state']} {row['jobs']}" for row in await connection.fetch(STATES)]
    return "jobs: " + ", ".join(found)


@asynccontextmanager
async def _connected(database: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database)
    try:
        yield connection
    finally:
        await connection.close()
