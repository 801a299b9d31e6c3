"""The visible turns of a conversation before an index, which what follows answers, corrects and refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, String, TextClause, Uuid, bindparam, text

from service.domain.scope import Scope
from service.domain.text import CleanText
from service.episodes.statements.turns import StoredTurn
from service.postgres import direct
from service.postgres.engine import Session

# Uses uq_turn_workspace_id_conversation_id_turn_index.
LAST = """
    SELECT t.id, t.conversation_id, t.turn_index, t.role, t.speaker, coalesce(t.shown, t.content) AS content,
           t.timestamp
    FROM turn t
    WHERE t.workspace_id = :workspace_id AND t.conversation_id = {} AND t.shown IS DISTINCT FROM ''
    ORDER BY t.turn_index DESC LIMIT :limit
"""
BEFORE = text(LAST.format(":conversation AND t.turn_index >= :first AND t.turn_index < :end")).bindparams(
    bindparam("workspace_id", type_=Uuid()), bindparam("conversation", type_=Uuid())
)

# The last conversation of a user or agent, if it has recent turns. Uses ix_turn_user or ix_turn_agent.
OF_RECENT_CONVERSATION = text(
    LAST.format("""(
        SELECT n.conversation_id FROM turn n
        WHERE n.workspace_id = :workspace_id AND n.user_id IS NOT DISTINCT FROM :user
          AND n.agent_id IS NOT DISTINCT FROM :agent AND n.channel = :channel
          AND n.timestamp >= :since AND n.timestamp <= :until
        ORDER BY n.timestamp DESC, n.id DESC LIMIT 1
    )""")
).bindparams(
    bindparam("workspace_id", type_=Uuid()),
    bindparam("user", type_=String()),
    bindparam("agent", type_=String()),
    bindparam("since", type_=DateTime(timezone=True)),
    bindparam("until", type_=DateTime(timezone=True)),
)


@dataclass(frozen=True, slots=True)
class TurnContent:
    """What was said in a turn, by whom and when."""

    place: StoredTurn
    role: str
    speaker: str | None
    text: CleanText
    timestamp: datetime


async def before(
    session: Session, conversation_id: UUID, end: int, *, first: int = 0, limit: int | None = None
) -> list[TurnContent]:
    """The last turns with indexes from `first` to before `end`, oldest first."""
    values = {"conversation": conversation_id, "first": first, "end": end, "limit": limit}
    return await _turns(session, BEFORE, {"workspace_id": session.workspace_id, **values})


async def of_recent_conversation(
    session: Session, scope: Scope, since: datetime, until: datetime, *, limit: int
) -> list[TurnContent]:
    """The last turns of the newest conversation of exactly this user, agent and channel in which something was said
    between the two moments."""
    values = {"user": scope.user_id, "agent": scope.agent_id, "channel": scope.channel, "since": since, "until": until}
    return await _turns(session, OF_RECENT_CONVERSATION, {"workspace_id": scope.workspace_id, "limit": limit, **values})


async def _turns(session: Session, statement: TextClause, values: Mapping[str, Any]) -> list[TurnContent]:
    return list(map(_content, reversed(await direct.fetch(session, statement, values))))


_content = direct.reader(
    TurnContent,
    place=lambda row: StoredTurn(row.id, row.conversation_id, row.turn_index),
    text=lambda row: CleanText(row.content),
)
