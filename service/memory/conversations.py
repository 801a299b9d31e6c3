"""How is a conversation opened, found and changed?

A conversation is known by its id, or by its user, agent and the name the caller gave it. Opening one that is there is
fine and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from service.db.engine import Session
from service.db.episodes import conversations
from service.domain.conversation import Conversation, ConversationChanges
from service.domain.request import WriteContext
from service.domain.revision import Expected
from service.domain.scope import Scope
from service.errors import InvalidInput, PreconditionFailed
from service.memory.store import write_transaction
from service.memory.transactions import keep, note
from service.memory.turns import missing
from service.pipeline import pii
from service.resources import Resources


@dataclass(frozen=True, slots=True)
class OpenedConversation:
    conversation: Conversation
    is_new: bool


async def open_one(
    scope: Scope,
    *,
    title: str | None,
    started_at: datetime | None,
    metadata: Mapping[str, Any],
    res: Resources,
    request: WriteContext,
) -> OpenedConversation:
    """The conversation named `scope.run_id`, made if it is new. Raises PiiRejected."""
    clean = None if title is None else await pii.clean_words(title, "title", res)
    kept = pii.of_json("metadata", dict(metadata))[0] if metadata else {}
    async with write_transaction(scope, res, request) as session:
        made = await conversations.create(
            session, scope, title=clean, started_at=started_at or res.clock(), metadata=kept
        )
        found = made or await conversations.exactly(session, scope)
        assert found is not None, "what stood in the way is visible under the scope lock"
        if made is not None:
            await note(session, "open", scope, [found.id], request, res, kind="episodic", conversation_id=found.id)
        opened = OpenedConversation(found, made is not None)
        await keep(session, scope.workspace_id, opened, request)
    return opened


async def find(session: Session, owner: Scope, wanted: str) -> Conversation:
    """The conversation with this id, or else with this name, of the user and agent that `owner` names (None: any).

    Raises NotFound, or InvalidInput when several of this name are there and the owner does not tell which.
    """
    workspace_id = owner.workspace_id
    found = await conversations.get(session, workspace_id, UUID(wanted)) if _is_uuid(wanted) else None
    if found is not None and _owns(owner, found):
        return found
    named = await conversations.named(session, workspace_id, wanted, user_id=owner.user_id, agent_id=owner.agent_id)
    if len(named) > 1:
        raise InvalidInput(
            "id: several conversations have this name; say whose with user_id or agent_id.", field="user_id"
        )
    if not named or not _owns(owner, named[0]):
        raise missing()
    return named[0]


async def change(
    there: Conversation,
    wishes: ConversationChanges,
    res: Resources,
    request: WriteContext,
    *,
    expected: Expected | None = None,
) -> Conversation:
    """The conversation as it is afterwards. Raises NotFound, PreconditionFailed or PiiRejected."""
    title = None if wishes.title is None else await pii.clean_words(wishes.title, "title", res)
    given = dict(wishes.metadata)
    new = pii.of_json("metadata", given)[0] if given else {}
    workspace_id, now = there.scope.workspace_id, res.clock()
    async with write_transaction(there.scope, res, request) as session:
        old = await conversations.lock(session, workspace_id, there.id)
        if old is None:
            raise missing()
        if expected is not None and not expected.meets(old.version):
            raise PreconditionFailed("The conversation has changed since: read it again.", field="If-Match")
        values: dict[str, Any] = {}
        if wishes.title_given:
            values["title"] = title
        if wishes.archived is not None:
            values["archived"] = wishes.archived
        if wishes.consolidated is not None:
            values["consolidated_at"] = (old.consolidated_at or now) if wishes.consolidated else None
        if wishes.patterns_extracted is not None:
            values["patterns_extracted"] = wishes.patterns_extracted
        if new:
            merged = {**old.metadata, **new}
            values["metadata"] = {key: value for key, value in merged.items() if new.get(key, key) is not None}
        found = await conversations.change(session, workspace_id, there.id, values, now=now) if values else old
        ids = [there.id]
        await note(
            session, "update", there.scope, ids, request, res, kind="episodic", conversation_id=there.id,
            fields=sorted(values),
        )  # fmt: skip
        await keep(session, workspace_id, found, request)
    return found


def _owns(owner: Scope, found: Conversation) -> bool:
    """Ids of a scope are not needed; one that is given must be the conversation's own (C14)."""
    asked = (owner.user_id, owner.agent_id, owner.run_id)
    own = (found.scope.user_id, found.scope.agent_id, found.scope.run_id)
    return all(wanted is None or wanted == there for wanted, there in zip(asked, own, strict=True))


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
