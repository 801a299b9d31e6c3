"""Opening, finding and changing conversations.

A conversation is identified by its id, or by its user, agent and the name the caller gave it
(docs/decisions/015-conversation-identity.md). Opening one that exists changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from uuid_utils.compat import uuid7

from service.domain.conversation import Conversation, ConversationChanges
from service.domain.errors import NotFound
from service.domain.request import Call, Expected, check_version
from service.domain.scope import Scope
from service.domain.sizes import check_merged
from service.episodes.statements import conversations
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction


async def open_conversation(
    scope: Scope,
    *,
    title: str | None,
    started_at: datetime | None,
    metadata: Mapping[str, Any],
    res: Resources,
    call: Call,
) -> tuple[Conversation, bool]:
    """The conversation named `scope.run_id` (None: a new name), and whether it is new. Raises PiiRejected."""
    scope = scope if scope.run_id else replace(scope, run_id=str(uuid7()))
    clean_title = None if title is None else await pii.clean_words(title, "title", res)
    clean_metadata, _ = await pii.clean_object(metadata, "metadata", res)
    async with write_transaction(scope, res, call) as write:
        known = await conversations.of_scope(write.session, scope)
        conversation = known or await conversations.create(
            write.session, scope, title=clean_title, started_at=started_at or res.clock(), metadata=clean_metadata
        )
        if known is None:
            made = conversation.id
            await write.audit("open", scope, [made], subject="episodic", conversation_id=made)
        return await write.answer((conversation, known is None))


async def change(
    conversation: Conversation,
    changes: ConversationChanges,
    res: Resources,
    call: Call,
    *,
    expected: Expected | None = None,
) -> tuple[Conversation, int]:
    """The conversation after the change, and how many turns it has. Raises NotFound, PreconditionFailed or
    PiiRejected."""
    title = None if changes.title is None else await pii.clean_words(changes.title, "title", res)
    metadata, _ = await pii.clean_object(changes.metadata or {}, "metadata", res)
    clean = replace(changes, title=title, metadata=metadata)
    scope, now = conversation.scope, res.clock()
    async with write_transaction(scope, res, call) as write:
        old = await conversations.get(write.session, conversation.id, lock=True)
        if old is None:
            raise NotFound.of("conversation")
        check_version(old.version, expected, "conversation")
        values = _columns(old, clean, now)
        changed = await conversations.change(write.session, old.id, values, now=now) if values else old
        fields = sorted(values)
        await write.audit("update", scope, [old.id], subject="episodic", conversation_id=old.id, fields=fields)
        counts = await conversations.turn_counts(write.session, [old.id])
        return await write.answer((changed, counts.get(old.id, 0)))


def _columns(old: Conversation, changes: ConversationChanges, now: datetime) -> dict[str, Any]:
    """The columns to set."""
    values: dict[str, Any] = {}
    if changes.title_given:
        values["title"] = changes.title
    if changes.archived is not None:
        values["archived"] = changes.archived
    if changes.consolidated is not None:
        values["consolidated_at"] = (old.consolidated_at or now) if changes.consolidated else None
        values["consolidated_turns"] = old.next_index if changes.consolidated else 0
    if changes.metadata:
        merged = {**old.metadata, **changes.metadata}
        values["metadata"] = {key: value for key, value in merged.items() if changes.metadata.get(key, key) is not None}
        check_merged("metadata", values["metadata"])
    return values
