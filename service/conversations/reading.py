"""Conversations and turns read. Each verb is one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from service.conversations import transcript
from service.conversations.transcript import TranscriptTurn
from service.domain.conversation import Conversation, Turn
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.episodes.lookup import find
from service.episodes.statements import conversations, turns
from service.episodes.statements.turns import TurnFilter
from service.graph.statements.entities import mentioning
from service.http import cursors
from service.runtime.resources import Resources
from service.search import turn_search
from service.search.turn_search import RankedTurns


async def page(
    scope: Scope,
    res: Resources,
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
    include_archived: bool,
    consolidated: bool | None,
    entity_id: UUID | None,
) -> tuple[Sequence[Conversation], Mapping[UUID, int]]:
    """The conversations of a scope after a place, newest first, and how many turns each has."""
    async with res.db.snapshot(scope.workspace_id) as session:
        listed = await conversations.page(
            session,
            scope,
            after=after,
            limit=limit,
            include_archived=include_archived,
            consolidated=consolidated,
            mentions=mentioning(scope.workspace_id, entity_id) if entity_id else None,
        )
        return listed, await conversations.turn_counts(
            session, scope.workspace_id, [conversation.id for conversation in listed]
        )


async def get(owner: Scope, name: str, res: Resources) -> Conversation:
    """The conversation with this id or name. Raises NotFound or InvalidInput."""
    async with res.db.read(owner.workspace_id) as session:
        return await find(session, owner, name)


async def get_counted(owner: Scope, name: str, res: Resources) -> tuple[Conversation, int]:
    """The conversation, and how many turns it has; as `get`."""
    async with res.db.snapshot(owner.workspace_id) as session:
        conversation = await find(session, owner, name)
        counts = await conversations.turn_counts(session, owner.workspace_id, [conversation.id])
    return conversation, counts.get(conversation.id, 0)


class ConversationDetails(NamedTuple):
    """A conversation with a page of its turns; `last`: the index of the last of them where more follow."""

    conversation: Conversation
    turn_count: int
    turns: Sequence[TranscriptTurn]
    last: int | None


async def details(owner: Scope, name: str, res: Resources, *, after: int | None, limit: int) -> ConversationDetails:
    """The conversation with its turns after an index, in order. Raises NotFound or InvalidInput."""
    async with res.db.snapshot(owner.workspace_id) as session:
        conversation = await find(session, owner, name)
        stored = await turns.page(session, owner.workspace_id, conversation.id, after=after, limit=limit + 1)
        counts = await conversations.turn_counts(session, owner.workspace_id, [conversation.id])
        read, last = cursors.cut(stored, limit)
        shown = await transcript.of(session, read)
    return ConversationDetails(conversation, counts.get(conversation.id, 0), shown, last.index if last else None)


async def recent_turns(
    scope: Scope, res: Resources, *, since: datetime | None, channels: Sequence[str], skip: int, limit: int
) -> Sequence[Turn]:
    """The turns of a scope after the first `skip`, newest first."""
    wanted = TurnFilter(scope, since, channels=tuple(channels), now=res.clock())
    async with res.db.read(scope.workspace_id) as session:
        return await turns.recent(session, wanted, skip=skip, limit=limit)


async def search_turns(
    scope: Scope,
    text: CleanText,
    res: Resources,
    *,
    since: datetime | None,
    channels: Sequence[str],
    conversation_id: UUID | None,
    skip: int,
    limit: int,
) -> RankedTurns:
    """The turns of a scope, or of a conversation, that answer a query, best first."""
    wanted = TurnFilter(scope, since, conversation_id=conversation_id, channels=tuple(channels), now=res.clock())
    return await turn_search.search(wanted, text, limit, res, skip=skip)
