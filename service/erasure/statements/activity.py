"""Deletes the other rows of a scope: goals, strategies, uses of tools, working memory and conversations."""

from __future__ import annotations

from sqlalchemy import text

from service.cognition.statements import invocations, records
from service.domain.scope import Scope
from service.postgres import scopes
from service.postgres.engine import Session
from service.postgres.tables import GOAL, STRATEGY
from service.postgres.template import typed_text
from service.working.statements import working

# Includes jobs that have not yet read the turns: their payload contains instructions sent with these.
DELETE_EMPTY_CONVERSATIONS = typed_text("""
    WITH gone AS (
        DELETE FROM conversation c WHERE c.workspace_id = :workspace
            AND (CAST(:user_id AS text) IS NULL OR c.user_id = :user_id)
            AND (CAST(:agent_id AS text) IS NULL OR c.agent_id = :agent_id)
            AND (CAST(:run_id AS text) IS NULL
                 OR c.external_id = :run_id AND (c.is_run OR CAST(:user_id AS text) IS NOT NULL))
            AND (CAST(:channel AS text) IS NULL OR c.channel = :channel)
            AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = c.workspace_id AND t.conversation_id = c.id)
        RETURNING c.id
    )
    DELETE FROM job j USING gone WHERE j.workspace_id = :workspace AND j.payload ->> 'conversation_id' = gone.id::text
""")

DELETE_PROFILE = text("DELETE FROM user_profile WHERE workspace_id = :workspace AND user_id = :user_id")


async def delete_activity(session: Session, scope: Scope, channel: str | None) -> dict[str, int]:
    """Deletes goals, strategies, uses of tools and working memory with every given id (and the channel, if given);
    returns the rows by table. Before the conversations are deleted, through which sessions of a run are found."""
    return {
        "working_item": await working.erase(session, scope, channel),
        "goal": await records.erase(session, GOAL, scope, channel),
        "strategy": await records.erase(session, STRATEGY, scope, channel),
        "tool_invocation": await invocations.erase(session, scope, channel),
    }


async def delete_conversations(session: Session, scope: Scope, channel: str | None) -> None:
    """Deletes the turns with every given id (and the channel, if given), the conversations that are then empty, and for
    a whole user the profile. The conversation log stays, as history does; a purge erases both."""
    turns = scopes.deletable("turn", scope, channel, is_talk=True)
    await session.execute(typed_text(f"DELETE FROM turn WHERE {turns.sql}"), dict(turns.values))  # noqa: S608 - no user input
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id, "channel": channel}
    await session.execute(DELETE_EMPTY_CONVERSATIONS, {**ids})
    if scope.user_id is not None and scope.agent_id is scope.run_id is channel is None:
        await session.execute(DELETE_PROFILE, {"user_id": scope.user_id})
