"""Stores what requests send: a text, a conversation, or several of both.

The short texts of a batch that belong to one scope share look-up, transaction and commit. Everything else is a write of
its own, and each item has its own answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.domain.draft import Draft, EmbeddingStatus
from service.domain.errors import OutcomeUnknown, ServiceError, StoreUnavailable
from service.domain.memory import StoreResult
from service.domain.request import Call, Replay, StoredAnswer
from service.domain.scope import Scope
from service.intake.curate import curate
from service.intake.verbatim import ConversationDraft, store_verbatim
from service.memories.stages.stages import UNDECIDED, run
from service.memories.store import NewText, can_decide_under_lock, store_draft, store_text, store_under_lock
from service.runtime.resources import Resources
from service.runtime.transactions import DecisionOutdated, refuse_repeated

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
    return await (curate if draft.infer else store_verbatim)(draft, res, call)


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
        """Stores the texts of a scope in order, TEXTS_PER_TRANSACTION together, so that each part sees the memories of
        those before it; later parts pass the stages of their texts alone while earlier ones are written."""
        scopes: dict[Scope, list[int]] = {}
        for number, item in self._items.items():
            if isinstance(item.draft, Draft) and self._may_share(item.draft, item.call):
                scopes.setdefault(item.draft.scope, []).append(number)
        shared = {number for numbers in scopes.values() if len(numbers) > 1 for number in numbers}
        alone = [number for number in self._items if number not in shared]
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
