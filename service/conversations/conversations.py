"""Opening, finding, changing and reading conversations.

A conversation is identified by its id, or by its user, agent and the name the caller gave it
(docs/decisions/015-conversation-identity.md). Opening one that exists changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.conversations.models import CreateConversationRequest, PatchConversationRequest
from service.conversations.statements import conversations, turns, withdrawn
from service.conversations.statements.turns import TurnFilter
from service.domain.conversation import Conversation, Turn, WithdrawnSpan
from service.domain.errors import InvalidInput, NotFound
from service.domain.filters import uuid_or_none
from service.domain.request import Call
from service.domain.scope import Scope
from service.domain.sizes import check_merged
from service.domain.text import CleanText
from service.http import cursors
from service.language import withdrawal
from service.postgres.engine import Session
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction


async def open_conversation(
    scope: Scope, body: CreateConversationRequest, res: Resources, call: Call
) -> tuple[Conversation, bool]:
    """The conversation named `scope.run_id` (None: a new name), and whether it is new. Raises PiiRejected."""
    scope = scope if scope.run_id else replace(scope, run_id=str(uuid7()))
    title = None if body.title is None else await pii.clean_words(body.title, "title", res)
    metadata, _ = await pii.clean_object(body.metadata, "metadata", res)
    async with write_transaction(scope, res, call) as write:
        known = await conversations.of_scope(write.session, scope)
        if known is not None:
            return await write.answer((known, False))
        new = await conversations.create(
            write.session, scope, title=title, started_at=body.started_at or res.clock(), metadata=metadata
        )
        await write.audit("open", scope, [new.id], subject="episodic", conversation_id=new.id)
        return await write.answer((new, True))


async def change(
    conversation: Conversation, body: PatchConversationRequest, res: Resources, call: Call
) -> tuple[Conversation, int]:
    """The conversation after the change, and how many turns it has. Raises NotFound, PreconditionFailed or
    PiiRejected."""
    title = None if body.title is None else await pii.clean_words(body.title, "title", res)
    metadata, _ = await pii.clean_object(body.metadata, "metadata", res)
    scope, now = conversation.scope, res.clock()
    async with write_transaction(scope, res, call) as write:
        old = await conversations.get(write.session, conversation.id, lock=True)
        if old is None:
            raise NotFound.of("conversation")
        write.check_version(old.version, "conversation")
        values = _columns(old, body, title, metadata, now)
        changed = await conversations.change(write.session, old.id, values, now=now) if values else old
        fields = sorted(values)
        await write.audit("update", scope, [old.id], subject="episodic", conversation_id=old.id, fields=fields)
        counts = await conversations.turn_counts(write.session, [old.id])
        return await write.answer((changed, counts.get(old.id, 0)))


def _columns(
    old: Conversation,
    changes: PatchConversationRequest,
    title: CleanText | None,
    metadata: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """The columns to set; title and metadata are redacted."""
    values: dict[str, Any] = {}
    if "title" in changes.model_fields_set:
        values["title"] = title
    if changes.archived is not None:
        values["archived"] = changes.archived
    if changes.consolidated is not None:
        values["consolidated_at"] = (old.consolidated_at or now) if changes.consolidated else None
        values["consolidated_turns"] = old.next_index if changes.consolidated else 0
    if metadata:
        merged = {**old.metadata, **metadata}
        values["metadata"] = {key: value for key, value in merged.items() if metadata.get(key, key) is not None}
        check_merged("metadata", values["metadata"])
    return values


async def list_conversations(
    scope: Scope,
    res: Resources,
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
    include_archived: bool,
    consolidated: bool | None,
    entity_id: UUID | None,
) -> tuple[Sequence[Conversation], Mapping[UUID, int]]:
    """The conversations of a scope after a key, newest first, and how many turns each has. `entity_id`: only those that
    mention this entity."""
    async with res.db.snapshot(scope.workspace_id) as session:
        page = await conversations.page(
            session,
            scope,
            after=after,
            limit=limit,
            include_archived=include_archived,
            consolidated=consolidated,
            entity_id=entity_id,
        )
        return page, await conversations.turn_counts(session, [conversation.id for conversation in page])


async def find_conversation(session: Session, owner: Scope, wanted: str, field: str = "id") -> Conversation:
    """The conversation with this id, or else with this name, of the user and agent of `owner` (None: any). Raises
    NotFound, or InvalidInput if several have this name and the owner does not distinguish them."""
    as_id = uuid_or_none(wanted)
    conversation = await conversations.get(session, as_id) if as_id else None
    if conversation is not None and _is_owned(conversation, owner):
        return conversation
    named = await conversations.by_external_id(session, wanted, owner)
    if len(named) > 1:
        raise InvalidInput(
            f"{field}: several conversations have this name; say whose with user_id or agent_id.", field="user_id"
        )
    if not named or not _is_owned(named[0], owner):
        raise NotFound.of("conversation", field)
    return named[0]


def _is_owned(conversation: Conversation, owner: Scope) -> bool:
    """Ids of a scope are optional here; one that is given must be the conversation's."""
    return conversation.scope.has_ids(user_id=owner.user_id, agent_id=owner.agent_id, run_id=owner.run_id)


async def get(owner: Scope, name: str, res: Resources) -> Conversation:
    """The conversation with this id or name. Raises NotFound or InvalidInput."""
    async with res.db.read(owner.workspace_id) as session:
        return await find_conversation(session, owner, name)


async def details(
    owner: Scope, name: str, res: Resources, *, after: int | None, limit: int
) -> tuple[Conversation, int, Sequence[Turn], int | None]:
    """The conversation, how many turns it has, its transcript after an index, and the index of the last turn of that if
    more follow. Raises NotFound or InvalidInput."""
    async with res.db.snapshot(owner.workspace_id) as session:
        conversation = await find_conversation(session, owner, name)
        stored = await turns.page(session, conversation.id, after=after, limit=limit + 1)
        counts = await conversations.turn_counts(session, [conversation.id])
        read, last = cursors.cut(stored, limit)
        shown = await _transcribe(session, read)
    return conversation, counts.get(conversation.id, 0), shown, last.index if last else None


async def _transcribe(session: Session, stored: Sequence[Turn]) -> list[Turn]:
    """The turns as they were said, without deleted sentences and turns of which nothing is left; changed or superseded
    ones are marked. Search, recall and context leave out all of them (conversations/statements/withdrawn.py)."""
    touched = [turn.id for turn in stored if turn.whole is not None]
    if not touched:
        return list(stored)
    spans = await withdrawn.of_turns(session, touched)
    kept = await withdrawn.read_kept(session, touched)
    marked = [_mark(turn, turn.whole, spans.get(turn.id, []), kept.get(turn.id, [])) for turn in stored]
    return [turn for turn in marked if turn.text]


def _mark(turn: Turn, full: CleanText | None, spans: Sequence[WithdrawnSpan], kept: Sequence[withdrawal.Span]) -> Turn:
    if full is None:
        return turn
    gone = withdrawn.gone_of(spans, kept)
    removed = [(start, len(full) - len(full[end:].lstrip())) for start, end in gone]
    marked = []
    for span in spans:
        if span.reason not in withdrawn.GONE:
            parts = (withdrawal.move(part, removed) for part in withdrawn.hidden_of([span], kept))
            marked += [replace(span, start=start, end=end) for start, end in parts if start < end]
    return replace(turn, text=CleanText(withdrawal.cut(full, removed).rstrip()), withdrawn=tuple(marked))


async def recent_turns(
    scope: Scope, res: Resources, *, since: datetime | None, channels: Sequence[str], skip: int, limit: int
) -> Sequence[Turn]:
    """The turns of a scope after the first `skip`, newest first."""
    wanted = TurnFilter(scope, since, channels=tuple(channels), now=res.clock())
    async with res.db.read(scope.workspace_id) as session:
        return await turns.recent(session, wanted, skip=skip, limit=limit)
