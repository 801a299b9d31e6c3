"""Storing many texts at once: those of one scope share a look-up, a transaction and its commit.

A text that cannot be decided about together with others is stored by itself afterwards, and so is every text of a
transaction that did not go through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.draft import Draft, EmbeddingStatus
from service.domain.errors import OutcomeUnknown, ServiceError, StoreUnavailable
from service.domain.memory import Outcome
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.memories.stages.stages import UNDECIDED, run
from service.memories.store import NewText, rules_decide, store, store_read, store_together
from service.runtime.resources import Resources
from service.runtime.statements.idempotency import Replay
from service.runtime.transactions import Stale

TOGETHER = 100
"""Texts of one transaction: it holds the scope's lock for some tenths of a second."""

ALONE_AT_ONCE = 4


Result = Outcome | ServiceError | Replay


@dataclass(frozen=True, slots=True)
class BatchItem:
    """A text of a batch, and the request that it is on its own."""

    draft: Draft
    request: WriteContext


async def store_batch(items: Sequence[BatchItem], res: Resources, ends: float | None = None) -> list[Result]:
    """What became of each item, in their order: its outcome, or the error that it alone would have raised. `ends`: the
    moment (kit/deadline.py) by which each is done."""
    batch = _BatchRun(items, res.deferring(), ends)
    scopes: dict[Scope, list[int]] = {}
    for number, item in enumerate(items):
        scopes.setdefault(item.draft.scope, []).append(number)
    await asyncio.gather(*map(batch.of_scope, scopes.values()))
    return [batch.results[number] for number in range(len(items))]


class _BatchRun:
    def __init__(self, items: Sequence[BatchItem], res: Resources, ends: float | None) -> None:
        self._items, self._res, self._ends = items, res, ends
        self._slots = asyncio.Semaphore(ALONE_AT_ONCE)
        self.results: dict[int, Result] = {}

    async def of_scope(self, numbers: Sequence[int]) -> None:
        """The items of one scope, some at a time in their order: the next ones see what the ones before wrote."""
        shared = [number for number in numbers if self._may_share(self._items[number].draft)]
        if len(shared) < 2:
            shared = []
        alone = [number for number in numbers if number not in shared]
        await asyncio.gather(self._in_parts(shared), *map(self._alone, alone))

    def _may_share(self, draft: Draft) -> bool:
        """Whether it can be one of many: no model is asked about it, and it names no memory."""
        options = draft.options
        asks = self._res.llm is not None and options.use_llm
        return not (asks or options.dry_run or options.embed_later or draft.given.id)

    async def _in_parts(self, numbers: Sequence[int]) -> None:
        for start in range(0, len(numbers), TOGETHER):
            await self._together(numbers[start : start + TOGETHER])

    async def _together(self, numbers: Sequence[int]) -> None:
        until = None if self._ends is None else (asyncio.get_running_loop().time() + self._ends) / 2
        read = await asyncio.gather(*(self._read(number, until) for number in numbers))
        drafts = {number: draft for number, draft in zip(numbers, read, strict=True) if draft is not None}
        short = [number for number, draft in drafts.items() if rules_decide(draft, self._res)]
        if len(short) > 1 and all(drafts[each].embedding_status is EmbeddingStatus.STORED for each in short):
            texts = [NewText(drafts[number], self._items[number].request) for number in short]
            try:
                async with self._res.until(self._ends) as res:
                    stored = await store_together(texts, res)
                self.results |= {number: one for number, one in zip(short, stored, strict=True) if one is not None}
            except (StoreUnavailable, OutcomeUnknown) as exc:
                self.results |= dict.fromkeys(short, exc)
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
            async with self._slots, self._res.until(self._ends) as res:
                if draft is None:
                    self.results[number] = await store(item.draft, res, item.request)
                else:
                    self.results[number] = await store_read(draft, res, item.request)
        except (ServiceError, Replay) as exc:
            self.results[number] = exc
