"""Stores what requests send: a text, the facts of a conversation, its messages word for word, or several of these.

The short texts of a batch that belong to one scope share look-up, transaction and commit. Everything else is a write of
its own, and each item has its own answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from uuid_utils.compat import uuid7

from service.conversations.statements import conversations, turns
from service.conversations.statements.turns import NewTurn, StoredTurn
from service.domain.decision import Action
from service.domain.draft import DedupAction, DedupOutcome, Draft, EmbeddingStatus, NewMemory, TurnContext
from service.domain.errors import EmbeddingError, OutcomeUnknown, ServiceError, StoreUnavailable
from service.domain.memory import Outcome, StoreResult
from service.domain.request import Call, Replay, StoredAnswer
from service.domain.scope import Scope
from service.intake.conversation import ConversationDraft, new_turn
from service.intake.curate import curate
from service.language.context import PRECEDING, ContextTurn, embedded_text, lexical_text
from service.language.forgetting import forget_requests
from service.memories import writing
from service.memories.pipeline import UNCOMPARED, UNDECIDED, run, run_all
from service.memories.statements import near_memories, sources
from service.memories.statements.sources import SourceLink
from service.memories.store import (
    NewText,
    can_decide_under_lock,
    store_draft,
    store_text,
    store_under_lock,
    until_it_holds,
)
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.runtime.resources import Resources
from service.runtime.transactions import DecisionOutdated, refuse_repeated, write_transaction

TEXTS_PER_TRANSACTION = 50
"""Texts in one transaction, which holds the scope's lock for a tenth of a second or two: the next ones are embedded
in that time."""

CONCURRENCY = 4
"""Items of a batch that wait for models or the database by themselves."""

Answer = StoredAnswer | ServiceError


async def store(draft: Draft | ConversationDraft, res: Resources, call: Call) -> StoreResult:
    """Stores a text, the facts of a conversation, or its messages as they are."""
    if isinstance(draft, Draft):
        return StoreResult((await store_text(draft, res, call),))
    return await (curate if draft.infer else _store_verbatim)(draft, res, call)


async def _store_verbatim(conversation: ConversationDraft, res: Resources, call: Call) -> StoreResult:
    """Stores messages word for word and returns one outcome for each, in order.

    Every message becomes a turn and a memory. A text that the scope already has, or that came earlier in the same
    request, is not stored as a second memory: its turn is linked to the existing one.
    """
    res = res.with_deferred_caches()
    drafts = await run_all(UNCOMPARED, conversation.drafts, res)

    async def attempt(*, last: bool) -> StoreResult:
        if last:  # other requests keep adding to this conversation: better stored without context than not at all
            return await _write(conversation, drafts, None, res, call)
        count, before = await _before(conversation, res)
        return await _write(conversation, await _add_contexts(drafts, before, res), count, res, call)

    return await until_it_holds(attempt)


async def _before(conversation: ConversationDraft, res: Resources) -> tuple[int, list[ContextTurn]]:
    """The index of the first new turn, and the turns right before it."""
    scope = conversation.scope
    if conversation.external_id is None:
        return 0, []
    async with res.db.read(scope.workspace_id) as session:
        stored = await conversations.of_scope(session, scope.named(conversation.external_id))
        if stored is None:
            return 0, []
        latest = await turns.latest_before(session, stored.id, stored.next_index, limit=PRECEDING)
    return stored.next_index, [ContextTurn(turn.text, turn.speaker or turn.role) for turn in latest]


async def _add_contexts(drafts: Sequence[Draft], before: Sequence[ContextTurn], res: Resources) -> list[Draft]:
    """The drafts, each with the turns before it. When the provider is down, they have words but no vector."""
    turns = [*before, *map(_context_turn, drafts)]
    indexes = range(len(before), len(turns))
    texts = [embedded_text(turns[index], turns[:index]) for index in indexes]
    vectors: Sequence[Vector | None]
    try:
        vectors = await res.embedder.embed(drafts[0].scope.workspace_id, texts)
    except EmbeddingError:
        vectors = [None] * len(texts)
    return [
        replace(draft, context=TurnContext(lexical_text(turns[index], turns[:index]), vector))
        for draft, index, vector in zip(drafts, indexes, vectors, strict=True)
    ]


def _context_turn(draft: Draft) -> ContextTurn:
    assert draft.speech is not None, "a conversation is made of messages"
    return ContextTurn(draft.clean, draft.speech.speaker or draft.speech.role)


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
        await sources.link(session, links)
        return await write.answer(StoreResult(tuple(outcomes)))


async def _split_known(
    session: Session, scope: Scope, drafts: Sequence[Draft], places: Sequence[StoredTurn]
) -> tuple[list[Outcome], list[NewMemory]]:
    """The outcome of each message, and the memories to add. Under the scope lock what is read does not change."""
    hashes = {draft.hash for draft in drafts if draft.options.dedup}
    equal = await near_memories.with_hashes(session, scope, hashes, now=drafts[0].received_at) if hashes else {}
    known = {digest: (memory.id, memory.text) for digest, memory in equal.items()}
    outcomes, new_memories = [], []
    for draft, place in zip(drafts, places, strict=True):
        turn = place.conversation_id, place.index
        stored = known.get(draft.hash) if draft.options.dedup else None
        if stored is None:
            new = draft.finish(uuid7(), *turn)
            new_memories.append(new)
            stored = known[draft.hash] = (new.id, new.text)
            event, dedup = Action.ADD, DedupOutcome(DedupAction.STORED_NEW)
        else:
            event, dedup = Action.NONE, DedupOutcome(DedupAction.DUPLICATE_EXACT, stored[0], 1.0)
        outcomes.append(Outcome(draft, event, dedup, *stored, None, *turn))
    return outcomes, new_memories


def _with_own_vector(draft: Draft) -> NewTurn:
    """The turn of a message that is stored as a memory: one vector serves both."""
    return new_turn(draft, draft.vector if draft.embedding_status is EmbeddingStatus.STORED else None)


@dataclass(frozen=True, slots=True)
class BatchItem:
    """A text or a conversation of a batch, and its own request with its serializer."""

    draft: Draft | ConversationDraft
    call: Call


async def store_batch(items: Sequence[BatchItem | ServiceError], res: Resources, ends: float | None) -> list[Answer]:
    """The answer to each item, in order, or the error that it would have raised alone; an item that is already an error
    stays one. `ends`: the moment (kit/deadline.py) by which each is done."""
    batch = _BatchRun(items, res, ends)
    await batch.run()
    return [batch.answers[number] for number in range(len(items))]


class _BatchRun:
    def __init__(self, items: Sequence[BatchItem | ServiceError], res: Resources, ends: float | None) -> None:
        self._items = {number: each for number, each in enumerate(items) if isinstance(each, BatchItem)}
        self.answers: dict[int, Answer] = {
            number: item for number, item in enumerate(items) if isinstance(item, ServiceError)
        }
        self._res, self._ends = res, ends
        self._shared = res.with_deferred_caches()  # the results of the stages are written with the texts
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def run(self) -> None:
        """Stores all items; one that may ask to forget finds what is stored by those before it alone."""
        waiting: list[int] = []
        for number, item in self._items.items():
            if isinstance(item.draft, ConversationDraft) and await self._may_ask_to_forget(item.draft):
                await self._run_together(waiting)
                await self._store_one(number)
                waiting = []
            else:
                waiting.append(number)
        await self._run_together(waiting)

    async def _may_ask_to_forget(self, conversation: ConversationDraft) -> bool:
        for text in [draft.raw for draft in conversation.drafts] if conversation.infer else []:
            if await self._res.rules.run_if_long(len(text), forget_requests.find_possible, text):
                return True
        return False

    async def _run_together(self, items: Sequence[int]) -> None:
        """Stores the texts of a scope in order, TEXTS_PER_TRANSACTION together, so that each part sees the memories of
        those before it; later parts pass the stages of their texts alone while earlier ones are written."""
        scopes: dict[Scope, list[int]] = {}
        for number in items:
            item = self._items[number]
            if isinstance(item.draft, Draft) and self._may_share(item.draft, item.call):
                scopes.setdefault(item.draft.scope, []).append(number)
        shared = {number for numbers in scopes.values() if len(numbers) > 1 for number in numbers}
        alone = [number for number in items if number not in shared]
        parts = [self._store_in_parts(numbers) for numbers in scopes.values() if len(numbers) > 1]
        await asyncio.gather(*parts, *map(self._store_one, alone))

    def _may_share(self, draft: Draft, call: Call) -> bool:
        """Whether the text can be stored with others: it is short, no model is asked, and it names no memory."""
        alone = call.dry_run or draft.options.embed_later or draft.given.id
        return not alone and can_decide_under_lock(draft, self._res)

    async def _store_in_parts(self, numbers: Sequence[int]) -> None:
        until = None if self._ends is None else (asyncio.get_running_loop().time() + self._ends) / 2
        async with asyncio.TaskGroup() as group:
            reads = {number: group.create_task(self._run_early_stages(number, until)) for number in numbers}
            for start in range(0, len(numbers), TEXTS_PER_TRANSACTION):
                part = numbers[start : start + TEXTS_PER_TRANSACTION]
                drafts = {number: draft for number in part if (draft := await reads[number])}
                await self._store_part(part, drafts)

    async def _store_part(self, numbers: Sequence[int], drafts: Mapping[int, Draft]) -> None:
        if len(drafts) > 1 and all(draft.embedding_status is EmbeddingStatus.STORED for draft in drafts.values()):
            texts = [NewText(draft, self._items[number].call) for number, draft in drafts.items()]
            try:
                async with self._shared.until(self._ends) as res:
                    stored = await store_under_lock(texts, res)
                for number, outcome in zip(drafts, stored, strict=True):
                    if outcome is not None:
                        self.answers[number] = self._answer(number, StoreResult((outcome,)))
            except (StoreUnavailable, OutcomeUnknown) as exc:
                self.answers |= dict.fromkeys(drafts, exc)
            except (DecisionOutdated, Replay, ServiceError):
                pass  # another request was faster, or one text cannot be stored: each is stored by itself
        rest = [number for number in numbers if number not in self.answers]
        await asyncio.gather(*(self._store_one(number, drafts.get(number)) for number in rest))

    async def _run_early_stages(self, number: int, until: float | None) -> Draft | None:
        """The draft after the stages that look at its text alone; None if it was answered before, or if they failed or
        took too long: then it does not delay the others and has the rest of the time for itself."""
        item = self._items[number]
        assert isinstance(item.draft, Draft), "texts go together"
        try:
            async with self._slots, asyncio.timeout_at(until):
                await refuse_repeated(item.call, item.draft.scope.workspace_id, self._res)
                return await run(UNDECIDED, item.draft, self._shared)
        except TimeoutError:
            return None
        except (ServiceError, Replay) as exc:
            self.answers[number] = exc.answer if isinstance(exc, Replay) else exc
            return None

    async def _store_one(self, number: int, draft: Draft | None = None) -> None:
        """Stores a text by itself. `draft`: the draft after the stages it passed with the others, if any."""
        item = self._items[number]
        try:
            async with self._slots, (self._shared if draft else self._res).until(self._ends) as res:
                if draft is not None:
                    stored = StoreResult((await store_draft(draft, res, item.call),))
                else:
                    await refuse_repeated(item.call, item.draft.scope.workspace_id, res)
                    stored = await store(item.draft, res, item.call)
            self.answers[number] = self._answer(number, stored)
        except (ServiceError, Replay) as exc:
            self.answers[number] = exc.answer if isinstance(exc, Replay) else exc

    def _answer(self, number: int, stored: StoreResult) -> StoredAnswer:
        serialize = self._items[number].call.serialize
        assert serialize is not None, "each item has its serializer"
        return serialize(stored)
