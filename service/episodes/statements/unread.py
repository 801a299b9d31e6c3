"""Conversations with turns that were not read for facts yet.

`consolidated_turns` is the last turn that was read; the transaction that stores the facts advances it. Invisible turns
(`shown` is empty) are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Interval, bindparam, text

from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('loxodon:consolidate:' || :workspace, 0))")

# Facts get the same run as the conversation's own memories.
UNREAD = text("""
    SELECT c.workspace_id, c.id, c.user_id, c.agent_id, c.channel, c.external_id, said.first, said.last,
           (SELECT m.run_id FROM memory_source s JOIN memory m ON m.workspace_id = s.workspace_id AND m.id = s.memory_id
            WHERE s.workspace_id = c.workspace_id AND s.turn_id = said.last_id LIMIT 1) AS run_id
    FROM conversation c CROSS JOIN LATERAL (
        SELECT min(t.turn_index) AS first, max(t.turn_index) AS last, max(t.created_at) AS at,
               (array_agg(t.id ORDER BY t.turn_index DESC))[1] AS last_id
        FROM turn t
        WHERE t.workspace_id = c.workspace_id AND t.conversation_id = c.id
          AND t.turn_index >= c.consolidated_turns AND t.shown IS DISTINCT FROM ''
    ) said
    WHERE c.workspace_id = :workspace AND c.id > :after AND c.consolidated_at IS NULL AND NOT c.archived
      AND (c.user_id IS NOT NULL OR c.agent_id IS NOT NULL)  -- nobody's facts would be everybody's
      AND said.at <= now() - :quiet
      AND (:kept OR NOT EXISTS (
          SELECT FROM memory_source s JOIN memory m ON m.workspace_id = s.workspace_id AND m.id = s.memory_id
          WHERE s.workspace_id = c.workspace_id AND s.turn_id = said.last_id AND m.turn_index IS NOT NULL))
      AND NOT EXISTS (SELECT FROM job j WHERE j.workspace_id = c.workspace_id AND j.kind = 'consolidate'
                      AND j.state IN ('ready', 'running', 'dead') AND j.payload ->> 'conversation_id' = c.id::text)
    ORDER BY c.id LIMIT :batch
""").bindparams(bindparam("quiet", type_=Interval()))


@dataclass(frozen=True, slots=True)
class UnreadTurns:
    """Turns `first` to `last` of a conversation; `scope` is that of the facts, `name` the conversation's own."""

    conversation_id: UUID
    scope: Scope
    name: str
    first: int
    last: int


async def find(session: Session, *, after: UUID, quiet: timedelta, kept: bool, batch: int) -> list[UnreadTurns]:
    """At most `batch` conversations after the id `after`; `quiet`: since their last turn was stored; `kept`: also
    messages that are stored verbatim as memories. A conversation with a job is skipped, even if that job is dead,
    because a person has to decide about it. A concurrent run waits until the transaction ends, and then sees its
    jobs."""
    await session.execute(LOCK, {"workspace": str(session.workspace_id)})
    values = {"after": after, "quiet": quiet, "kept": kept, "batch": batch}
    rows = await direct.fetch(session, UNREAD, values)
    return [UnreadTurns(row.id, scopes.of_row(row), row.external_id, row.first, row.last) for row in rows]
