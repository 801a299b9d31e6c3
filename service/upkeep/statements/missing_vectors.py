"""Vectors that a generation lacks: finding texts without one, and storing them next to those of other generations.

All statements walk a primary key from `after` on, in the transaction of one workspace. A change of a text deletes its
vectors of every generation, so an existing vector is always of the current text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from uuid import UUID

from sqlalchemy import text

from service.cognition.statements import goals, strategies
from service.conversations.statements import contexts, turns
from service.domain.text import CleanText
from service.graph.statements import entities
from service.postgres.engine import Session
from service.postgres.vectors import as_text
from service.providers.protocols import Vector
from service.runtime.statements.deferred_vectors import DeferredVectors

UNEMBEDDED = text("SELECT * FROM find_unembedded(make_interval(secs => :quiet_s), :limit)")

COUNT = text("""
    SELECT (SELECT count(*) FROM memory WHERE workspace_id = :workspace)
           + (SELECT count(DISTINCT memory_id) FROM memory_vector WHERE workspace_id = :workspace AND kind = 'context')
           + (SELECT count(*) FROM turn WHERE workspace_id = :workspace AND shown IS DISTINCT FROM '')
           + (SELECT count(*) FROM goal WHERE workspace_id = :workspace)
           + (SELECT count(*) FROM strategy WHERE workspace_id = :workspace)
           + (SELECT count(DISTINCT entity_id) FROM entity_vector WHERE workspace_id = :workspace) AS wanted,
           (SELECT count(*) FROM memory_vector
            WHERE workspace_id = :workspace AND generation = :generation AND kind <> 'placeholder')
           + (SELECT count(*) FROM turn_vector WHERE workspace_id = :workspace AND generation = :generation)
           + (SELECT count(*) FROM goal_vector WHERE workspace_id = :workspace AND generation = :generation)
           + (SELECT count(*) FROM strategy_vector WHERE workspace_id = :workspace AND generation = :generation)
           + (SELECT count(*) FROM entity_vector WHERE workspace_id = :workspace AND generation = :generation) AS made
""")

# pk_memory, and for each row pk_memory_vector: without OFFSET 0 a join reads all vectors that were made before
MEMORIES = text("""
    SELECT m.id, m.content FROM memory m
    WHERE m.workspace_id = :workspace AND m.id > :after AND NOT EXISTS (
        SELECT FROM memory_vector v WHERE v.workspace_id = m.workspace_id AND v.memory_id = m.id
            AND v.generation = :generation AND v.kind = 'text' OFFSET 0)
    ORDER BY m.id LIMIT :limit
""")

# A change of a text locks its row FOR UPDATE first (history.lock), so it waits for this, or this sees the new text.
STORE_MEMORIES = text("""
    WITH made AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:contents AS text[]), CAST(:vectors AS text[]))
            AS m (id, content, vector)
    ), locked AS (
        SELECT workspace_id, id, user_id, agent_id, run_id, channel, content FROM memory
        WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR KEY SHARE
    )
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel, embedding)
    SELECT workspace_id, id, :generation, 'text', user_id, agent_id, run_id, channel, vector::halfvec
    FROM locked JOIN made USING (id, content)
    ON CONFLICT DO NOTHING RETURNING memory_id
""")

# pk_memory_vector
CONTEXTS = text("""
    SELECT DISTINCT v.memory_id FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.memory_id > :after AND v.kind = 'context' AND v.generation <> :generation
      AND NOT EXISTS (SELECT FROM memory_vector o WHERE o.workspace_id = v.workspace_id AND o.memory_id = v.memory_id
                      AND o.generation = :generation AND o.kind = 'context' OFFSET 0)
    ORDER BY v.memory_id LIMIT :limit
""")

TABLES = ("memory_vector", "turn_vector", "goal_vector", "strategy_vector", "entity_vector")
DELETE = {
    table: text(f"""
    DELETE FROM {table} v USING (
        SELECT ctid, tableoid FROM {table}
        WHERE workspace_id = :workspace AND generation = ANY (CAST(:generations AS integer[])) LIMIT :limit) old
    WHERE v.tableoid = old.tableoid AND v.ctid = old.ctid
""")  # noqa: S608 - no user input
    for table in TABLES
}

BATCH = 100
"""Texts per transaction, and per call of the embedder."""

WORKSPACES = text("SELECT workspace_id FROM find_workspaces()")


Texts = dict[UUID, CleanText]
"""By the id of their row, ascending."""

Find = Callable[..., Awaitable[Texts]]
Store = Callable[..., Awaitable[int]]


async def list_unembedded(session: Session, *, quiet_s: float, limit: int) -> list[tuple[UUID, UUID]]:
    """Workspace and id of memories that lack a vector and a job to make it, untouched for `quiet_s`."""
    rows = await session.execute(UNEMBEDDED, {"quiet_s": quiet_s, "limit": limit})
    return [(row.workspace_id, row.memory_id) for row in rows]


async def workspaces(session: Session) -> list[UUID]:
    """All workspaces; as loxodon_worker only."""
    return list(await session.scalars(WORKSPACES))


async def count(session: Session, generation: int) -> tuple[int, int]:
    """The number of vectors the workspace needs, and how many of them the generation has."""
    row = (await session.execute(COUNT, {"generation": generation})).one()
    return row.wanted, row.made


async def memories_without(session: Session, after: UUID, *, generation: int) -> Texts:
    """The next BATCH memories whose text has no vector of the generation."""
    rows = await session.execute(MEMORIES, {"generation": generation, "after": after, "limit": BATCH})
    return {row.id: CleanText(row.content) for row in rows}


async def store_memories(session: Session, made: Mapping[UUID, tuple[CleanText, Vector]], *, generation: int) -> int:
    """Stores vectors, except of texts that have changed; returns how many."""
    values = {
        "generation": generation,
        "ids": list(made),
        "contents": [content for content, _ in made.values()],
        "vectors": [as_text(vector) for _, vector in made.values()],
    }
    return len((await session.scalars(STORE_MEMORIES, values)).all())


async def contexts_without(session: Session, after: UUID, *, generation: int) -> Texts:
    """The next BATCH contexts that have a vector, but none of the generation, by the id of their memory."""
    texts: Texts = {}
    while not texts:
        values = {"generation": generation, "after": after, "limit": BATCH}
        ids = list(await session.scalars(CONTEXTS, values))
        if not ids:
            break
        texts = await contexts.embedded_texts(session, ids)
        after = ids[-1]
    return texts


def _rows_without(rows: DeferredVectors) -> Find:
    async def find(session: Session, after: UUID, *, generation: int) -> Texts:
        return await rows.unembedded(session, rows.table.c.id > after, generation=generation, limit=BATCH)

    return find


WALKS: tuple[tuple[Find, Store], ...] = (
    (memories_without, store_memories),
    (contexts_without, partial(contexts.store, with_columns=False)),
    *(
        (_rows_without(rows), rows.store)
        for rows in (turns.LATE_VECTORS, goals.LATE_VECTORS, strategies.LATE_VECTORS, entities.LATE_VECTORS)
    ),
)
"""For each kind of text, how to find the next batch and store its vectors."""


async def delete(session: Session, table: str, generations: list[int], *, limit: int) -> int:
    """Deletes at most `limit` vectors of these generations from one of TABLES; returns how many."""
    values = {"generations": generations, "limit": limit}
    return (await session.execute(DELETE[table], values)).rowcount
