"""Reads all texts of a scope for a request to forget: memories, turns, and deleted memories.

Such a request compares whole words in several spellings, for which there is no index, so the texts are read page by
page. Also cuts words out of turns for a purge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from service.conversations.statements import withdrawn
from service.domain.scope import Extent
from service.domain.text import sha256
from service.language import withdrawal
from service.language.withdrawal import Span
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.postgres.template import Template

PAGE = 5_000

MEMORIES = Template("""
    SELECT m.id, m.content, m.created_at, m.version, m.version_of, m.t_invalid IS NOT NULL AS has_ended
    FROM memory m
    WHERE {rows} AND (CAST(:after AS uuid) IS NULL OR m.id > :after) ORDER BY m.id LIMIT :page
""")

TURNS = Template("""
    SELECT t.id, t.conversation_id, t.turn_index, t.content, t.shown, t.role FROM turn t
    WHERE {rows} AND (CAST(:after AS uuid) IS NULL OR t.id > :after) ORDER BY t.id LIMIT :page
""")

# Texts of deleted memories in history; only a purge reaches them.
GONE = Template("""
    SELECT h.memory_id AS id, h.old_memory AS content, min(h.recorded_at) AS created_at, 0 AS version,
           CAST(NULL AS uuid) AS version_of, true AS has_ended
    FROM memory_history h
    WHERE {rows} AND h.old_memory IS NOT NULL
      AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = h.workspace_id AND m.id = h.memory_id)
    GROUP BY h.memory_id, h.old_memory ORDER BY h.memory_id
""")

LOCK_TEXTS = text("""
    SELECT id, version FROM memory
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR UPDATE
""")

SPANS = text("""
    SELECT s.memory_id, s.turn_id, s.start, s."end", t.content, m.content AS memory
    FROM memory_source s
    JOIN turn t ON t.workspace_id = :workspace AND t.id = s.turn_id
    JOIN memory m ON m.workspace_id = :workspace AND m.id = s.memory_id
    WHERE s.workspace_id = :workspace AND s.memory_id = ANY (CAST(:ids AS uuid[]))
    UNION ALL
    SELECT h.memory_id, t.id, (was ->> 'start')::integer, (was ->> 'end')::integer, t.content, h.old_memory
    FROM memory_history h
    CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) was
    JOIN turn t ON t.workspace_id = :workspace AND t.id = (was ->> 'turn_id')::uuid
    WHERE h.workspace_id = :workspace AND h.memory_id = ANY (CAST(:ids AS uuid[])) AND h.old_memory IS NOT NULL
""")

REWRITE = text("SELECT rewrite_turn(:id, :content, :hash)")

MOVE_SOURCES = text("""
    UPDATE memory_source SET start = :start, "end" = :end
    WHERE workspace_id = :workspace AND memory_id = :memory_id AND turn_id = :turn_id
""")

SOURCES_OF_TURN = text("""
    SELECT memory_id, start, "end" FROM memory_source
    WHERE workspace_id = :workspace AND turn_id = :turn AND start IS NOT NULL AND "end" IS NOT NULL
""")

FORGET_SPANS = text("DELETE FROM withdrawn_span WHERE workspace_id = :workspace AND turn_id = :turn")


@dataclass(frozen=True, slots=True)
class StoredText:
    """The text of a memory, live or archived (`version` > 0), or of a deleted one (0). `version_of`: the memory of
    which it is a past version. `has_ended`: it says until when it held."""

    id: UUID
    text: str
    created_at: datetime
    version: int
    version_of: UUID | None
    has_ended: bool


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A turn. `shown`: the text without withdrawn sentences; None: all of it."""

    id: UUID
    conversation_id: UUID
    turn_index: int
    text: str
    shown: str | None
    role: str


@dataclass(frozen=True, slots=True)
class MemorySpan:
    """The span of a turn that an existing or deleted memory came from."""

    memory_id: UUID
    turn_id: UUID
    span: Span


async def memories(session: Session, wanted: Extent) -> list[StoredText]:
    """All memories of the scope, including archived ones and those that wait for a review, oldest first."""
    texts = [StoredText(*row) for row in await _all(session, MEMORIES, _rows(wanted, "m", "session_id"))]
    return sorted(texts, key=lambda each: (each.created_at, each.id))


async def turns(session: Session, wanted: Extent) -> list[SpokenText]:
    """All turns of the scope, oldest first. A session is a conversation of this name."""
    return [SpokenText(*row) for row in await _all(session, TURNS, _rows(wanted, "t", "run_id"))]


async def by_ids(session: Session, wanted: Extent, ids: Sequence[UUID]) -> list[StoredText]:
    """The memories with these ids that belong to the scope, and their past versions."""
    rows = _rows(wanted, "m", "session_id") & Condition(
        "(m.id = ANY (CAST(:ids AS uuid[])) OR m.version_of = ANY (CAST(:ids AS uuid[])))", {"ids": list(ids)}
    )
    return [StoredText(*row) for row in await _all(session, MEMORIES, rows)]


async def turns_by_id(session: Session, ids: Iterable[UUID]) -> dict[UUID, SpokenText]:
    rows = Condition("t.workspace_id = :workspace AND t.id = ANY (CAST(:ids AS uuid[]))", {"ids": sorted(ids)})
    return {row.id: SpokenText(*row) for row in await _all(session, TURNS, rows)}


async def list_gone(session: Session, wanted: Extent) -> list[StoredText]:
    """The texts of deleted memories of the scope, as far as history has them."""
    rows = scopes.deletable("h", wanted.scope, None)
    if wanted.channel is not None:
        rows &= Condition("h.before ->> 'channel' = :channel", {"channel": wanted.channel})
    return [StoredText(*row) for row in await session.execute(GONE.fill(rows=rows.sql), dict(rows.values))]


async def lock_unchanged(session: Session, versions: Mapping[UUID, int]) -> list[UUID]:
    """Locks these memories, by ascending id; returns those that still have the given version."""
    result = await session.execute(LOCK_TEXTS, {"ids": sorted(versions)})
    return [row.id for row in result if row.version == versions[row.id]]


async def spans(session: Session, ids: Sequence[UUID]) -> list[MemorySpan]:
    """The spans of turns that these memories come from, or ever came from, each once."""
    rows = await direct.fetch(session, SPANS, {"ids": list(ids)})
    return list(dict.fromkeys(MemorySpan(row.memory_id, row.turn_id, withdrawn.span_of(row)) for row in rows))


async def cut_out(session: Session, turn: SpokenText, removed: Sequence[Span]) -> None:
    """Cuts spans out of a turn and its row in the log, and moves the other spans. The caller refreshes the turn."""
    content = withdrawal.cut(turn.text, removed)
    await session.execute(REWRITE, {"id": turn.id, "content": content, "hash": sha256(content)})
    values = {"turn": turn.id}
    spans = (await withdrawn.of_turns(session, [turn.id])).get(turn.id, [])
    await session.execute(FORGET_SPANS, values)
    moved = [(span, *withdrawal.move((span.start, span.end), removed)) for span in spans]
    await withdrawn.add(session, [replace(span, start=start, end=end) for span, start, end in moved if start < end])
    for row in await direct.fetch(session, SOURCES_OF_TURN, values):
        start, end = withdrawal.move((row.start, row.end), removed)
        place = {"memory_id": row.memory_id, "turn_id": turn.id}
        await session.execute(MOVE_SOURCES, {**place, "start": start, "end": end})


def _rows(wanted: Extent, alias: str, session_column: str) -> Condition:
    rows = scopes.deletable(alias, wanted.scope, wanted.channel, is_talk=alias == "t")
    if wanted.session_id is None:
        return rows
    return rows & Condition(f"{alias}.{session_column} = :session_id", {"session_id": wanted.session_id})


async def _all(session: Session, template: Template, rows: Condition) -> list[Any]:
    everything: list[Any] = []
    after: UUID | None = None
    while True:
        values = {**rows.values, "after": after, "page": PAGE}
        page = (await session.execute(template.fill(rows=rows.sql), values)).all()
        everything += page
        if len(page) < PAGE:
            return everything
        after = page[-1].id
