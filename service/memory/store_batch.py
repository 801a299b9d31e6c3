"""Storing many texts at once: those of one scope share look-ups, a transaction and its commit.

Only what is simply new is written together. A text that repeats, changes or outdates something, in the scope or among
the others, is stored by itself afterwards, and so is every text of a transaction that did not go through: the way of a
single text is the one that handles everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from uuid_utils.compat import uuid7

from service import deadline
from service.db import idempotency
from service.db.direct import InsertBatch
from service.db.engine import Session
from service.db.idempotency import Replay
from service.db.writes import PlacedMemory
from service.domain.decision import Neighbour
from service.domain.draft import Draft, EmbeddingStatus
from service.domain.memory import Outcome, StoreResult
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.errors import OutcomeUnknown, ServiceError, StoreUnavailable
from service.memory import write
from service.memory.store import is_simply_new, outcome_of, settle, still_holds, store
from service.memory.transactions import Stale, store_answer, write_transaction
from service.pipeline import dedup
from service.pipeline.stages import ANNOTATED, DECIDED_AGAIN, UNDECIDED, run, run_all
from service.resources import Resources

TOGETHER = 100
"""Texts of one transaction: it holds the scope's lock for some tenths of a second."""

ALONE_AT_ONCE = 4
JUDGED_AT_ONCE = 25
"""Texts that one call of a rule process decides about."""


Result = Outcome | ServiceError | Replay


@dataclass(frozen=True, slots=True)
class BatchItem:
    """A text of a batch, and the request that it is on its own."""

    draft: Draft
    request: WriteContext


@dataclass(frozen=True, slots=True)
class NewText:
    """A text that is to be one of several new memories. `near`: what it saw in the database; `draft.seen` also holds
    earlier texts of the batch."""

    number: int
    id: UUID
    draft: Draft
    near: tuple[Neighbour, ...] = ()


async def store_batch(items: Sequence[BatchItem], res: Resources, ends: float | None = None) -> list[Result]:
    """What became of each item, in their order: its outcome, or the error that it alone would have raised. `ends`: the
    moment (deadline.after) by which each is done."""
    batch = _BatchRun(items, res, ends)
    scopes: dict[Scope, list[int]] = {}
    for number, item in enumerate(items):
        if batch.may_share(item.draft):
            scopes.setdefault(item.draft.scope, []).append(number)
    shared = [numbers for numbers in scopes.values() if len(numbers) > 1]
    alone = set(range(len(items))) - {number for numbers in shared for number in numbers}
    await asyncio.gather(batch.each_alone(alone), *(batch.of_scope(numbers) for numbers in shared))
    return [batch.results[number] for number in range(len(items))]


class _BatchRun:
    def __init__(self, items: Sequence[BatchItem], res: Resources, ends: float | None) -> None:
        self._items, self._res, self._ends = items, res, ends
        self._slots = asyncio.Semaphore(ALONE_AT_ONCE)
        self.results: dict[int, Result] = {}

    def may_share(self, draft: Draft) -> bool:
        """Whether it can be one of many: no model is asked about it, and it names no memory."""
        options = draft.options
        asks = self._res.llm is not None and options.use_llm
        return not (asks or options.dry_run or options.embed_later or draft.given.id)

    async def each_alone(self, numbers: Iterable[int]) -> None:
        await asyncio.gather(*(self._alone(number) for number in sorted(numbers)))

    async def of_scope(self, numbers: Sequence[int]) -> None:
        """The items of one scope, some at a time in their order: the next ones see what the ones before wrote."""
        for start in range(0, len(numbers), TOGETHER):
            await self._together(numbers[start : start + TOGETHER])

    async def _together(self, numbers: Sequence[int]) -> None:
        until = None if self._ends is None else (asyncio.get_running_loop().time() + self._ends) / 2
        read = await asyncio.gather(*(self._read(number, until) for number in numbers))
        drafts = {number: draft for number, draft in zip(numbers, read, strict=True) if draft is not None}
        try:
            async with deadline.answered_by(self._ends):
                new = await _decided(drafts, self._res)
                self.results |= {each.number: outcome for each, outcome in await self._write(new)}
        except (StoreUnavailable, OutcomeUnknown) as exc:
            self.results |= dict.fromkeys(drafts, exc)
        except (Stale, Replay, ServiceError):
            pass  # another request was faster, or one text cannot be stored: each finds out for itself
        rest = [number for number in numbers if number not in self.results]
        await asyncio.gather(*(self._alone(number, drafts.get(number)) for number in rest))

    async def _read(self, number: int, until: float | None) -> Draft | None:
        """The draft with all that is found out about its text alone; None when that failed, or took too long: then it
        does not hold up the others, and has the rest of the time for itself."""
        try:
            async with self._slots, asyncio.timeout_at(until):
                return await run(UNDECIDED, self._items[number].draft, self._res)
        except TimeoutError:
            return None
        except ServiceError as exc:
            self.results[number] = exc
            return None

    async def _alone(self, number: int, draft: Draft | None = None) -> None:
        """`draft`: as far as it got with the others, where it did."""
        item = self._items[number]
        try:
            async with self._slots, deadline.answered_by(self._ends):
                if draft is None:
                    self.results[number] = await store(item.draft, self._res, item.request)
                else:
                    again = await run(DECIDED_AGAIN, draft, self._res)
                    self.results[number] = await settle(again, self._res, item.request)
        except (ServiceError, Replay) as exc:
            self.results[number] = exc

    async def _write(self, new: Sequence[NewText]) -> list[tuple[NewText, Outcome]]:
        """One transaction for all, which an answer to each key is part of. Raises what a single write does."""
        if not new:
            return []
        scope, requests = new[0].draft.scope, [self._items[each.number].request for each in new]
        audited = replace(requests[0], idempotency=None)
        async with write_transaction(scope, self._res, audited) as session:
            for request in requests:
                if request.idempotency:
                    await idempotency.claim(session, scope.workspace_id, request.idempotency, scope)
            drafts = await _confirmed(session, new, self._res)
            placed = [PlacedMemory(draft.finish(each.id)) for each, draft in zip(new, drafts, strict=True)]
            outcomes = [
                outcome_of(draft, one.memory.id, one.memory.text) for draft, one in zip(drafts, placed, strict=True)
            ]
            rows = InsertBatch(session)
            await write.add(session, placed, self._res, batch=rows)
            rows.add(write.audit_rows(scope, outcomes, audited, self._res))
            await rows.flush()
            for outcome, request in zip(outcomes, requests, strict=True):
                await store_answer(session, scope.workspace_id, StoreResult((outcome,)), request)
        return list(zip(new, outcomes, strict=True))


async def _decided(drafts: dict[int, Draft], res: Resources) -> list[NewText]:
    """Those of the texts that are simply new, with everything that their rows need."""
    if not drafts:
        return []
    compared = {number: draft for number, draft in drafts.items() if draft.options.dedup}
    embedded = all(each.embedding_status is EmbeddingStatus.STORED for each in drafts.values())
    near: dict[int, tuple[Neighbour, ...]] = {}
    if compared and embedded:
        async with res.db.read(next(iter(compared.values())).scope.workspace_id, generic_plans=True) as session:
            found = await dedup.find_neighbours_of_many(session, list(compared.values()), res)
        near = {number: each.neighbours for number, each in zip(compared, found or (), strict=bool(found))}
    if not embedded or (compared and not near):
        return []  # the embedder is down, or the scope is too large
    new = [NewText(number, uuid7(), draft, near.get(number, ())) for number, draft in drafts.items()]
    new = await _judged(_beside_each_other(new, res), res)
    annotated = await run_all(ANNOTATED, [each.draft for each in new], res)
    return [replace(each, draft=draft) for each, draft in zip(new, annotated, strict=True)]


def _beside_each_other(new: Sequence[NewText], res: Resources) -> list[NewText]:
    """Each text with the nearest of the database and of the texts before it, which count as if they were stored."""
    vectors = np.stack([each.draft.vector for each in new if each.draft.vector is not None])
    cosines, limit = vectors @ vectors.T, res.settings.dedup_candidates
    found = []
    for place, each in enumerate(new):
        nearest = np.argsort(-cosines[place, :place], kind="stable")[:limit]
        mates = [_as_neighbour(new[at], res.embedder.similarity(float(cosines[place, at]))) for at in nearest]
        seen = sorted((*each.near, *mates), key=lambda one: -one.similarity)
        found.append(replace(each, draft=replace(each.draft, seen=tuple(seen[:limit]))))
    return found


def _as_neighbour(each: NewText, similarity: float) -> Neighbour:
    draft = each.draft
    times = (draft.timestamp, draft.given.t_valid, draft.given.t_invalid)
    return Neighbour(each.id, draft.clean, draft.hash, 1, similarity, *times)


async def _judged(new: Sequence[NewText], res: Resources) -> list[NewText]:
    """Those that the rules would simply add. The decision of each stands on what comes to be stored alone."""
    parts = [new[at : at + JUDGED_AT_ONCE] for at in range(0, len(new), JUDGED_AT_ONCE)]
    decided = await asyncio.gather(
        *(res.rules.run(dedup.decide_each_by_rules, [each.draft for each in part], res.settings) for part in parts)
    )
    hashes, dropped, kept = set[str](), set[UUID](), []
    for each, draft in zip(new, (draft for part in decided for draft in part), strict=True):
        if draft.options.dedup and (draft.hash in hashes or not is_simply_new(draft)):
            dropped.add(each.id)
            continue
        hashes.add(draft.hash)
        kept.append(replace(each, draft=_without(draft, dropped)))
    return kept


def _without(draft: Draft, dropped: set[UUID]) -> Draft:
    """The draft without texts of the batch that are not stored as new memories."""
    seen = tuple(each for each in draft.seen if each.id not in dropped)
    if len(seen) == len(draft.seen) or draft.evidence is None:
        return replace(draft, seen=seen)
    return replace(draft, seen=seen, evidence=replace(draft.evidence, shown=tuple(each.id for each in seen)))


async def _confirmed(session: Session, new: Sequence[NewText], res: Resources) -> list[Draft]:
    """The drafts, if the decision of each still holds under the scope lock; raises Stale otherwise."""
    compared = [each for each in new if each.draft.options.dedup]
    if not compared:
        return [each.draft for each in new]
    found = await dedup.find_neighbours_of_many(session, [each.draft for each in compared], res)
    if found is None:
        raise Stale
    expired_possible: dict[UUID, bool] = {}
    for each, there in zip(compared, found, strict=True):
        checked = still_holds(replace(each.draft, seen=each.near), there, res)
        if checked.is_duplicate:
            raise Stale
        expired_possible[each.id] = checked.expired_duplicate_possible
    return [replace(each.draft, expired_duplicate_possible=expired_possible.get(each.id, True)) for each in new]
