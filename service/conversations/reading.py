"""Conversations and turns read. Each verb is one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from service.domain.conversation import Conversation, Turn, WithdrawnSpan
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.episodes.statements import conversations, turns, withdrawn
from service.episodes.statements.turns import TurnFilter
from service.episodes.turns import find
from service.graph.statements.entities import mentioning
from service.http import cursors
from service.language import withdrawal
from service.postgres.engine import Session
from service.runtime.resources import Resources


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
        return listed, await conversations.turn_counts(session, [conversation.id for conversation in listed])


async def get(owner: Scope, name: str, res: Resources) -> Conversation:
    """The conversation with this id or name. Raises NotFound or InvalidInput."""
    async with res.db.read(owner.workspace_id) as session:
        return await find(session, owner, name)


async def details(
    owner: Scope, name: str, res: Resources, *, after: int | None, limit: int
) -> tuple[Conversation, int, Sequence[Turn], int | None]:
    """The conversation, how many turns it has, its transcript after an index, and the index of the last turn of that if
    more follow. Raises NotFound or InvalidInput."""
    async with res.db.snapshot(owner.workspace_id) as session:
        conversation = await find(session, owner, name)
        stored = await turns.page(session, conversation.id, after=after, limit=limit + 1)
        counts = await conversations.turn_counts(session, [conversation.id])
        read, last = cursors.cut(stored, limit)
        shown = await _transcribe(session, read)
    return conversation, counts.get(conversation.id, 0), shown, last.index if last else None


GONE = frozenset({"deleted", "expired"})


async def _transcribe(session: Session, stored: Sequence[Turn]) -> list[Turn]:
    """The turns as they were said, without deleted sentences; changed or superseded ones are marked. Search, recall and
    context leave out all of them (episodes/statements/withdrawn.py), because they would be taken for true."""
    touched = [turn.id for turn in stored if turn.whole is not None]
    if not touched:
        return list(stored)
    spans = await withdrawn.of_turns(session, touched)
    kept = await withdrawn.read_kept(session, touched)
    return [_mark(turn, turn.whole, spans.get(turn.id, []), kept.get(turn.id, [])) for turn in stored]


def _mark(turn: Turn, whole: CleanText | None, spans: Sequence[WithdrawnSpan], kept: Sequence[withdrawal.Span]) -> Turn:
    if whole is None:
        return turn
    removed = withdrawn.hidden_of([span for span in spans if span.reason in GONE], kept)
    marked = []
    for span in spans:
        if span.reason not in GONE:
            parts = (withdrawal.move(part, removed) for part in withdrawn.hidden_of([span], kept))
            marked += [replace(span, start=start, end=end) for start, end in parts if start < end]
    return replace(turn, text=CleanText(withdrawal.cut(whole, removed)), withdrawn=tuple(marked))


async def recent_turns(
    scope: Scope, res: Resources, *, since: datetime | None, channels: Sequence[str], skip: int, limit: int
) -> Sequence[Turn]:
    """The turns of a scope after the first `skip`, newest first."""
    wanted = TurnFilter(scope, since, channels=tuple(channels), now=res.clock())
    async with res.db.read(scope.workspace_id) as session:
        return await turns.recent(session, wanted, skip=skip, limit=limit)
