"""The timeline: memories, turns, strategies and goals in one order of time.

There is no table for it: the four tables are read together, each with its own ORDER BY and LIMIT, so what was deleted
elsewhere cannot stay on the timeline. A turn that is also a memory appears as a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pgvector import HalfVector

from service.language.sentences import first_sentence
from service.memories.statements import visibility
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.postgres.template import typed_text
from service.providers.protocols import Vector
from service.search.values import EventKind, TimelineEvent, TimelineQuery

MAX_CHARS: Final = 2_000
"""Characters of a text without a summary in which its first sentence is looked for."""

COLUMNS: Final = "(id, event_time, summary, importance_score, access_count, last_accessed, channel, archived, metadata)"

# By kind: the time, the alias, and the SELECT. ix_memory_user, _agent or _run (ix_turn_…, ix_strategy_…, ix_goal_…)
# find the rows of the scope; the time is a filter.
EVENTS: Final[Mapping[EventKind, tuple[str, str, str]]] = {
    EventKind.SEMANTIC: (
        'm."timestamp"',
        "m",
        f"""SELECT m.id, m."timestamp", left(coalesce(m.metadata ->> 'summary', m.summary, m.content), {MAX_CHARS}),
                m.importance, coalesce(s.access_count, 0), s.last_accessed, m.channel, m.archived, m.metadata
            FROM memory m LEFT JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id""",  # noqa: S608 - no user input
    ),
    EventKind.EPISODIC: (
        't."timestamp"',
        "t",
        f"""SELECT t.id, t."timestamp", left(coalesce(t.shown, t.content), {MAX_CHARS}), 0.5, 0,
                CAST(NULL AS timestamptz), t.channel, t.archived,
                t.metadata || jsonb_build_object('role', t.role, 'conversation_id', t.conversation_id,
                                                 'turn_index', t.turn_index)
            FROM turn t""",  # noqa: S608 - no user input
    ),
    EventKind.PROCEDURAL: (
        "w.created_at",
        "w",
        f"""SELECT w.id, w.created_at, left(w.description, {MAX_CHARS}), 0.5, w.success_count + w.failure_count,
                w.last_used_at, w.channel, false, jsonb_build_object('tool_sequence', w.tool_sequence)
            FROM strategy w""",  # noqa: S608 - no user input
    ),
    EventKind.GOAL: (
        "g.created_at",
        "g",
        f"""SELECT g.id, g.created_at, left(g.description, {MAX_CHARS}), 0.5, 0, CAST(NULL AS timestamptz), g.channel,
                false, jsonb_build_object('status', g.status, 'priority', g.priority)
            FROM goal g""",  # noqa: S608 - no user input
    ),
}


# The timeline ranked by meaning: an exact scan of the cosine between each event's own vector and the query.
COSINE: Final = """(SELECT 1 - (v.embedding <=> :query_vector) FROM {0}_vector v
    WHERE v.workspace_id = :workspace AND v.{0}_id = part.id AND v.generation = :generation {1})"""
VECTORS: Final[Mapping[EventKind, str]] = {
    EventKind.SEMANTIC: COSINE.format("memory", "AND v.kind = 'text'"),
    EventKind.EPISODIC: COSINE.format("turn", ""),
    EventKind.PROCEDURAL: COSINE.format("strategy", ""),
    EventKind.GOAL: COSINE.format("goal", ""),
}
NEWEST, NEAREST = "ORDER BY event_time DESC, id DESC", "WHERE cosine IS NOT NULL ORDER BY cosine DESC, id"


async def page(
    session: Session, query: TimelineQuery, *, now: datetime, nearest: tuple[Vector, int] | None
) -> Sequence[TimelineEvent]:
    """The events, latest first; or those nearest to a vector of this generation."""
    parts, values = list[str](), dict[str, Any](limit=query.limit)
    if nearest is not None:
        values |= {"query_vector": HalfVector(nearest[0]), "generation": nearest[1]}
    for kind in EventKind:
        if kind in query.kinds:
            moment, alias, select = EVENTS[kind]
            rows = _rows(kind, alias, moment, query, now)
            first = f"ORDER BY {moment} DESC, {alias}.id DESC LIMIT :limit" if nearest is None else ""
            cosine = "CAST(NULL AS float8)" if nearest is None else VECTORS[kind]
            part = f"({select} WHERE {rows.sql} {first}) part {COLUMNS}"
            parts.append(f"SELECT '{kind}' AS kind, part.*, {cosine} AS cosine FROM {part}")  # noqa: S608 - no user input
            values |= rows.values
    union = " UNION ALL ".join(parts)
    order = NEWEST if nearest is None else NEAREST
    statement = typed_text(f"SELECT * FROM ({union}) event {order} LIMIT :limit")  # noqa: S608 - no user input
    return await direct.page(session, statement, values, _event)


def _event(row: Any) -> TimelineEvent:
    return TimelineEvent(EventKind(row.kind), row.id, row.event_time, first_sentence(row.summary), *row[4:])


def _rows(kind: EventKind, alias: str, moment: str, query: TimelineQuery, now: datetime) -> Condition:
    scope, window, after = query.scope, query.window, query.after
    owned = scope if kind is EventKind.SEMANTIC else scope.private
    rows = scopes.readable(alias, owned, is_talk=kind is EventKind.EPISODIC)
    if kind is EventKind.SEMANTIC:
        rows &= visibility.not_expired_nor_in_review(alias, now) & visibility.not_superseded(alias)
        rows &= Condition(f"{alias}.turn_index IS NULL")
        rows &= visibility.not_hidden(alias, include_archived=query.include_archived, valid_at=None)
    if kind is EventKind.EPISODIC:
        rows &= Condition(f"{alias}.shown IS DISTINCT FROM ''") & scopes.without_expired_memories(alias, now)
        if not query.include_archived:
            rows &= visibility.not_archived(alias)
    if window.start is not None:
        rows &= Condition(f"{moment} >= :window_start", {"window_start": window.start})
    if window.end is not None:
        rows &= Condition(f"{moment} < :window_end", {"window_end": window.end})
    if after is not None:
        behind = {"after_time": after[0], "after_id": after[1]}
        rows &= Condition(f"({moment}, {alias}.id) < (:after_time, CAST(:after_id AS uuid))", behind)
    return rows
