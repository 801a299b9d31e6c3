"""The visible turns right before new messages, which these answer, correct and refer to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import DateTime, String, TextClause, Uuid, bindparam, text

from service.domain.scope import Scope
from service.domain.text import CleanText
from service.episodes.statements import conversations
from service.episodes.statements.conversations import TurnContent
from service.episodes.statements.turns import StoredTurn
from service.postgres import direct
from service.postgres.engine import Session

# Uses uq_turn_workspace_id_conversation_id_turn_index.
BEFORE = text("""
    SELECT t.id, t.conversation_id, t.turn_index, t.role, t.speaker, coalesce(t.shown, t.content) AS content,
           t.timestamp
    FROM turn t
    WHERE t.workspace_id = :workspace AND t.conversation_id = :conversation AND t.turn_index < :index
      AND t.shown IS DISTINCT FROM ''
    ORDER BY t.turn_index DESC LIMIT :limit
""").bindparams(bindparam("workspace", type_=Uuid()), bindparam("conversation", type_=Uuid()))

# Uses uq_turn_workspace_id_conversation_id_turn_index.
OF_CONVERSATION = """
    SELECT t.id, t.conversation_id, t.turn_index, t.role, t.speaker, coalesce(t.shown, t.content) AS content,
           t.timestamp
    FROM turn t
    WHERE t.workspace_id = :workspace_id AND t.conversation_id = (SELECT id {named}) AND t.shown IS DISTINCT FROM ''
    ORDER BY t.turn_index DESC LIMIT :limit
"""

# The last conversation of a user or agent, if it has recent turns. Uses ix_turn_user or ix_turn_agent.
OF_RECENT_CONVERSATION = text("""
    WITH newest AS (
        SELECT t.conversation_id FROM turn t
        WHERE t.workspace_id = :workspace AND t.user_id IS NOT DISTINCT FROM :user
          AND t.agent_id IS NOT DISTINCT FROM :agent AND t.channel = :channel
          AND t.timestamp >= :since AND t.timestamp <= :until
        ORDER BY t.timestamp DESC, t.id DESC LIMIT 1
    )
    SELECT t.id, t.conversation_id, t.turn_index, t.role, t.speaker, coalesce(t.shown, t.content) AS content,
           t.timestamp
    FROM newest n
    JOIN turn t ON t.workspace_id = :workspace AND t.conversation_id = n.conversation_id
        AND t.shown IS DISTINCT FROM ''
    ORDER BY t.turn_index DESC LIMIT :limit
""").bindparams(
    bindparam("workspace", type_=Uuid()),
    bindparam("user", type_=String()),
    bindparam("agent", type_=String()),
    bindparam("since", type_=DateTime(timezone=True)),
    bindparam("until", type_=DateTime(timezone=True)),
)


async def before(session: Session, scope: Scope, first: StoredTurn, *, limit: int) -> list[TurnContent]:
    """The turns before a stored one, oldest first."""
    values = {"conversation": first.conversation_id, "index": first.index, "limit": limit}
    return await _turns(session, BEFORE, {"workspace": scope.workspace_id, **values})


async def of_conversation(session: Session, scope: Scope, external_id: str, *, limit: int) -> list[TurnContent]:
    """The last turns of a conversation, which may not exist yet."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id}
    values = {"workspace_id": scope.workspace_id, "external_id": external_id, "channel": scope.channel, "limit": limit}
    return await _turns(session, conversations.naming(OF_CONVERSATION, scope), {**ids, **values})


async def of_recent_conversation(
    session: Session, scope: Scope, since: datetime, until: datetime, *, limit: int
) -> list[TurnContent]:
    """The last turns of the newest conversation of exactly this user, agent and channel in which something was said
    between the two moments."""
    values = {"user": scope.user_id, "agent": scope.agent_id, "channel": scope.channel, "since": since, "until": until}
    return await _turns(session, OF_RECENT_CONVERSATION, {"workspace": scope.workspace_id, "limit": limit, **values})


async def _turns(session: Session, statement: TextClause, values: Mapping[str, Any]) -> list[TurnContent]:
    rows = await direct.fetch(session, statement, dict(values))
    return [
        TurnContent(
            StoredTurn(row.id, row.conversation_id, row.turn_index),
            row.role,
            row.speaker,
            CleanText(row.content),
            row.timestamp,
        )
        for row in reversed(rows)
    ]
