"""Contexts of turns: columns and vectors made from a turn and the turns before it.

They belong to memories that are turns of a conversation. When the text of one changes or is deleted, the context
columns of the turns after it are rebuilt in the same transaction, and their vectors are deleted: a job makes new ones,
because nothing is embedded with a transaction open. See docs/decisions/014-context-columns.md.

A turn is part of a context as long as a memory has its text. All statements find turns by the unique key of
conversation and index, and the memory of a turn by ix_memory_source_turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import bindparam, text

from service.domain.bm25 import AVERAGE_CONTEXT_LENGTH
from service.domain.conversation import TurnPlace
from service.domain.job import NewJob
from service.domain.text import CleanText
from service.language import context, lexemes
from service.language.context import PRECEDING, ContextTurn
from service.postgres.engine import Session
from service.postgres.vectors import TERM_DIMENSIONS, as_text, term_columns
from service.queue.statements import queue

PAYLOAD = {"context": True}
"""Payload of a job `embed` that makes a context, not the vector of a text."""

POSITIONS = text("""
    SELECT conversation_id, turn_index FROM memory
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[]))
      AND conversation_id IS NOT NULL AND turn_index IS NOT NULL
""")

MEMORY_OF_TURN = "m.workspace_id = :workspace AND m.conversation_id = t.conversation_id AND m.turn_index = t.turn_index"

DEPENDENTS = text(
    f"""
    SELECT DISTINCT m.id
    FROM unnest(CAST(:conversations AS uuid[]), CAST(:indexes AS integer[])) AS p (conversation, at)
    JOIN turn t ON t.workspace_id = :workspace AND t.conversation_id = p.conversation
        AND t.turn_index BETWEEN p.at AND p.at + {PRECEDING}
    JOIN memory_source s ON s.workspace_id = :workspace AND s.turn_id = t.id
    JOIN memory m ON m.id = s.memory_id AND {MEMORY_OF_TURN}
    ORDER BY m.id
    """  # noqa: S608 - no user input
)

OF_CONVERSATIONS = text(
    f"""
    SELECT DISTINCT m.id FROM turn t
    JOIN memory_source s ON s.workspace_id = :workspace AND s.turn_id = t.id
    JOIN memory m ON m.id = s.memory_id AND {MEMORY_OF_TURN}
    WHERE t.workspace_id = :workspace AND t.conversation_id = ANY (CAST(:conversations AS uuid[])) ORDER BY m.id
    """  # noqa: S608 - no user input
)

CONVERSATIONS = text("""
    SELECT DISTINCT t.conversation_id FROM turn t
    WHERE t.workspace_id = :workspace AND t.id IN (
        SELECT turn_id FROM memory_source WHERE workspace_id = :workspace AND memory_id = :id
        UNION
        SELECT (was ->> 'turn_id')::uuid FROM memory_history h
            CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) was
        WHERE h.workspace_id = :workspace AND h.memory_id = :id)
""")

TURNS_BEFORE = text(
    f"""
    SELECT m.id, m.content, coalesce(m.speaker, m.role) AS speaker, b.content AS before, b.speaker AS before_by
    FROM memory m LEFT JOIN LATERAL (
        SELECT t.turn_index, o.content, coalesce(t.speaker, t.role) AS speaker
        FROM turn t CROSS JOIN LATERAL (
            SELECT other.content FROM memory_source s
            JOIN memory other ON other.workspace_id = :workspace AND other.id = s.memory_id
            WHERE s.workspace_id = :workspace AND s.turn_id = t.id
              AND ((other.conversation_id = t.conversation_id AND other.turn_index = t.turn_index) IS TRUE
                   OR other.content = t.content)
            ORDER BY (other.conversation_id = t.conversation_id AND other.turn_index = t.turn_index) IS TRUE DESC
            LIMIT 1) o
        WHERE t.workspace_id = :workspace AND t.conversation_id = m.conversation_id
          AND t.turn_index BETWEEN m.turn_index - {PRECEDING} AND m.turn_index - 1) b ON true
    WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[])) AND m.turn_index IS NOT NULL
    ORDER BY m.id, b.turn_index
    """  # noqa: S608 - no user input
)

WRITE = text("""
    UPDATE memory SET context_terms = CAST(:terms AS integer[]), context_bm25 = :bm25
    WHERE workspace_id = :workspace AND id = :id
""").bindparams(bindparam("bm25", type_=SPARSEVEC(TERM_DIMENSIONS)))

NO_VECTORS = text("""
    DELETE FROM memory_vector
    WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[])) AND kind = 'context'
""")

VECTORS = text("""
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel, embedding)
    SELECT :workspace, m.id, :generation, 'context', m.user_id, m.agent_id, m.run_id, m.channel, made.vector::halfvec
    FROM unnest(CAST(:ids AS uuid[]), CAST(:vectors AS text[])) AS made (id, vector)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = made.id
    ON CONFLICT (workspace_id, memory_id, generation, kind) DO UPDATE SET embedding = excluded.embedding
    RETURNING memory_id
""")

LOCK = text("""
    SELECT id FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id
    FOR NO KEY UPDATE
""")


@dataclass(frozen=True, slots=True)
class ContextTexts:
    """The texts from which the context columns and the context vector of a turn are made."""

    lexical: CleanText
    embedded: CleanText


async def positions(session: Session, ids: Sequence[UUID]) -> list[TurnPlace]:
    """The conversations and indexes of the memories that are turns."""
    rows = await session.execute(POSITIONS, {"ids": list(ids)})
    return [(row.conversation_id, row.turn_index) for row in rows]


async def dependents(session: Session, positions: Sequence[TurnPlace]) -> list[UUID]:
    """Ids, ascending, of the memories whose context contains these turns, which includes the turns' own memories."""
    if not positions:
        return []
    values = {"conversations": [key for key, _ in positions], "indexes": [index for _, index in positions]}
    return list(await session.scalars(DEPENDENTS, values))


async def conversations_of(session: Session, memory_id: UUID) -> list[UUID]:
    """The conversations whose turns a memory comes from, or came from before it was deleted."""
    return list(await session.scalars(CONVERSATIONS, {"id": memory_id}))


async def rebuild(session: Session, ids: Sequence[UUID]) -> None:
    """Rebuilds the context columns of these memories; deletes their context vectors and enqueues jobs that make new
    ones. Locks the memories by ascending id."""
    if not ids:
        return
    await session.execute(LOCK, {"ids": list(ids)})
    rebuilt = await texts_of(session, ids)
    await session.execute(NO_VECTORS, {"ids": list(ids)})
    for memory_id, texts in rebuilt.items():
        await _columns(session, memory_id, texts)
    await enqueue(session, list(rebuilt))


async def enqueue(session: Session, ids: Sequence[UUID]) -> None:
    """Enqueues jobs that make the contexts of these memories, columns and vectors."""
    jobs = [NewJob("embed", memory_id=memory_id, payload=PAYLOAD) for memory_id in ids]
    await queue.enqueue(session, jobs)


async def enqueue_conversations(session: Session, conversations: Sequence[UUID]) -> None:
    """Enqueues these jobs for every turn of the conversations."""
    values = {"conversations": list(conversations)}
    await enqueue(session, list(await session.scalars(OF_CONVERSATIONS, values)))


async def texts_of(session: Session, ids: Sequence[UUID]) -> dict[UUID, ContextTexts]:
    """The texts by memory, of those that exist and are turns."""
    rows = (await session.execute(TURNS_BEFORE, {"ids": list(ids)})).all()
    texts = {}
    for memory_id, group in groupby(rows, key=attrgetter("id")):
        lines = list(group)
        turn = ContextTurn(CleanText(lines[0].content), lines[0].speaker)
        before = [ContextTurn(CleanText(line.before), line.before_by) for line in lines if line.before is not None]
        texts[memory_id] = ContextTexts(context.lexical_text(turn, before), context.embedded_text(turn, before))
    return texts


async def embedded_texts(session: Session, ids: Sequence[UUID]) -> dict[UUID, CleanText]:
    """What is embedded for these contexts, by memory, of those that exist and are turns."""
    return {memory_id: texts.embedded for memory_id, texts in (await texts_of(session, ids)).items()}


async def store(
    session: Session,
    made: Mapping[UUID, tuple[CleanText, NDArray[np.float32]]],
    *,
    generation: int,
    with_columns: bool = True,
) -> int:
    """Stores vectors of contexts, and their columns, except those whose texts have changed; returns how many."""
    await session.execute(LOCK, {"ids": list(made)})
    current = await texts_of(session, list(made))
    same = {key: made[key][1] for key, texts in current.items() if texts.embedded == made[key][0]}
    if with_columns:
        for memory_id in same:
            await _columns(session, memory_id, current[memory_id])
    values = {"generation": generation, "ids": list(same), "vectors": list(map(as_text, same.values()))}
    return len((await session.scalars(VECTORS, values)).all())


async def _columns(session: Session, memory_id: UUID, texts: ContextTexts) -> None:
    weights = lexemes.weights(texts.lexical, average_length=AVERAGE_CONTEXT_LENGTH)
    await session.execute(WRITE, {"id": memory_id, **term_columns(weights)})
