"""The change feed, read from history: each entry with the memory as the change left it.

An entry has the position of the transaction that wrote it, or of a later one that had already changed the same memory.
So the order of positions is the order of changes of each memory. Nothing can be added before the oldest running
transaction, so reads up to there are complete. See docs/decisions/074-change-feed.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from service.feed.values import FEED_START, ChangedMemory, FeedEntry, FeedPosition, MemoryState, kind_of
from service.postgres import direct
from service.postgres.engine import Session

COLUMNS = {name: "content" if name == "memory" else name for name in ChangedMemory.model_fields}
"""The column of each field of a memory in a change. Effects of use, ageing and jobs are not changes."""

SETTLED = "(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)"
"""The oldest transaction of the server that may still write; read once per statement."""

# `next` is the next change of the memory: its `before` is the state after this one. If there is none, the state is the
# memory's row. ix_memory_history_position, pk_erased_memory.
PAGE = text(f"""
    SELECT c.position, c.seq, c.memory_id, c.event, c.at, c.user_id AS of_user, c.agent_id AS of_agent,
           c.run_id AS of_run, c.before IS NOT NULL AS was,
           coalesce((c.before ->> 'archived')::boolean, false) AS was_archived,
           coalesce(c.before ->> 'version_of', c.before ->> 'review_status') IS NOT NULL AS was_hidden,
           (c.before ->> 't_invalid')::timestamptz AS was_invalid,
           coalesce(m.version_of::text, m.review_status) IS NOT NULL AS is_hidden,
           {", ".join(f'm."{column}" AS "{name}"' for name, column in COLUMNS.items())}
    FROM (SELECT * FROM (
        (SELECT h.position, h.seq, h.memory_id, h.event, h.before, h.recorded_at AS at, h.user_id, h.agent_id, h.run_id
         FROM memory_history h
         WHERE h.workspace_id = :workspace AND (h.position, h.seq) > (:position, :seq) AND h.position < {SETTLED}
         ORDER BY h.position, h.seq LIMIT :limit)
        UNION ALL
        (SELECT e.position, e.seq, e.memory_id, NULL, NULL::jsonb, e.erased_at, NULL, NULL, NULL
         FROM erased_memory e
         WHERE e.workspace_id = :workspace AND (e.position, e.seq) > (:position, :seq) AND e.position < {SETTLED}
         ORDER BY e.position, e.seq LIMIT :limit)
    ) found ORDER BY position, seq LIMIT :limit) c
    LEFT JOIN LATERAL (
        SELECT n.id, n.before FROM memory_history n
        WHERE c.event IS NOT NULL AND n.workspace_id = :workspace AND n.memory_id = c.memory_id
          AND (n.recorded_at, n.seq) > (c.at, c.seq)
        ORDER BY n.recorded_at, n.seq LIMIT 1
    ) next ON true
    LEFT JOIN LATERAL (
        SELECT r.* FROM jsonb_populate_record(CAST(NULL AS memory), next.before) r WHERE next.before IS NOT NULL
        UNION ALL
        SELECT l.* FROM memory l
        WHERE c.event IS NOT NULL AND next.id IS NULL AND l.workspace_id = :workspace AND l.id = c.memory_id
    ) m ON true
    ORDER BY c.position, c.seq
""")  # noqa: S608 - no user input

NEWEST = text(f"""
    SELECT c.position, c.seq FROM (
        (SELECT h.position, h.seq FROM memory_history h WHERE h.workspace_id = :workspace AND h.position < {SETTLED}
         ORDER BY h.position DESC, h.seq DESC LIMIT 1)
        UNION ALL
        (SELECT e.position, e.seq FROM erased_memory e WHERE e.workspace_id = :workspace AND e.position < {SETTLED}
         ORDER BY e.position DESC, e.seq DESC LIMIT 1)
    ) c ORDER BY c.position DESC, c.seq DESC LIMIT 1
""")  # noqa: S608 - no user input

# Restoring a dump creates a new table, on this server or another. On Citus it is asked of the node of the workspace,
# because the statement reads a table there.
SOURCE = text("""
    SELECT to_hex(system_identifier) || '.' || 'memory_history'::regclass::oid AS source, clock_timestamp() AS now,
           pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next
    FROM pg_control_system(),
         (SELECT count(*) FROM memory_history WHERE workspace_id = :workspace AND position < 0) there
""")


@dataclass(frozen=True, slots=True)
class FeedSource:
    """The identity of the tables, the server's clock, and `next`: no transaction has a greater number yet."""

    source: str
    now: datetime
    next: int


async def read_source(session: Session) -> FeedSource:
    (row,) = await direct.fetch(session, SOURCE, {})
    return FeedSource(row.source, row.now, row.next)


async def list_entries(
    session: Session, after: FeedPosition, *, limit: int
) -> tuple[Sequence[FeedEntry], FeedPosition, bool]:
    """The next visible changes after `after`, in order; the position of the last entry that was read; and whether there
    may be more, because `limit` or the most entries of one read was reached."""
    values = {"position": after.position, "seq": after.seq, "limit": limit}
    rows = await direct.page(session, PAGE, values, _position_of)
    entries = [entry for _, entry in rows if entry is not None]
    end = rows[-1][0] if rows else after
    return entries, end, len(rows) == limit or (bool(rows) and len(rows) % direct.PIECE == 0)


async def entry_at(session: Session, at: FeedPosition) -> FeedEntry | None:
    """The change at this position; None if it was erased."""
    entries, _, _ = await list_entries(session, FeedPosition(at.position, at.seq - 1), limit=1)
    return entries[0] if entries and entries[0].at == at else None


async def find_newest(session: Session) -> FeedPosition:
    """The position of the last settled entry."""
    row = await direct.first(session, NEWEST, {})
    return FEED_START if row is None else FeedPosition(row.position, row.seq)


def _position_of(row: Any) -> tuple[FeedPosition, FeedEntry | None]:
    return FeedPosition(row.position, row.seq), _entry(row)


def _entry(row: Any) -> FeedEntry | None:
    at = FeedPosition(row.position, row.seq)
    if row.event is None:
        return FeedEntry(at, "memory.erased", row.memory_id, row.at)
    before = MemoryState(row.was_archived, row.was_hidden, row.was_invalid) if row.was else None
    after = None if row.id is None else MemoryState(row.archived, row.is_hidden, row.t_invalid)
    kind = kind_of(before, after)
    if kind is None:
        return None
    memory = None if kind == "memory.deleted" else ChangedMemory.of(row)
    return FeedEntry(at, kind, row.memory_id, row.at, row.of_user, row.of_agent, row.of_run, memory)
