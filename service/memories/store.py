"""Storing texts as memories: one, or several of one scope in one transaction.

Everything that waits for a network or needs much CPU happens first, with no lock and no connection held. Where the
rules alone decide about short texts they do so under the scope lock, next to neighbours that are looked up once.
Otherwise the decision comes before the transaction, which checks the neighbours again; when they have changed, the
decision is made again, and the fourth time the rules decide inside the lock, so no writer retries for ever.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

import numpy as np
from uuid_utils.compat import uuid7

from service.domain.decision import Action, Edit, Neighbour
from service.domain.draft import DedupAction, DedupOutcome, Draft
from service.domain.errors import Conflict
from service.domain.memory import Outcome, StoreResult
from service.domain.request import Call
from service.kit.fair_gate import LONG_CHARS
from service.memories import decide, edits, writing
from service.memories.pipeline import ANNOTATED, DECIDED_AGAIN, UNDECIDED, add_time, run, run_all
from service.memories.statements import history, memories, near_memories
from service.memories.statements.near_memories import Neighbours
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.statements import idempotency
from service.runtime.transactions import DecisionOutdated, write_transaction

R = TypeVar("R")

ATTEMPTS = 3
"""Decisions that are made outside the scope lock; after these the rules decide inside it."""


@dataclass(frozen=True, slots=True)
class NewText:
    """A draft that has passed the stages UNDECIDED, its request, and its id if it becomes a memory."""

    draft: Draft
    call: Call
    id: UUID = field(default_factory=uuid7)


async def store_text(draft: Draft, res: Resources, call: Call) -> Outcome:
    """Runs one text through the stages and stores it; returns its outcome. Raises Replay or Conflict."""
    res = res.with_deferred_caches()
    return await store_draft(await run(UNDECIDED, draft, res), res, call)


async def store_draft(draft: Draft, res: Resources, call: Call) -> Outcome:
    """Stores a draft that has passed the stages UNDECIDED."""
    if can_decide_under_lock(draft, res):
        try:
            [outcome] = await store_under_lock([NewText(draft, call)], res)
        except (DecisionOutdated, writing.Gone):
            outcome = None
        if outcome is not None:
            return outcome
    return await _store_with_decision(draft, res, call)


def can_decide_under_lock(draft: Draft, res: Resources) -> bool:
    """Whether no model is asked about the draft, and the rules are fast enough to decide inside the scope lock."""
    asks = res.llm is not None and draft.options.use_llm
    return not asks and len(draft.raw) <= LONG_CHARS


async def store_under_lock(texts: Sequence[NewText], res: Resources) -> list[Outcome | None]:
    """Stores texts of one scope in one transaction and returns their outcomes in order; None for one that is too long
    to be decided under the lock. Raises DecisionOutdated where several texts cannot be compared in one statement."""
    annotated = await run_all(ANNOTATED, [text.draft for text in texts], res)
    texts = [replace(text, draft=draft) for text, draft in zip(texts, annotated, strict=True)]
    scope, outcomes = texts[0].draft.scope, dict[UUID, Outcome]()
    async with write_transaction(scope, res, replace(texts[0].call, idempotency=None)) as write:
        batch = writing.MemoryBatch(write)
        if len(texts) > 1:
            texts = await _decide_together(write.session, texts, res)
            await _lock_touched(write.session, texts)
        for at, text in enumerate(texts):
            draft: Draft | None = text.draft
            if _is_outdated(text.draft, texts[:at], batch.changed):
                await batch.flush()
                draft = await _decide_under_lock(write.session, text.draft, res)
            if draft is not None:
                outcomes[text.id] = await _carry_out(batch, replace(text, draft=draft))
        await _finish(batch, [(text.call, outcomes[text.id]) for text in texts if text.id in outcomes])
    return [outcomes.get(text.id) for text in texts]


def _is_outdated(draft: Draft, earlier: Sequence[NewText], changed: Set[UUID]) -> bool:
    """Whether nothing was decided about the draft yet, or an `earlier` text changed what it was compared with: a memory
    is not as it was, or the text was not added as one."""
    if draft.decision is None or (draft.decision.targets & changed and not draft.decision.only_adds):
        return True
    unsaved = changed ^ {text.id for text in earlier}
    return any(neighbour.id in unsaved for neighbour in draft.seen)


async def _lock_touched(session: Session, texts: Sequence[NewText]) -> None:
    """Locks the memories that the texts may change, unless all are merely added."""
    changing = [text.draft for text in texts if text.draft.decision and not text.draft.decision.only_adds]
    if changing:
        marked = {target for text in texts if text.draft.decision for target in text.draft.decision.targets}
        await history.lock(session, marked | {neighbour.id for draft in changing for neighbour in draft.seen})


async def _finish(batch: writing.MemoryBatch, stored: Sequence[tuple[Call, Outcome]]) -> None:
    """Writes what is left, and the answer to each request under its idempotency key."""
    outcomes = [outcome for _, outcome in stored]
    if outcomes:
        batch.add(writing.audit_rows(batch.write, outcomes[0].draft.scope, outcomes))
    await batch.flush()
    for call, outcome in stored:
        await replace(batch.write, call=call).answer(StoreResult((outcome,)))


async def _decide_together(session: Session, texts: Sequence[NewText], res: Resources) -> list[NewText]:
    """Decides about the texts by the rules, each next to its neighbours among the memories and the texts before it."""
    compared = [text for text in texts if text.draft.options.dedup]
    near: list[Neighbours] | None = []
    if compared:
        near = await near_memories.find_neighbours_of_many(
            session,
            [text.draft for text in compared],
            generation=res.generation,
            similarity=res.embedder.similarity,
            limit=decide.CANDIDATES,
        )
    if near is None:
        raise DecisionOutdated
    drafts = _with_all_neighbours(
        texts, {text.id: neighbours for text, neighbours in zip(compared, near, strict=True)}, res
    )
    decided = await res.rules.run(lambda: [decide.by_rules(draft, draft.seen, res.settings) for draft in drafts])
    return [replace(text, draft=draft) for text, draft in zip(texts, decided, strict=True)]


def _with_all_neighbours(texts: Sequence[NewText], near: Mapping[UUID, Neighbours], res: Resources) -> list[Draft]:
    """Each draft with its nearest neighbours among the stored memories and the texts before it in the request."""
    vectors = np.stack([text.draft.vector for text in texts if text.draft.vector is not None])
    cosines, limit = vectors @ vectors.T, decide.CANDIDATES
    drafts = []
    for index, new_text in enumerate(texts):
        if new_text.id not in near:
            drafts.append(new_text.draft)
            continue
        stored = near[new_text.id]
        nearest = np.argsort(-cosines[index, :index], kind="stable")[:limit]
        earlier_texts = [_as_neighbour(texts[at], res.embedder.similarity(float(cosines[index, at]))) for at in nearest]
        seen = sorted((*stored.neighbours, *earlier_texts), key=lambda one: -one.similarity)[:limit]
        possible = stored.expired_duplicate_possible
        drafts.append(replace(new_text.draft, seen=tuple(seen), expired_duplicate_possible=possible))
    return drafts


def _as_neighbour(text: NewText, similarity: float) -> Neighbour:
    draft = text.draft
    times = (draft.timestamp, draft.given.t_valid, draft.given.t_invalid)
    return Neighbour(text.id, draft.clean, draft.hash, 1, similarity, *times, draft.vector)


async def _decide_under_lock(session: Session, draft: Draft, res: Resources) -> Draft | None:
    """Decides about the draft again, under the lock; None if the rules would take too long."""
    began = time.perf_counter()
    neighbours = await decide.find_neighbours(session, draft, res) if draft.options.dedup else Neighbours(())
    compared = time.perf_counter()
    if len(draft.clean) + sum(len(neighbour.text) for neighbour in neighbours.neighbours) > LONG_CHARS:
        return None
    draft = decide.confirm_against(neighbours, draft, res, last=True)
    return add_time(draft, {"dedup": (compared - began) * 1000, "decide": (time.perf_counter() - compared) * 1000})


async def _carry_out(batch: writing.MemoryBatch, text: NewText) -> Outcome:
    """Writes what was decided about one text, in the caller's transaction. Raises Replay, Conflict or Gone."""
    key, draft = text.call.idempotency, text.draft
    if key:
        await idempotency.claim(batch.session, key, draft.scope)
    if draft.is_duplicate:  # what is not stored has no importance, categories and type
        draft = replace(draft, importance=None, categories=(), kind=None)
    chosen = await _with_chosen_id(batch.session, draft)
    [outcome] = await edits.carry_out(batch, chosen or draft, new_id=text.id)
    if chosen and outcome.event is Action.UPDATE:  # it was not compared with the memory of this id
        outcome = replace(outcome, dedup=DedupOutcome(DedupAction.UPDATED_EXISTING, outcome.memory_id))
    return outcome


async def _with_chosen_id(session: Session, draft: Draft) -> Draft | None:
    """An id that exists already makes the write an update of that memory. An id that another scope has, or had before
    it was deleted, is a Conflict: its history would belong to both. None where the decision stays."""
    chosen, decision = draft.given.id, draft.decision
    if chosen is None or decision is None or draft.is_duplicate:
        return None
    memory = await memories.get(session, chosen)
    elsewhere = memory.scope != draft.scope if memory else await history.was_elsewhere(session, chosen, draft.scope)
    if elsewhere:
        raise Conflict("A memory with this id exists, or existed, in another scope.", field="id")
    if memory is None:
        return None
    target = Neighbour(memory.id, memory.text, memory.hash, memory.version, 0.0)
    return replace(draft, decision=replace(decision, edits=(Edit(Action.UPDATE, target, draft.clean),)))


async def _store_with_decision(draft: Draft, res: Resources, call: Call) -> Outcome:
    """Stores a text that needs a model, or takes the rules long: the decision is made outside the lock."""

    async def attempt(*, last: bool) -> Outcome:
        nonlocal draft
        draft = await run(DECIDED_AGAIN, replace(draft, decision=None), res)
        if last and draft.is_duplicate:  # the memory that it equals may be deleted by then
            draft = replace(await run(ANNOTATED, replace(draft, decision=None), res), decision=draft.decision)
        async with write_transaction(draft.scope, res, replace(call, idempotency=None)) as write:
            batch = writing.MemoryBatch(write)
            text = NewText(await decide.confirm(write.session, draft, res, last=last), call)
            outcome = await _carry_out(batch, text)
            await _finish(batch, [(call, outcome)])
        return outcome

    return await until_it_holds(attempt)


Attempt = Callable[..., Awaitable[R]]


async def until_it_holds(attempt: Attempt[R]) -> R:
    """The result of `attempt`, which makes a new decision each time; with `last` it decides inside the lock."""
    for _ in range(ATTEMPTS):
        try:
            return await attempt(last=False)
        except (DecisionOutdated, writing.Gone):
            continue
    return await attempt(last=True)
