"""Deletes a conversation or one turn: its text, and the memories that are verbatim turns of it.

Facts that were read from it belong to the user and stay, unless the caller also wants to delete those that come from it
alone. A purge always erases these, with history, log and everything else that contains their words.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from service.conversations.conversations import find_conversation
from service.conversations.statements import contexts, conversations
from service.conversations.statements.turns import get_many
from service.domain.errors import NotFound
from service.domain.filters import uuid_or_none
from service.domain.request import Call
from service.domain.scope import Scope
from service.erasure.purge import receipt_of
from service.erasure.statements import purge, turns
from service.erasure.values import DeletedTalkResponse, PurgeReceiptResponse, Talk
from service.memories.lifecycle import in_batches
from service.memories.statements import deletion
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.transactions import Write, write_transaction
from service.working.statements import working


async def find_turn(owner: Scope, turn_id: UUID, res: Resources) -> Talk:
    """The turn with this id, existing or deleted, of the user, agent and run of `owner` (None: any)."""
    async with res.db.read(owner.workspace_id) as session:
        turn = (await get_many(session, [turn_id])).get(turn_id)
        talk = Talk(turn.scope, turn.conversation_id, turn_id) if turn else await turns.find_logged(session, turn_id)
    if talk is None or talk.turn_id is None or not _is_owned(talk, owner):
        raise NotFound.of("turn")
    return talk


async def find_present_or_logged(owner: Scope, wanted: str, res: Resources) -> Talk:
    """The conversation, existing or (by its id) deleted. Raises NotFound."""
    async with res.db.read(owner.workspace_id) as session:
        try:
            conversation = await find_conversation(session, owner, wanted)
            return Talk(conversation.scope, conversation.id)
        except NotFound:
            as_id = uuid_or_none(wanted)
            talk = await turns.find_logged(session, as_id) if as_id else None
            if talk is None or talk.turn_id is not None or not _is_owned(talk, owner):
                raise
            return talk


async def delete(talk: Talk, res: Resources, call: Call, *, with_facts: bool) -> DeletedTalkResponse:
    """Deletes it, once. Raises PreconditionFailed."""
    async with write_transaction(talk.scope, res, call) as write:
        session = write.session
        exists = await _lock(write, talk)
        ids = await _turn_ids(session, talk) if exists else []
        gone = await turns.records(session, ids)
        if with_facts:
            gone = sorted({*gone, *await turns.resting_on(session, ids)})
        for part in in_batches(gone):
            await deletion.delete_memories(session, part, generation=res.generation)
        if exists:
            await turns.delete(session, ids, conversation_id=talk.conversation_id, whole=talk.turn_id is None)
            await _audit(write, talk, gone)
        deleted = DeletedTalkResponse(
            id=talk.id, deleted=True, already_deleted=not exists, turns=len(ids), memories=len(gone)
        )
        return await write.answer(deleted)


async def purge_talk(talk: Talk, res: Resources, call: Call) -> PurgeReceiptResponse:
    """Erases it with the memories that come from it alone, existing or deleted."""
    workspace_id = talk.scope.workspace_id
    async with write_transaction(talk.scope, res, call) as write:
        session = write.session
        await session.execute(purge.LONG_TIMEOUT)
        await _lock(write, talk)
        ids = await _turn_ids(session, talk, ever=True)
        gone = {
            *await turns.records(session, ids),
            *await turns.resting_on(session, ids),
            *await turns.list_rested_on(session, ids),
        }
        whole = talk.turn_id is None
        # answers stored for an Idempotency-Key name the conversation by its id
        named = [*ids, talk.conversation_id] if whole else ids
        if whole:  # before the conversation is deleted, because the notes are found by its name
            await working.erase_of_conversation(session, talk.conversation_id)
        counts = await purge.purge_memories(session, sorted(gone), turns=named)
        await turns.delete(session, ids, conversation_id=talk.conversation_id, whole=whole)
        if not whole:
            await contexts.enqueue_conversations(session, [talk.conversation_id])
        subject = ("turn" if talk.turn_id else "conversation", str(talk.id))
        receipt = await write.answer(await receipt_of(write, subject, counts))
    res.embedder.forget(workspace_id)
    return receipt


async def _lock(write: Write, talk: Talk) -> bool:
    """Locks the conversation; returns whether the talk still exists."""
    conversation = await conversations.get(write.session, talk.conversation_id, lock=True)
    if conversation is None:
        return False
    write.check_version(conversation.version, "conversation")
    if talk.turn_id is None:
        return True
    return bool(await get_many(write.session, [talk.turn_id]))


async def _turn_ids(session: Session, talk: Talk, *, ever: bool = False) -> list[UUID]:
    if talk.turn_id is not None:
        return [talk.turn_id]
    return await turns.of_conversation(session, talk.conversation_id, ever=ever)


async def _audit(write: Write, talk: Talk, gone: Sequence[UUID]) -> None:
    conversation = talk.conversation_id
    await write.audit("delete", talk.scope, [talk.id], subject="episodic", conversation_id=conversation)
    if gone:
        await write.audit("delete", talk.scope, gone, conversation_id=conversation)


def _is_owned(talk: Talk, owner: Scope) -> bool:
    return talk.scope.has_ids(user_id=owner.user_id, agent_id=owner.agent_id, run_id=owner.run_id)
