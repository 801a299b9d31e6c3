"""Stores a conversation word for word (infer=false).

Every message becomes a turn and a memory, with one result per message, in order. A text that the scope already has, or
that came earlier in the same request, is not stored as a second memory: its turn is linked to the existing one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from uuid_utils.compat import uuid7

from service.domain.decision import Action
from service.domain.draft import Dedup, DedupAction, Draft, EmbeddingStatus, NewMemory
from service.domain.memory import Outcome, StoreResult
from service.domain.request import Call
from service.domain.scope import Scope
from service.episodes.statements import conversations, last_turns
from service.episodes.statements.turns import NewTurn, StoredTurn
from service.language.context import PRECEDING, ContextTurn
from service.memories import writing
from service.memories.stages.embed import add_turn_contexts
from service.memories.stages.stages import UNCOMPARED, run_all
from service.memories.statements import deduplication, sources
from service.memories.statements.sources import SourceLink
from service.memories.store import until_it_holds
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.runtime.resources import Resources
from service.runtime.transactions import DecisionOutdated, write_transaction


@dataclass(frozen=True, slots=True)
class ConversationDraft:
    """Messages of one scope, in order; `external_id` names the conversation, None makes a new one.

    `infer`: whether facts are extracted, `instruction` replaces the instruction of the extraction. `stored`: its turns,
    if they are already stored and only the facts are missing.
    """

    scope: Scope
    drafts: Sequence[Draft]
    external_id: str | None
    infer: bool = False
    instruction: str | None = None
    stored: Sequence[StoredTurn] | None = None

    def __post_init__(self) -> None:
        self.scope.require_owner()  # a conversation is never shared by the workspace, nor are its facts


async def store_verbatim(conversation: ConversationDraft, res: Resources, call: Call) -> StoreResult:
    """Stores messages as they are and returns one outcome for each, in order."""
    res = res.with_deferred_caches()
    drafts = await run_all(UNCOMPARED, conversation.drafts, res)

    async def attempt(*, last: bool) -> StoreResult:
        if last:  # other requests keep adding to this conversation: better stored without context than not at all
            return await _write(conversation, drafts, None, res, call)
        count, before = await _before(conversation, res)
        return await _write(conversation, await add_turn_contexts(drafts, before, res), count, res, call)

    return await until_it_holds(attempt)


async def _before(conversation: ConversationDraft, res: Resources) -> tuple[int, list[ContextTurn]]:
    """The index of the first new turn, and the turns right before it."""
    scope = conversation.scope
    if conversation.external_id is None:
        return 0, []
    async with res.db.read(scope.workspace_id) as session:
        stored = await conversations.of_scope(session, replace(scope, run_id=conversation.external_id))
        if stored is None:
            return 0, []
        turns = await last_turns.before(session, stored.id, stored.next_index, limit=PRECEDING)
    return stored.next_index, [ContextTurn(turn.text, turn.speaker or turn.role) for turn in turns]


async def _write(
    conversation: ConversationDraft,
    drafts: Sequence[Draft],
    expected: int | None,
    res: Resources,
    call: Call,
) -> StoreResult:
    """Writes turns and memories; raises DecisionOutdated if the first turn would not get the index `expected`."""
    scope = conversation.scope
    async with write_transaction(scope, res, call) as write:
        session = write.session
        batch = writing.MemoryBatch(write)
        places, turn_rows = await conversations.append_turns(
            session, scope, conversation.external_id, list(map(_with_own_vector, drafts)), generation=res.generation
        )
        batch.add(*turn_rows)
        if expected is not None and places[0].index != expected:
            raise DecisionOutdated
        outcomes, new_memories = await _split_known(session, scope, drafts, places)
        await writing.add(batch, new_memories)
        batch.add(writing.audit_rows(write, scope, outcomes))
        await batch.flush()
        for outcome in outcomes:
            if outcome.event is Action.NONE and outcome.memory_id:
                await writing.extend_expiry(write, scope, outcome.memory_id, outcome.draft.given.expires_at)
        links = [
            SourceLink(each.memory_id, place.id, 0, len(each.draft.clean))
            for each, place in zip(outcomes, places, strict=True)
            if each.memory_id
        ]
        await sources.link(session, scope, links)
        return await write.answer(StoreResult(tuple(outcomes)))


async def _split_known(
    session: Session, scope: Scope, drafts: Sequence[Draft], places: Sequence[StoredTurn]
) -> tuple[list[Outcome], list[NewMemory]]:
    """The outcome of each message, and the memories to add. Under the scope lock what is read does not change."""
    hashes = {draft.hash for draft in drafts if draft.options.dedup}
    equal = await deduplication.with_hashes(session, scope, hashes, now=drafts[0].received_at) if hashes else {}
    known = {digest: (memory.id, memory.text) for digest, memory in equal.items()}
    outcomes, new_memories = [], []
    for draft, place in zip(drafts, places, strict=True):
        turn = place.conversation_id, place.index
        stored = known.get(draft.hash) if draft.options.dedup else None
        if stored is None:
            new = draft.finish(uuid7(), *turn)
            new_memories.append(new)
            stored = known[draft.hash] = (new.id, new.text)
            event, dedup = Action.ADD, Dedup(DedupAction.STORED_NEW)
        else:
            event, dedup = Action.NONE, Dedup(DedupAction.DUPLICATE_EXACT, stored[0], 1.0)
        outcomes.append(Outcome(draft, event, dedup, *stored, None, *turn))
    return outcomes, new_memories


def new_turn(draft: Draft, vector: Vector | None, weights: Mapping[int, float] | None = None) -> NewTurn:
    """The message as a turn. `vector` None: a job makes it; `weights`: of BM25, if already known."""
    said = draft.speech
    assert said is not None, "a conversation is made of messages"
    return NewTurn(said.role, said.speaker, draft.clean, draft.timestamp, vector, weights=weights)


def _with_own_vector(draft: Draft) -> NewTurn:
    """The turn of a message that is stored as a memory: one vector serves both."""
    return new_turn(draft, draft.vector if draft.embedding_status is EmbeddingStatus.STORED else None)
