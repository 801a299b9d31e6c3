"""How does what somebody said, and what is known of them, go for good?

With a scope go its turns, the conversations that are empty then, and with a whole user their profile. The log stays, as
history does; `purge` (migration 0012) takes it too, because the application has no right to delete there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import text

from service.db import scopes
from service.db.conditions import typed
from service.db.engine import Session
from service.domain.scope import Scope

TURNS = "DELETE FROM turn WHERE {here}"

EMPTY = """
    DELETE FROM conversation c WHERE c.workspace_id = :workspace
        AND (CAST(:user_id AS text) IS NULL OR c.user_id = :user_id)
        AND (CAST(:agent_id AS text) IS NULL OR c.agent_id = :agent_id)
        AND (CAST(:run_id AS text) IS NULL OR c.external_id = :run_id)
        AND (CAST(:channel AS text) IS NULL OR c.channel = :channel)
        AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = c.workspace_id AND t.conversation_id = c.id)
"""

PROFILE = text("DELETE FROM user_profile WHERE workspace_id = :workspace AND user_id = :user_id")

PURGE = text("""
    SELECT name, affected FROM purge_episodes(CAST(:user_id AS text), CAST(:agent_id AS text), CAST(:run_id AS text),
                                              CAST(:channel AS text), CAST(:memory_id AS uuid))
""")

LOG = text("SELECT erase_conversation_log(:until, :batch)")

# What a memory says as it was said: the turns it came from that have exactly its text. Another memory may have come
# from the same turn (a fact of it): then the turn stays.
OF_MEMORIES = text("""
    DELETE FROM turn t USING memory_source s, memory m
    WHERE s.workspace_id = :workspace AND s.memory_id = ANY (CAST(:ids AS uuid[]))
      AND m.workspace_id = :workspace AND m.id = s.memory_id
      AND t.workspace_id = :workspace AND t.id = s.turn_id AND t.content = m.content
      AND NOT EXISTS (SELECT FROM memory_source other WHERE other.workspace_id = :workspace AND other.turn_id = t.id
                      AND NOT other.memory_id = ANY (CAST(:ids AS uuid[])))
""")


async def erase(session: Session, scope: Scope, channel: str | None) -> None:
    """Takes the turns, conversations and profile of all that has every given id (and the channel, if one is given)."""
    owned = scopes.owned("turn", scope, channel)
    await session.execute(typed(text(TURNS.format(here=owned.sql))), dict(owned.values))
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id, "channel": channel}
    await session.execute(typed(text(EMPTY)), {"workspace": scope.workspace_id, **ids})
    if scope.user_id is not None and scope.agent_id is scope.run_id is channel is None:
        await session.execute(PROFILE, {"workspace": scope.workspace_id, "user_id": scope.user_id})


async def erase_of_memories(session: Session, values: Mapping[str, object]) -> None:
    """Takes the turns that say just what these memories say (`workspace`, `ids`), before the memories go."""
    await session.execute(OF_MEMORIES, values)


async def purge(session: Session, values: Mapping[str, object]) -> dict[str, int]:
    """Rows removed by table. Before purge_subject, which takes the sources that lead to the turns."""
    return {row.name: row.affected for row in await session.execute(PURGE, values)}


async def erase_log(session: Session, until: datetime, *, batch: int) -> int:
    """How many lines of the workspace's log went, at most `batch`."""
    return int(await session.scalar(LOG, {"until": until, "batch": batch}) or 0)
