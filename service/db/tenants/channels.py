"""Which channels are there, and how much stands in each?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import DateTime, bindparam, text

from service.db.engine import Session
from service.domain.scope import Scope

# ix_memory_channel, ix_turn_channel, ix_conversation_of_channel; of a user ix_memory_user_channel.
COUNT = text("""
    SELECT channel, sum(memories)::bigint AS memories, sum(turns)::bigint AS turns,
           sum(conversations)::bigint AS conversations, max(last_used) AS last_used
    FROM (
        SELECT m.channel, count(*) AS memories, 0 AS turns, 0 AS conversations, max(m.updated_at) AS last_used
        FROM memory m
        WHERE m.workspace_id = :workspace AND NOT m.archived AND m.review_status IS NULL
          AND (m.expires_at IS NULL OR m.expires_at > :now)
          AND (CAST(:user_id AS text) IS NULL OR m.user_id = :user_id)
          AND (CAST(:agent_id AS text) IS NULL OR m.agent_id = :agent_id)
          AND (CAST(:run_id AS text) IS NULL OR m.run_id = :run_id)
        GROUP BY m.channel
        UNION ALL
        SELECT t.channel, 0, count(*), count(DISTINCT t.conversation_id), max(t.created_at)
        FROM turn t
        WHERE t.workspace_id = :workspace AND NOT t.archived
          AND (CAST(:user_id AS text) IS NULL OR t.user_id = :user_id)
          AND (CAST(:agent_id AS text) IS NULL OR t.agent_id = :agent_id)
          AND (CAST(:run_id AS text) IS NULL OR t.run_id = :run_id)
        GROUP BY t.channel
    ) each
    WHERE CAST(:after AS text) IS NULL OR channel > :after
    GROUP BY channel ORDER BY channel LIMIT :limit
""").bindparams(bindparam("now", type_=DateTime(timezone=True)))


@dataclass(frozen=True, slots=True)
class Channel:
    """What can be found in it: live memories, turns and the conversations they belong to. `last_used`: last write."""

    name: str
    memories: int
    turns: int
    conversations: int
    last_used: datetime


async def page(session: Session, scope: Scope, *, after: str | None, limit: int, now: datetime) -> list[Channel]:
    """Channels behind `after` by name, of the given ids (none: of the whole workspace)."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}
    values = {"workspace": scope.workspace_id, **ids, "after": after, "limit": limit, "now": now}
    return [Channel(*row) for row in await session.execute(COUNT, values)]
