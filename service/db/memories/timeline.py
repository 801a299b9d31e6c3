"""The timeline: memories, turns, strategies and goals in one order of time.

It has no table of its own: the four tables are read together, each with its own ORDER BY and LIMIT, so nothing can stay
on the timeline that was deleted elsewhere. A turn that is a memory as well appears as a turn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from service.db import direct, scopes
from service.db.engine import Session
from service.db.memories.memories import MOMENT
from service.db.scopes import Condition, typed
from service.db.search import visibility
from service.db.vectors import Half
from service.domain.query import Window
from service.domain.scope import Scope
from service.domain.timeline import EventKind, TimelineEvent
from service.language.summary import first_sentence
from service.providers.protocols import Vector

READ_CHARS: Final = 2_000
"""Of a text without a summary: its first sentence is looked for in them."""

COLUMNS: Final = (
    "(id, event_time, summary, importance, access_count, last_accessed, channel, archived, metadata, cosine)"
)


class _Source(NamedTuple):
    """What of a kind is read: the time, the columns up to `metadata`, the tables, and where its vectors are."""

    alias: str
    moment: str
    columns: str
    tables: str
    vectors: str


# ix_memory_user, _agent or _run (ix_turn_…, ix_strategy_…, ix_goal_…) find the rows of the scope; the time is a filter.
EVENTS: Final[Mapping[EventKind, _Source]] = {
    EventKind.SEMANTIC: _Source(
        "m",
        'm."timestamp"',
        f"""left(coalesce(m.metadata ->> 'summary', m.summary, m.content), {READ_CHARS}), m.importance,
            coalesce(s.access_count, 0), s.last_accessed, m.channel, m.archived, m.metadata""",
        "memory m LEFT JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id",
        "memory_vector v ON v.memory_id = m.id AND v.kind = 'text'",
    ),
    EventKind.EPISODIC: _Source(
        "t",
        't."timestamp"',
        f"""left(coalesce(t.shown, t.content), {READ_CHARS}), 0.5, 0, CAST(NULL AS timestamptz), t.channel, t.archived,
            t.metadata || jsonb_build_object('role', t.role, 'conversation_id', t.conversation_id,
                                             'turn_index', t.turn_index)""",
        "turn t",
        "turn_vector v ON v.turn_id = t.id",
    ),
    EventKind.PROCEDURAL: _Source(
        "w",
        "w.created_at",
        f"""left(w.description, {READ_CHARS}), 0.5, w.success_count + w.failure_count, w.last_used_at, w.channel, false,
            jsonb_build_object('tool_sequence', w.tool_sequence)""",
        "strategy w",
        "strategy_vector v ON v.strategy_id = w.id",
    ),
    EventKind.GOAL: _Source(
        "g",
        "g.created_at",
        f"""left(g.description, {READ_CHARS}), 0.5, 0, CAST(NULL AS timestamptz), g.channel, false,
            jsonb_build_object('status', g.status, 'priority', g.priority)""",
        "goal g",
        "goal_vector v ON v.goal_id = g.id",
    ),
}


@dataclass(frozen=True, slots=True)
class Nearest:
    """Wanted are those nearest in meaning to a query: its vector, and the generation to compare with."""

    vector: Vector
    generation: int


async def page(
    session: Session,
    scope: Scope,
    kinds: Collection[EventKind],
    window: Window,
    *,
    include_archived: bool,
    after: tuple[datetime, UUID] | None,
    limit: int,
    now: datetime,
    nearest: Nearest | None = None,
) -> Sequence[TimelineEvent]:
    """At most `limit` events of these kinds, the latest first, behind `after`; or the nearest, an exact scan."""
    parts: list[str] = []
    values: dict[str, Any] = {"limit": limit}
    cosine, join, order = "CAST(NULL AS float8)", "", "event_time DESC, id DESC"
    if nearest is not None:
        cosine, order = "1 - (v.embedding <=> :query_vector)", "cosine DESC, id DESC"
        values |= {"query_vector": nearest.vector, "generation": nearest.generation}
    for kind, source in EVENTS.items():
        if kind in kinds:
            alias, moment, columns, tables, vectors = source
            rows = _rows(kind, alias, moment, scope, window, after, include_archived=include_archived, now=now)
            if nearest is not None:
                join = f"JOIN {vectors} AND v.workspace_id = {alias}.workspace_id AND v.generation = :generation"
            events = f"SELECT {alias}.id, {moment}, {columns}, {cosine} FROM {tables} {join} WHERE {rows.sql}"  # noqa: S608
            first = f"{moment} DESC, {alias}.id DESC" if nearest is None else "(v.embedding <=> :query_vector) + 0"
            part = f"({events} ORDER BY {first} LIMIT :limit) part {COLUMNS}"
            parts.append(f"SELECT '{kind}' AS kind, part.* FROM {part}")  # noqa: S608 - our own parts
            values |= rows.values
    union = " UNION ALL ".join(parts)
    statement = typed(text(f"SELECT * FROM ({union}) event ORDER BY {order} LIMIT :limit"))  # noqa: S608
    if nearest is not None:
        statement = statement.bindparams(bindparam("query_vector", type_=Half()))
    if after is not None:
        statement = statement.bindparams(bindparam("after_time", type_=MOMENT))
    found = await direct.page(session, statement.columns(metadata=JSONB()), values)
    return [
        TimelineEvent(EventKind(row.kind), row.id, row.event_time, first_sentence(row.summary), *row[4:])
        for row in found
    ]


def _rows(
    kind: EventKind,
    alias: str,
    moment: str,
    scope: Scope,
    window: Window,
    after: tuple[datetime, UUID] | None,
    *,
    include_archived: bool,
    now: datetime,
) -> Condition:
    rows = scopes.matching(alias, scope if kind is EventKind.SEMANTIC else scope.private)
    if kind is EventKind.SEMANTIC:
        rows &= visibility.not_expired_nor_in_review(alias, now) & visibility.not_superseded(alias)
        rows &= Condition(f"{alias}.turn_index IS NULL")
        rows &= visibility.present(alias, include_archived=include_archived, valid_at=None)
    if kind is EventKind.EPISODIC:
        rows &= Condition(f"{alias}.shown IS DISTINCT FROM ''") & scopes.of_nothing_expired(alias, now)
        if not include_archived:
            rows &= visibility.not_archived(alias)
    if window.start is not None:
        rows &= Condition(f"{moment} >= :window_start", {"window_start": window.start})
    if window.end is not None:
        rows &= Condition(f"{moment} < :window_end", {"window_end": window.end})
    if after is not None:
        behind = {"after_time": after[0], "after_id": after[1]}
        rows &= Condition(f"({moment}, {alias}.id) < (:after_time, CAST(:after_id AS uuid))", behind)
    return rows
