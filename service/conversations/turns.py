"""Storing the turns of a conversation.

Redaction and embedding happen before the transaction, which then writes the turn with its vector, the conversation log,
the audit entry and the copy in working memory. A turn is identified by its index: the same text at the same index is
the same turn, another text there is a conflict. Without an index, a turn equal to the last one counts as its
repetition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.conversations.models import StoreTurnRequest
from service.conversations.statements import conversations, turns
from service.conversations.statements.turns import NewTurn, StoredTurn
from service.domain.conversation import Conversation, Turn
from service.domain.errors import Conflict, NotFound
from service.domain.request import Call
from service.domain.text import CleanText, RedactionCount, sha256
from service.http.schemas import embedding_vector
from service.language import lexemes
from service.language.prompt_text import estimate_tokens
from service.postgres.engine import Session
from service.providers.protocols import Vector, unit
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import Write, write_transaction
from service.working.statements import working

VECTOR_LATER = "embedding_unavailable: stored without a vector, which will be added later."


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The stored turn, whether it is new, what was redacted, and warnings about work that was put off."""

    turn: Turn
    is_new: bool
    redactions: tuple[RedactionCount, ...] = ()
    warnings: tuple[str, ...] = ()


async def store(conversation: Conversation, body: StoreTurnRequest, res: Resources, call: Call) -> TurnOutcome:
    """Stores one turn. Raises PiiRejected, NotFound if the conversation has been deleted, or Conflict."""
    text, in_text = await pii.clean(body.content, "content", res)
    metadata, in_metadata = await pii.clean_object(body.metadata, "metadata", res)
    redactions = pii.add_up((*in_text, *in_metadata))
    vector = await _vector(conversation, text, body, res)
    weights = await res.rules.run_if_long(len(text), lexemes.weights, text)
    new = NewTurn(
        body.role,
        body.name,
        text,
        body.timestamp or res.clock(),
        vector,
        estimate_tokens(text) if body.token_count is None else body.token_count,
        body.model,
        metadata,
        weights,
    )
    async with write_transaction(conversation.scope, res, call) as write:
        locked = await conversations.get(write.session, conversation.id, lock=True)
        if locked is None:
            raise NotFound.of("conversation")
        repeated = await _find_repeated(write.session, locked, new, body)
        turn = repeated or await _insert(write, locked, new, body.turn_index)
        warnings = (VECTOR_LATER,) if vector is None and repeated is None else ()
        return await write.answer(TurnOutcome(turn, repeated is None, redactions, warnings))


async def _insert(write: Write, conversation: Conversation, new: NewTurn, index: int | None) -> Turn:
    session, scope = write.session, conversation.scope
    place = conversation.next_index if index is None else index
    stored = await conversations.insert_turn(session, conversation, new, place, generation=write.res.generation)
    await write.audit("store_turn", scope, [stored.id], subject="episodic", conversation_id=conversation.id)
    await _copy_to_working_memory(write, conversation, new, stored)
    return (await turns.get_many(session, [stored.id]))[stored.id]


async def _copy_to_working_memory(write: Write, conversation: Conversation, new: NewTurn, stored: StoredTurn) -> None:
    """Copies the turn into working memory, whose lock is the last one that the transaction takes."""
    scope = replace(conversation.scope, run_id=str(conversation.id))
    values = new.role, new.text, new.speaker, new.timestamp
    now, ttl_s = write.res.clock(), write.res.settings.memories.working_ttl_s
    await working.put_turn(write.session, scope, *values, copied=(stored.id, stored.index), now=now, ttl_s=ttl_s)


async def _find_repeated(
    session: Session, conversation: Conversation, new: NewTurn, body: StoreTurnRequest
) -> Turn | None:
    """The stored turn that this one repeats; raises Conflict if another turn has its index."""
    index = body.turn_index
    if index is not None:
        following = await turns.page(session, conversation.id, after=index - 1, limit=1)
        turn = next((turn for turn in following if turn.index == index), None)
        if turn is not None and not _is_equal(turn, new):
            raise Conflict("turn_index: the conversation already has a turn at this index.", field="turn_index")
        return turn
    last = await turns.latest(session, conversation.id, limit=1)
    repeated = last and _is_equal(last[0], new) and body.timestamp in (None, last[0].timestamp)
    return last[0] if repeated else None


def _is_equal(stored: Turn, new: NewTurn) -> bool:
    return (stored.role, stored.speaker, stored.hash) == (new.role, new.speaker, sha256(new.text))


async def _vector(conversation: Conversation, text: CleanText, body: StoreTurnRequest, res: Resources) -> Vector | None:
    if body.embedding is not None:
        return unit(embedding_vector(body.embedding, res.embedder.dimension))
    return await res.embed_now(conversation.scope.workspace_id, text)
