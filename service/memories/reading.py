"""Reads memories: one, a list, those connected to them, and where they come from. Each verb reads one snapshot.

A list ends where the response is full (sizes.PAGE_BYTES), which may be before its limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from uuid import UUID

from service.domain.errors import NotFound
from service.domain.memory import LeanMemory, Memory, MemorySourceItem, MemoryState
from service.domain.query import ANYTHING, EVER, Detail, Narrow, PageKey, Query, SortOrder
from service.domain.relation import ConnectedMemoryItem, Relation, Walk, WalkOptions
from service.domain.version import Version
from service.graph.statements import edges
from service.http import cursors
from service.memories.statements import decisions, history, memories, recorded, sources, versions, visibility
from service.memories.statements.recorded import RecordedScope
from service.memories.values import MemoryHistoryItem, StoredDecision, TotalCount
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.runtime.resources import Resources


def list_rows(query: Query, state: MemoryState, now: datetime) -> Condition:
    """The condition on `memory m` of a list, whether valid now or not: live memories, or deleted ones as they were."""
    condition = scopes.readable("m", query.scope, query.channels)
    if state == "live":
        return condition & visibility.conditions("m", replace(query, validity="ignore"), query.as_of or now)
    condition &= visibility.not_past_version("m") & visibility.not_in_review("m")
    return visibility.filter_rows("m", query.narrow, query.window, replace(condition, parts=()))


async def page(
    query: Query, order: SortOrder, res: Resources, *, state: MemoryState, after: PageKey | None, counted: bool
) -> tuple[Sequence[LeanMemory], PageKey | None, TotalCount | None]:
    """The memories in order, after a key or the first `query.skip`, the key of the last if more follow, and their
    number if counted."""
    rows, skip, limit = list_rows(query, state, res.clock()), query.skip, query.limit
    get: Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, LeanMemory]]]
    async with res.db.snapshot(query.scope.workspace_id) as session:
        source = memories.SOURCE
        get = partial(memories.get_many if query.detail == "full" else memories.get_lean, session)
        if state == "deleted":
            source = recorded.deleted_source(query.scope, query.channels)
            get = partial(recorded.get_deleted, session)
        elif query.as_of is not None:
            then = RecordedScope(query.scope, query.as_of, rows, query.channels)
            source, rows = then.recorded, then.condition
            get = partial(recorded.get_many, session, moment=query.as_of)
        keys = await memories.page(session, rows, order, after=after, limit=skip + limit + 1, source=source)
        keys = keys[skip:]
        by_id, read = await direct.page_of_ids([key.id for key in keys[:limit]], get)
        total = await memories.count(session, rows, source=source) if counted else None
    last = keys[read - 1] if len(keys) > read else None
    return [by_id[key.id] for key in keys[:read]], last, total


find = memories.get


async def get(
    workspace_id: UUID,
    memory_id: UUID,
    res: Resources,
    *,
    valid_at: datetime | None = None,
    as_of: datetime | None = None,
) -> Memory:
    """A memory, archived or not, or its version that held at a moment, or was recorded then. Raises NotFound."""
    by_key = valid_at is None and as_of is None  # a single statement, planned once
    async with res.db.read(workspace_id, generic_plans=True) if by_key else res.db.snapshot(workspace_id) as session:
        memory = await recorded.get(session, memory_id, valid_at=valid_at, as_of=as_of, now=res.clock())
    if memory is None:
        raise NotFound.of("memory")
    return memory


async def get_many(workspace_id: UUID, ids: Sequence[UUID], res: Resources) -> Mapping[UUID, Memory]:
    """The unexpired memories with these ids."""
    async with res.db.read(workspace_id) as session:
        return await memories.get_many(session, ids, alive_at=res.clock())


async def get_items(
    workspace_id: UUID, ids: Sequence[UUID], detail: Detail, res: Resources
) -> tuple[Mapping[UUID, LeanMemory], int]:
    """The unexpired memories among the first of these ids, and how many ids were read."""
    async with res.db.read(workspace_id, generic_plans=True) as session:
        return await memories.get_items(session, ids, detail, alive_at=res.clock())


# -- around a memory ---------------------------------------------------------------------------------------------------


Connected = Mapping[UUID, Sequence[ConnectedMemoryItem]]
"""The memories that each memory is connected to, strongest first."""


async def list_tagged(query: Query, res: Resources) -> tuple[Sequence[LeanMemory], Connected, bool]:
    """The memories that a query narrows down to, most important first; those that each is connected to; and whether
    more follow."""
    now, limit = res.clock(), query.limit
    condition = scopes.readable("m", query.scope)
    rows = condition & visibility.conditions("m", query, now)
    connectable = condition & visibility.conditions("m", replace(query, narrow=ANYTHING, validity="ignore"), now)
    async with res.db.snapshot(query.scope.workspace_id) as session:
        ids = (await visibility.most_important(session, rows, limit=query.skip + limit + 1))[query.skip :]
        by_id, count = await memories.get_items(session, ids[:limit], query.detail)
        has_more, ids = len(ids) > count, ids[:count]
        connected = await _connected(session, ids, connectable, res)
    return [by_id[memory_id] for memory_id in ids], connected, has_more


async def read_connected(query: Query, ids: Sequence[UUID], res: Resources) -> Connected:
    """At most `settings.search.relation_limit` connected memories for each of the first of these, as many as fit a page
    of a response. They match the scope, channels and validity of the query, but not necessarily its text."""
    now, workspace_id = res.clock(), query.scope.workspace_id
    unfiltered = replace(
        query, narrow=Narrow(valid_at=query.narrow.valid_at, without=query.narrow.without), window=EVER
    )
    rows = scopes.readable("m", query.scope, query.channels) & visibility.conditions("m", unfiltered, now)
    async with res.db.snapshot(workspace_id) as session:
        everything = await _connected(session, ids, rows, res)
    shown, _ = cursors.cut([everything.get(memory_id, ()) for memory_id in ids], len(ids))
    return dict(zip(ids, shown, strict=False))


async def _connected(session: Session, ids: Sequence[UUID], rows: Condition, res: Resources) -> Connected:
    limit_each = res.settings.search.relation_limit
    steps = await edges.read_connected(session, ids, rows, each=limit_each, now=res.clock())
    ends = dict.fromkeys(step.memory_id for memory_id in ids for step in steps.get(memory_id, ()))
    by_id, _ = await memories.get_items(session, list(ends), "lean")
    return {
        start: [
            ConnectedMemoryItem(step.memory_id, by_id[step.memory_id].text, step.by.type, step.by.strength)
            for step in walked
            if step.memory_id in by_id
        ]
        for start, walked in steps.items()
    }


async def walk(
    workspace_id: UUID, memory_id: UUID, options: WalkOptions, res: Resources, *, skip: int, detail: Detail
) -> tuple[Memory, Walk, Mapping[UUID, LeanMemory], int]:
    """The memories around a memory, by the edges that `options` allows: the start, the walk, and the memories of its
    next steps after the first `skip`, with the number of these steps. Raises NotFound."""
    async with res.db.snapshot(workspace_id) as session:
        start = await _alive(session, memory_id, res)
        walk = await edges.walk(session, start.id, options, now=res.clock())
        ids = [step.memory_id for step in walk.steps[skip:]]
        by_id, count = await memories.get_items(session, ids, detail)
    return start, walk, by_id, count


async def relations(
    workspace_id: UUID, memory_id: UUID, res: Resources, *, skip: int, limit: int
) -> Sequence[Relation]:
    """The relations of a memory after the first `skip`, strongest first. Raises NotFound."""
    async with res.db.snapshot(workspace_id) as session:
        start = await _alive(session, memory_id, res)
        return await edges.of_memory(session, start.id, skip=skip, limit=limit)


async def _alive(session: Session, memory_id: UUID, res: Resources) -> Memory:
    memory = await memories.get(session, memory_id, alive_at=res.clock())
    if memory is None:
        raise NotFound.of("memory")
    return memory


# -- where it comes from -----------------------------------------------------------------------------------------------


async def changes(
    workspace_id: UUID, memory_id: UUID, res: Resources, *, skip: tuple[int, int], limit: int
) -> tuple[Sequence[MemoryHistoryItem], Sequence[Version]]:
    """The entries of a memory's history and its versions, each after the first `skip`, oldest first. Raises NotFound
    for an id that never existed."""
    async with res.db.read(workspace_id) as session:
        entries = await history.of_memory(session, memory_id, skip=skip[0], limit=limit)
        if not entries:
            await _refuse_unknown(session, memory_id)
        line = (await versions.read_line(session, memory_id, texts=False))[skip[1] :][:limit]
        by_id, _ = await memories.get_items(session, [version.id for version in line], "lean")
    return entries, [replace(version, text=by_id[version.id].text) for version in line if version.id in by_id]


async def decisions_about(
    workspace_id: UUID, memory_id: UUID, res: Resources, *, skip: int, limit: int
) -> Sequence[StoredDecision]:
    """The decisions about a memory after the first `skip`. Raises NotFound for an id that never existed."""
    async with res.db.read(workspace_id) as session:
        decided = await decisions.of_memory(session, memory_id, skip=skip, limit=limit)
        if not decided:
            await _refuse_unknown(session, memory_id)
    return decided


async def origin(
    workspace_id: UUID, memory_id: UUID, res: Resources, *, skip: tuple[int, int, int], limit: int
) -> tuple[str | None, Sequence[MemorySourceItem], Sequence[StoredDecision], Sequence[MemoryHistoryItem]]:
    """Where a memory comes from: its text, None once it is deleted, the turns it was read from, the decisions about it
    and its changes, each after the first `skip`. Raises NotFound for an id that never existed."""
    async with res.db.snapshot(workspace_id) as session:
        await _refuse_unknown(session, memory_id)
        quotes = await sources.quotes(session, memory_id, skip=skip[0], limit=limit)
        decided = await decisions.of_memory(session, memory_id, skip=skip[1], limit=limit)
        entries = await history.of_memory(session, memory_id, skip=skip[2], limit=limit)
        memory = await memories.get(session, memory_id, alive_at=res.clock())
    return memory.text if memory else None, quotes, decided, entries


async def _refuse_unknown(session: Session, memory_id: UUID) -> None:
    if not await history.of_memory(session, memory_id, limit=1):
        raise NotFound.of("memory")
