"""Finds a conversation by its id or its name."""

from __future__ import annotations

from service.domain.conversation import Conversation
from service.domain.errors import InvalidInput, NotFound
from service.domain.filters import uuid_or_none
from service.domain.scope import Scope
from service.episodes.statements import conversations
from service.postgres.engine import Session


async def find(session: Session, owner: Scope, wanted: str, field: str = "id") -> Conversation:
    """The conversation with this id, or else with this name, of the user and agent of `owner` (None: any). Raises
    NotFound, or InvalidInput if several have this name and the owner does not distinguish them."""
    workspace_id = owner.workspace_id
    as_id = uuid_or_none(wanted)
    conversation = await conversations.get(session, workspace_id, as_id) if as_id else None
    if conversation is not None and _is_owned(conversation, owner):
        return conversation
    named = await conversations.by_external_id(
        session, workspace_id, wanted, user_id=owner.user_id, agent_id=owner.agent_id
    )
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
