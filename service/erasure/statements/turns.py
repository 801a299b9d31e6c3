"""Deletes turns and conversations, and finds the facts extracted from them alone."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text

from service.domain.scope import Scope
from service.erasure.values import Target
from service.postgres.engine import Session
from service.working.statements import working

OF_CONVERSATION = text("""
    SELECT id FROM turn WHERE workspace_id = :workspace AND conversation_id = :conversation ORDER BY id
""")

EVER_OF_CONVERSATION = text("""
    SELECT id FROM turn WHERE workspace_id = :workspace AND conversation_id = :conversation
    UNION
    SELECT turn_id FROM conversation_log WHERE workspace_id = :workspace AND conversation_id = :conversation
    ORDER BY id
""")

# ix_conversation_log_conversation; a turn alone is looked up among all.
LOG = text("""
    SELECT turn_id, conversation_id, user_id, agent_id, run_id, is_run FROM conversation_log
    WHERE workspace_id = :workspace AND (conversation_id = :id OR turn_id = :id) LIMIT 1
""")

# Looked up among all; the newest, as a name can be used again. One that still exists was not meant.
NAMED_IN_LOG = text("""
    SELECT l.conversation_id, l.user_id, l.agent_id, l.run_id, l.is_run FROM conversation_log l
    WHERE l.workspace_id = :workspace AND l.run_id = :run_id
      AND (CAST(:user_id AS text) IS NULL OR l.user_id = :user_id)
      AND (CAST(:agent_id AS text) IS NULL OR l.agent_id = :agent_id)
      AND NOT EXISTS (SELECT FROM conversation c WHERE c.workspace_id = :workspace AND c.id = l.conversation_id)
    ORDER BY l.recorded_at DESC LIMIT 1
""")

VERBATIM = text("""
    SELECT m.id FROM turn t JOIN memory m
        ON m.workspace_id = t.workspace_id AND m.conversation_id = t.conversation_id AND m.turn_index = t.turn_index
    WHERE t.workspace_id = :workspace AND t.id = ANY (CAST(:turns AS uuid[])) ORDER BY m.id
""")

EXTRACTED = text("""
    SELECT DISTINCT s.memory_id FROM memory_source s
    WHERE s.workspace_id = :workspace AND s.turn_id = ANY (CAST(:turns AS uuid[]))
      AND NOT EXISTS (SELECT FROM memory_source other
                      WHERE other.workspace_id = :workspace AND other.memory_id = s.memory_id
                        AND NOT other.turn_id = ANY (CAST(:turns AS uuid[])))
    ORDER BY s.memory_id
""")

# Deleted facts; walks over the history of the workspace.
DELETED_EXTRACTED = text("""
    SELECT h.memory_id FROM memory_history h
    CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) was
    WHERE h.workspace_id = :workspace AND h.event = 'DELETE'
      AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = :workspace AND m.id = h.memory_id)
    GROUP BY h.memory_id HAVING bool_and((was ->> 'turn_id')::uuid = ANY (CAST(:turns AS uuid[])))
""")

DELETE = text("DELETE FROM turn WHERE workspace_id = :workspace AND id = ANY (CAST(:turns AS uuid[]))")

DELETE_USES = text("""
    DELETE FROM tool_invocation
    WHERE workspace_id = :workspace
      AND (turn_id = ANY (CAST(:turns AS uuid[])) OR conversation_id = CAST(:conversation AS uuid))
""")

DELETE_CONVERSATION = text("""
    WITH gone AS (
        DELETE FROM conversation WHERE workspace_id = :workspace AND id = :conversation RETURNING id
    )
    DELETE FROM job j USING gone WHERE j.workspace_id = :workspace AND j.payload ->> 'conversation_id' = gone.id::text
""")

COUNT_UP = text("""
    UPDATE conversation SET version = version + 1, updated_at = now()
    WHERE workspace_id = :workspace AND id = :conversation
""")


async def of_conversation(session: Session, conversation_id: UUID, *, ever: bool) -> list[UUID]:
    """The turns of a conversation; with `ever` also deleted ones, as far as the log goes back."""
    statement = EVER_OF_CONVERSATION if ever else OF_CONVERSATION
    return list(await session.scalars(statement, {"conversation": conversation_id}))


async def find_logged(session: Session, wanted: UUID) -> Target | None:
    """The logged turn or conversation with this id, which may be deleted."""
    row = (await session.execute(LOG, {"id": wanted})).one_or_none()
    if row is None:
        return None
    scope = Scope(session.workspace_id, row.user_id, row.agent_id, row.run_id, is_run=row.is_run)
    return Target(scope, row.conversation_id, wanted if row.turn_id == wanted else None)


async def find_named_in_log(session: Session, owner: Scope, name: str) -> Target | None:
    """The newest deleted conversation with this name of this user and agent (None: any)."""
    values = {"run_id": name, "user_id": owner.user_id, "agent_id": owner.agent_id}
    row = (await session.execute(NAMED_IN_LOG, values)).one_or_none()
    if row is None:
        return None
    scope = Scope(session.workspace_id, row.user_id, row.agent_id, row.run_id, is_run=row.is_run)
    return Target(scope, row.conversation_id)


async def list_verbatim(session: Session, turns: Sequence[UUID]) -> list[UUID]:
    """The memories that store these turns verbatim."""
    return list(await session.scalars(VERBATIM, {"turns": list(turns)}))


async def list_extracted_from(session: Session, turns: Sequence[UUID]) -> list[UUID]:
    """The memories extracted from these turns alone."""
    return list(await session.scalars(EXTRACTED, {"turns": list(turns)}))


async def list_deleted_extracted_from(session: Session, turns: Sequence[UUID]) -> list[UUID]:
    """The deleted memories extracted from these turns alone. Slow."""
    return list(await session.scalars(DELETED_EXTRACTED, {"turns": list(turns)}))


async def delete(session: Session, turns: Sequence[UUID], target: Target) -> None:
    """Deletes turns with the uses of tools in them; if the target is a conversation, of which they are all the turns,
    also that with its working memory and its jobs. A conversation with turns outside the wall stays."""
    is_conversation = target.turn_id is None
    values = {"turns": list(turns), "conversation": target.conversation_id}
    await session.execute(DELETE_USES, values if is_conversation else {**values, "conversation": None})
    if is_conversation:
        await working.erase_of_conversation(session, target.conversation_id)
    await session.execute(DELETE, values)
    await session.execute(COUNT_UP, values)
    if is_conversation:
        await session.execute(DELETE_CONVERSATION, values)
