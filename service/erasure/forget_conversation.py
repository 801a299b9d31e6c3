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
from service.erasure.values import DeletedTurnsResponse, PurgeReceiptResponse, Target
from service.memories.lifecycle import in_batches
from service.memories.statements import deletion
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.transactions import Write, write_transaction
from service.working.statements import working


async def find_turn(owner: Scope, wanted: UUID, res: Resources) -> Target:
    """The turn with this id, existing or deleted, of the user, agent and run of `owner` (None: any)."""
    async with res.db.read(owner.workspace_id) as session:
        turn = (await get_many(session, [wanted])).get(wanted)
        target = Target(turn.scope, turn.conversation_id, wanted) if turn else await turns.find_logged(session, wanted)
    if target is None or target.turn_id is None or not _is_owned(target, owner):
        raise NotFound.of("turn")
    return target


async def find_present_or_logged(owner: Scope, wanted: str, res: Resources, *, by_name: bool) -> Target:
    """The conversation, existing or deleted; a deleted one is found by its id, or also `by_name`. Raises NotFound."""
    async with res.db.read(owner.workspace_id) as session:
        try:
            conversation = await find_conversation(session, owner, wanted)
            return Target(conversation.scope, conversation.id)
        except NotFound:
            as_id = uuid_or_none(wanted)
            target = await turns.find_logged(session, as_id) if as_id else None
            if target is None and by_name:
                target = await turns.find_named_in_log(session, owner, wanted)
            if target is None or target.turn_id is not None or not _is_owned(target, owner):
                raise
            return target


async def delete(target: Target, res: Resources, call: Call, *, with_facts: bool) -> DeletedTurnsResponse:
    """Deletes it, once. Raises PreconditionFailed."""
    async with write_transaction(target.scope, res, call) as write:
        session = write.session
        exists = await _lock(write, target)
        turn_ids = await _turn_ids(session, target) if exists else []
        memory_ids = await turns.list_verbatim(session, turn_ids)
        if with_facts:
            memory_ids = sorted({*memory_ids, *await turns.list_extracted_from(session, turn_ids)})
        for part in in_batches(memory_ids):
            await deletion.delete_memories(session, part, generation=res.generation)
        if exists:
            await turns.delete(session, turn_ids, target)
            await _audit(write, target, memory_ids)
        deleted = DeletedTurnsResponse(
            id=target.id, deleted=True, already_deleted=not exists, turns=len(turn_ids), memories=len(memory_ids)
        )
        return await write.answer(deleted)


async def erase(target: Target, res: Resources, call: Call) -> PurgeReceiptResponse:
    """Erases it with the memories that come from it alone, existing or deleted."""
    async with write_transaction(target.scope, res, call) as write:
        session = write.session
        await session.execute(purge.LONG_TIMEOUT)
        await _lock(write, target)
        turn_ids = await _turn_ids(session, target, ever=True)
        memory_ids = {
            *await turns.list_verbatim(session, turn_ids),
            *await turns.list_extracted_from(session, turn_ids),
            *await turns.list_deleted_extracted_from(session, turn_ids),
        }
        is_conversation = target.turn_id is None
        # answers stored for an Idempotency-Key name the conversation by its id
        named = [*turn_ids, target.conversation_id] if is_conversation else turn_ids
        if is_conversation:  # before the conversation is deleted, because the notes are found by its name
            await working.erase_of_conversation(session, target.conversation_id)
        counts = await purge.purge_memories(session, sorted(memory_ids), turns=named)
        await turns.delete(session, turn_ids, target)
        if not is_conversation:
            await contexts.enqueue_conversations(session, [target.conversation_id])
        subject = ("turn" if target.turn_id else "conversation", str(target.id))
        receipt = await write.answer(await receipt_of(write, subject, counts))
    res.embedder.forget(target.scope.workspace_id)
    return receipt


async def _lock(write: Write, target: Target) -> bool:
    """Locks the conversation; returns whether the target still exists."""
    conversation = await conversations.get(write.session, target.conversation_id, lock=True)
    if conversation is None:
        return False
    write.check_version(conversation.version, "conversation")
    if target.turn_id is None:
        return True
    return bool(await get_many(write.session, [target.turn_id]))


async def _turn_ids(session: Session, target: Target, *, ever: bool = False) -> list[UUID]:
    if target.turn_id is not None:
        return [target.turn_id]
    return await turns.of_conversation(session, target.conversation_id, ever=ever)


async def _audit(write: Write, target: Target, memory_ids: Sequence[UUID]) -> None:
    conversation = target.conversation_id
    await write.audit("delete", target.scope, [target.id], subject="episodic", conversation_id=conversation)
    if memory_ids:
        await write.audit("delete", target.scope, memory_ids, conversation_id=conversation)


def _is_owned(target: Target, owner: Scope) -> bool:
    return target.scope.has_ids(user_id=owner.user_id, agent_id=owner.agent_id, run_id=owner.run_id)
