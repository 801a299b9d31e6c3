"""Users, agents, runs and channels, with the number of their memories."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import DateTime, Row, TextClause, bindparam, text

from service.access.values import KINDS, OwnerKind
from service.domain.scope import Scope
from service.postgres.engine import Session

# Walks ix_memory_user, _agent or _run in order, so a page costs as much as it shows.
COUNT_OWNERS = """
    SELECT '{kind}' AS type, m.{kind}_id AS id, count(*) AS memories, count(*) FILTER (WHERE m.archived) AS archived,
           min(m.created_at) AS first_used, max(greatest(m.updated_at, s.last_accessed)) AS last_used
    FROM memory m JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id
    WHERE m.workspace_id = :workspace AND m.{kind}_id IS NOT NULL
      AND (CAST(:after AS text) IS NULL OR m.{kind}_id > :after) AND (m.expires_at IS NULL OR m.expires_at > :now)
      AND m.version_of IS NULL
    GROUP BY m.{kind}_id ORDER BY m.{kind}_id LIMIT :limit
"""

COUNT_BY_KIND: dict[OwnerKind, TextClause] = {kind: text(COUNT_OWNERS.format(kind=kind)) for kind in KINDS}


async def owners(
    session: Session, kind: OwnerKind, *, after: str | None, limit: int, now: datetime
) -> Sequence[Row[Any]]:
    """The users, agents or runs of a workspace that have memories, by id, after `after`."""
    values = {"after": after, "limit": limit, "now": now}
    return (await session.execute(COUNT_BY_KIND[kind], values)).all()


# ix_memory_channel, ix_turn_channel, ix_conversation_channel; of a user ix_memory_user_channel.
COUNT_CHANNELS = text("""
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
          AND (CAST(:run_id AS text) IS NULL
               OR t.run_id = :run_id AND (t.is_run OR CAST(:user_id AS text) IS NOT NULL))
        GROUP BY t.channel
    ) each
    WHERE CAST(:after AS text) IS NULL OR channel > :after
    GROUP BY channel ORDER BY channel LIMIT :limit
""").bindparams(bindparam("now", type_=DateTime(timezone=True)))


async def channels(
    session: Session, scope: Scope, *, after: str | None, limit: int, now: datetime
) -> Sequence[Row[Any]]:
    """Channels by name, after `after`, of the given user, agent and run (none: of the whole workspace)."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}
    values = {**ids, "after": after, "limit": limit, "now": now}
    return (await session.execute(COUNT_CHANNELS, values)).all()
