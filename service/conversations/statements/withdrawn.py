"""Sentences of turns that no longer count, because the memory that came from them was deleted, changed or superseded.

Each is a row of withdrawn_span, written with the change that withdraws it. In the same transaction `refresh` writes the
visible text of the turn (turn.shown), with its words and vector, so that nothing finds a turn by what it no longer
says. A sentence that another live memory needs stays visible. See docs/decisions/022-erasure.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import text
from uuid_utils.compat import uuid7

from service.conversations.statements.turns import embed_job
from service.domain.conversation import WithdrawnSpan
from service.domain.text import CleanText
from service.language import lexemes, withdrawal
from service.postgres import direct
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.template import typed_text
from service.postgres.vectors import term_columns
from service.queue.statements import queue

Reason = Literal["deleted", "expired", "updated", "superseded"]

GONE: frozenset[Reason] = frozenset({"deleted", "expired"})
"""The reasons for which a transcript leaves a sentence out; for the others it marks it."""

# A deletion withdraws also what was changed before, as the transcript shows that, from the same span.
SOURCES = text("""
    SELECT s.memory_id, s.turn_id, coalesce(s.start, changed.start) AS start, coalesce(s."end", changed."end") AS "end",
           t.content, m.content AS memory
    FROM memory_source s
    JOIN turn t ON t.workspace_id = :workspace AND t.id = s.turn_id
    JOIN memory m ON m.workspace_id = :workspace AND m.id = s.memory_id
    LEFT JOIN withdrawn_span changed
        ON changed.workspace_id = :workspace AND changed.memory_id = s.memory_id AND changed.turn_id = s.turn_id
    WHERE s.workspace_id = :workspace AND s.memory_id = ANY (CAST(:ids AS uuid[]))
      AND (changed.id IS NULL OR (changed.reason IN ('updated', 'superseded') AND :reason IN ('deleted', 'expired')))
    ORDER BY s.turn_id, s.memory_id
""")

INSERT = text("""
    INSERT INTO withdrawn_span (workspace_id, id, turn_id, start, "end", reason, memory_id, replaced_by, history_id)
    VALUES (:workspace, :id, :turn_id, :start, :end, :reason, :memory_id, :replaced_by, :history_id)
""")

# Undoes the change of one history entry; if the memory exists again, its deletion no longer counts.
TAKE_BACK = text("""
    DELETE FROM withdrawn_span
    WHERE workspace_id = :workspace AND memory_id = :id
      AND (history_id = :entry OR (history_id IS NULL AND reason IN ('deleted', 'expired')) OR CAST(:all AS boolean))
    RETURNING turn_id
""")

SHARED_TURNS = text("""
    SELECT DISTINCT s.turn_id FROM memory_source s
    JOIN withdrawn_span w ON w.workspace_id = :workspace AND w.turn_id = s.turn_id
    WHERE s.workspace_id = :workspace AND s.memory_id = ANY (CAST(:ids AS uuid[])) ORDER BY s.turn_id
""")

LOCK = text("""
    SELECT id, conversation_id, content, shown FROM turn
    WHERE workspace_id = :workspace AND id = ANY (CAST(:turns AS uuid[])) ORDER BY id FOR NO KEY UPDATE
""")

SPANS = text("""
    SELECT turn_id, start, "end", reason, memory_id, replaced_by FROM withdrawn_span
    WHERE workspace_id = :workspace AND turn_id = ANY (CAST(:turns AS uuid[])) ORDER BY turn_id, start, "end"
""")

# The spans that live memories still need; if a span is not known, the place of their text.
KEPT = text("""
    SELECT s.turn_id, coalesce(s.start, strpos(t.content, m.content) - 1) AS start,
           coalesce(s."end", strpos(t.content, m.content) - 1 + length(m.content)) AS "end"
    FROM memory_source s
    JOIN memory m ON m.workspace_id = :workspace AND m.id = s.memory_id AND m.version_of IS NULL
    JOIN turn t ON t.workspace_id = :workspace AND t.id = s.turn_id
    WHERE s.workspace_id = :workspace AND s.turn_id = ANY (CAST(:turns AS uuid[]))
      AND NOT s.memory_id = ANY (CAST(:besides AS uuid[]))
      AND (s.start IS NOT NULL OR strpos(t.content, m.content) > 0)
      AND NOT EXISTS (SELECT FROM withdrawn_span w
                      WHERE w.workspace_id = :workspace AND w.memory_id = s.memory_id AND w.turn_id = s.turn_id)
""")

SHOW = typed_text("""
    UPDATE turn SET shown = :shown, terms = CAST(:terms AS integer[]), bm25 = :bm25
    WHERE workspace_id = :workspace AND id = :id
""")

NO_VECTOR = text("""
    DELETE FROM turn_vector WHERE workspace_id = :workspace AND turn_id = ANY (CAST(:turns AS uuid[]))
""")

NO_COPY = text("DELETE FROM working_item WHERE workspace_id = :workspace AND turn_id = ANY (CAST(:turns AS uuid[]))")


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Why sentences are withdrawn: the change of their memory, and its replacement, if known."""

    reason: Reason
    history_id: UUID | None = None
    replaced_by: UUID | None = None


async def withdraw(
    session: Session, ids: Sequence[UUID], why: Withdrawal, *, old_text: str | None = None
) -> list[UUID]:
    """Withdraws the sentences that these memories came from; returns the turns, which the caller refreshes. To be
    called before the memories are deleted. `old_text`: what the memory said, if its text has already changed."""
    rows = await direct.fetch(session, SOURCES, {"ids": list(ids), "reason": why.reason})
    spans = [
        WithdrawnSpan(row.turn_id, *span_of(row, old_text), why.reason, row.memory_id, why.replaced_by) for row in rows
    ]
    await add(session, spans, history_id=why.history_id)
    return sorted({span.turn_id for span in spans})


async def add(session: Session, spans: Sequence[WithdrawnSpan], *, history_id: UUID | None = None) -> None:
    """Writes withdrawn spans. The caller refreshes their turns."""
    rows = [{"id": uuid7(), **asdict(span), "history_id": history_id} for span in spans]
    await direct.insert(session, NewRows(INSERT, rows))


async def add_to_present(session: Session, spans: Sequence[WithdrawnSpan]) -> None:
    """Adds spans, skipping turns that have been deleted."""
    values = {"turns": sorted({span.turn_id for span in spans})}
    lengths = {row.id: len(row.content) for row in await direct.fetch(session, LOCK, values)}
    await add(
        session, [replace(span, end=min(span.end, lengths[span.turn_id])) for span in spans if span.turn_id in lengths]
    )


async def take_back(session: Session, memory_id: UUID, *, entry: UUID | None, everything: bool = False) -> None:
    """Restores the sentences that this change of a memory withdrew (`everything`: that any change did)."""
    values = {"id": memory_id, "entry": entry, "all": everything}
    rows = await direct.fetch(session, TAKE_BACK, values)
    await refresh(session, {row.turn_id for row in rows})


async def turns_shared_with(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    """Turns of these memories with withdrawn sentences."""
    rows = await direct.fetch(session, SHARED_TURNS, {"ids": list(ids)})
    return [row.turn_id for row in rows]


async def of_turns(session: Session, turn_ids: Sequence[UUID]) -> dict[UUID, list[WithdrawnSpan]]:
    """The withdrawn spans by turn, in order, whether or not another memory still needs them."""
    spans: dict[UUID, list[WithdrawnSpan]] = {}
    for row in await direct.fetch(session, SPANS, {"turns": list(turn_ids)}):
        spans.setdefault(row.turn_id, []).append(WithdrawnSpan(*row))
    return spans


async def read_kept(
    session: Session, turn_ids: Sequence[UUID], *, besides: Sequence[UUID] = ()
) -> dict[UUID, list[withdrawal.Span]]:
    """The spans by turn that memories other than `besides` still need."""
    spans: dict[UUID, list[withdrawal.Span]] = {}
    values = {"turns": list(turn_ids), "besides": list(besides)}
    for row in await direct.fetch(session, KEPT, values):
        spans.setdefault(row.turn_id, []).append((row.start, row.end))
    return spans


def hidden_of(spans: Sequence[WithdrawnSpan], kept: Sequence[withdrawal.Span]) -> list[withdrawal.Span]:
    """The hidden spans of a turn. A sentence that was itself withdrawn, rather than with a memory, is always hidden."""
    resting = [(span.start, span.end) for span in spans if span.memory_id is not None]
    alone = [(span.start, span.end) for span in spans if span.memory_id is None]
    return withdrawal.subtract([*withdrawal.subtract(resting, kept), *alone], [])


def gone_of(spans: Sequence[WithdrawnSpan], kept: Sequence[withdrawal.Span]) -> list[withdrawal.Span]:
    """The spans of a turn that its transcript leaves out."""
    return hidden_of([span for span in spans if span.reason in GONE], kept)


async def refresh(session: Session, turn_ids: Iterable[UUID], *, rewritten: bool = False) -> None:
    """Rewrites the visible text of these turns. Locks them by ascending id; deleted ones are skipped.
    `rewritten`: their own text changed as well."""
    wanted = {"turns": sorted(turn_ids)}
    if not wanted["turns"]:
        return
    rows = await direct.fetch(session, LOCK, wanted)
    spans = await of_turns(session, [row.id for row in rows])
    kept = await read_kept(session, list(spans))
    changed = []
    for row in rows:
        hidden = hidden_of(spans.get(row.id, []), kept.get(row.id, []))
        visible = withdrawal.hide(row.content, hidden) if hidden else None
        if rewritten or visible != row.shown:
            changed.append((row, visible))
    if not changed:
        return
    await direct.fetch_many(
        session, SHOW, [_update_shown(session.workspace_id, row.id, row.content, visible) for row, visible in changed]
    )
    touched = {"turns": [row.id for row, _ in changed]}
    await session.execute(NO_VECTOR, touched)
    await session.execute(NO_COPY, touched)  # working memory has copies of the last turns
    conversations = sorted({row.conversation_id for row, visible in changed if visible != ""})
    await queue.enqueue(session, list(map(embed_job, conversations)))


def _update_shown(workspace_id: UUID, turn_id: UUID, content: str, visible: str | None) -> Mapping[str, Any]:
    weights = lexemes.weights(CleanText(content if visible is None else visible)) if visible != "" else {}
    return {"workspace": workspace_id, "id": turn_id, "shown": visible, **term_columns(weights)}


def span_of(row: direct.DriverRow, old_text: str | None = None) -> withdrawal.Span:
    """The span of a turn that a memory came from, in a row of SOURCES; if none is stored, the place of its text."""
    length = len(row.content)
    if row.start is None or row.end is None:
        return withdrawal.locate(row.memory if old_text is None else old_text, row.content)
    start = min(row.start, length)
    return start, max(start, min(row.end, length))
