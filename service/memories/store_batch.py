"""Storing many texts at once: those of one scope share look-ups, a transaction and its commit.

What is simply new is written together; then, one after the other, what repeats, changes or outdates something, in the
scope or among the others. A text that cannot be decided about in that transaction is stored by itself afterwards, and
so is every text of a transaction that did not go through: the way of a single text is the one that handles everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from uuid_utils.compat import uuid7

from service.domain.decision import Neighbour
from service.domain.draft import Draft, EmbeddingStatus
from service.domain.errors import OutcomeUnknown, ServiceError, StoreUnavailable
from service.domain.memory import Outcome, StoreResult
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.kit import deadline
from service.memories import write
from service.memories.stages import dedup
from service.memories.stages.stages import ANNOTATED, DECIDED_AGAIN, UNDECIDED, run, run_all
from service.memories.statements import history
from service.memories.store import (
    apply,
    decide_among_others,
    is_simply_new,
    may_change,
    outcome_of,
    settle,
    still_holds,
    store,
)
from service.postgres.direct import InsertBatch
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.statements import idempotency
from service.runtime.statements.idempotency import Replay
from service.runtime.statements.writes import PlacedMemory
from service.runtime.transactions import Stale, store_answer, write_transaction

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
class GroupedText:
    """A text of a group, and its id if it becomes a new memory. `near`: what it saw in the database; `draft.seen` also
    holds earlier texts of the batch."""

    number: int
    id: UUID
    draft: Draft
    near: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """The texts of one transaction: those that are simply new, and those that do something to others."""

    new: Sequence[GroupedText] = ()
    others: Sequence[GroupedText] = ()


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
                group = await _decided(drafts, self._res)
                self.results |= {each.number: outcome for each, outcome in await self._write(group)}
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

    async def _write(self, group: Group) -> list[tuple[GroupedText, Outcome]]:
        """One transaction for all, which an answer to each key is part of. Raises what a single write does."""
        if not (group.new or group.others):
            return []
        scope = (*group.new, *group.others)[0].draft.scope
        audited = replace(self._items[0].request, idempotency=None)
        async with write_transaction(scope, self._res, audited) as session:
            rows = InsertBatch(session)
            written = await self._add_new(session, group.new, rows)
            if group.others:
                await rows.flush()
                changed = {one for each in group.others for one in may_change(each.draft)}
                await history.lock(session, scope.workspace_id, changed)
            for each in group.others:
                draft = await decide_among_others(session, each.draft, self._res)
                if draft is not None:
                    await self._claim(session, each)
                    written.append((each, await apply(session, draft, self._res)))
            rows.add(write.audit_rows(scope, [outcome for _, outcome in written], audited, self._res))
            await rows.flush()
            for each, outcome in written:
                request = self._items[each.number].request
                await store_answer(session, scope.workspace_id, StoreResult((outcome,)), request)
        return written

    async def _add_new(
        self, session: Session, new: Sequence[GroupedText], rows: InsertBatch
    ) -> list[tuple[GroupedText, Outcome]]:
        """What is simply new, which joins `rows`."""
        for each in new:
            await self._claim(session, each)
        drafts = await _confirmed(session, new, self._res)
        placed = [PlacedMemory(draft.finish(each.id)) for each, draft in zip(new, drafts, strict=True)]
        await write.add(session, placed, self._res, batch=rows)
        return [
            (each, outcome_of(draft, one.memory.id, one.memory.text))
            for each, draft, one in zip(new, drafts, placed, strict=True)
        ]

    async def _claim(self, session: Session, each: GroupedText) -> None:
        key, scope = self._items[each.number].request.idempotency, each.draft.scope
        if key:
            await idempotency.claim(session, scope.workspace_id, key, scope)


async def _decided(drafts: dict[int, Draft], res: Resources) -> Group:
    """The texts with a decision and everything that their rows need; an empty group where each must go alone."""
    if not drafts:
        return Group()
    compared = {number: draft for number, draft in drafts.items() if draft.options.dedup}
    embedded = all(each.embedding_status is EmbeddingStatus.STORED for each in drafts.values())
    near: dict[int, tuple[Neighbour, ...]] = {}
    if compared and embedded:
        async with res.db.read(next(iter(compared.values())).scope.workspace_id, generic_plans=True) as session:
            found = await dedup.find_neighbours_of_many(session, list(compared.values()), res)
        near = {number: each.neighbours for number, each in zip(compared, found or (), strict=bool(found))}
    if not embedded or (compared and not near):
        return Group()  # the embedder is down, or the scope is too large
    texts = [GroupedText(number, uuid7(), draft, near.get(number, ())) for number, draft in drafts.items()]
    group = await _judged(_beside_each_other(texts, res), res)
    return Group(await _annotated(group.new, res), await _annotated(group.others, res))


async def _annotated(texts: Sequence[GroupedText], res: Resources) -> list[GroupedText]:
    """The same with all that a row needs; a duplicate makes no row."""
    needed = [each for each in texts if not each.draft.is_duplicate]
    annotated = await run_all(ANNOTATED, [each.draft for each in needed], res)
    found = {each.number: draft for each, draft in zip(needed, annotated, strict=True)}
    return [replace(each, draft=found.get(each.number, each.draft)) for each in texts]


def _beside_each_other(new: Sequence[GroupedText], res: Resources) -> list[GroupedText]:
    """Each text with the nearest of the database and of the texts before it, which count as if they were stored."""
    vectors = np.stack([each.draft.vector for each in new if each.draft.vector is not None])
    cosines, limit = vectors @ vectors.T, res.settings.dedup_candidates
    found = []
    for place, each in enumerate(new):
        if not each.draft.options.dedup:
            found.append(replace(each, draft=replace(each.draft, dedup=dedup.NEW)))
            continue
        nearest = np.argsort(-cosines[place, :place], kind="stable")[:limit]
        mates = [_as_neighbour(new[at], res.embedder.similarity(float(cosines[place, at]))) for at in nearest]
        seen = sorted((*each.near, *mates), key=lambda one: -one.similarity)
        found.append(replace(each, draft=replace(each.draft, seen=tuple(seen[:limit]))))
    return found


def _as_neighbour(each: GroupedText, similarity: float) -> Neighbour:
    draft = each.draft
    times = (draft.timestamp, draft.given.t_valid, draft.given.t_invalid)
    return Neighbour(each.id, draft.clean, draft.hash, 1, similarity, *times)


async def _judged(texts: Sequence[GroupedText], res: Resources) -> Group:
    """The texts by what the rules decide. The decision of each stands on what comes to be stored alone: where it may
    rest on a text that is not, it is made again (`draft.dedup` is None)."""
    parts = [texts[at : at + JUDGED_AT_ONCE] for at in range(0, len(texts), JUDGED_AT_ONCE)]
    decided = await asyncio.gather(
        *(res.rules.run(dedup.decide_each_by_rules, [each.draft for each in part], res.settings) for part in parts)
    )
    hashes, others = set[str](), dict[UUID, GroupedText]()
    new = list[GroupedText]()
    for each, draft in zip(texts, (draft for part in decided for draft in part), strict=True):
        is_unsure = any(seen.id in others for seen in draft.seen)
        if draft.options.dedup and (draft.hash in hashes or not is_simply_new(draft)):
            others[each.id] = replace(each, draft=replace(draft, dedup=None) if is_unsure else draft)
            continue
        hashes.add(draft.hash)
        new.append(replace(each, draft=_without(draft, others.keys()) if is_unsure else draft))
    return Group(new, list(others.values()))


def _without(draft: Draft, others: Set[UUID]) -> Draft:
    """The draft without texts of the batch that are not stored as new memories."""
    seen = tuple(each for each in draft.seen if each.id not in others)
    if draft.evidence is None:
        return replace(draft, seen=seen)
    return replace(draft, seen=seen, evidence=replace(draft.evidence, shown=tuple(each.id for each in seen)))


async def _confirmed(session: Session, new: Sequence[GroupedText], res: Resources) -> list[Draft]:
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
