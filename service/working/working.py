"""Writes to working memory: a value is redacted, then stored under the lock of its session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from service.domain.errors import NotFound, TooLarge
from service.domain.request import Expected, check_version
from service.domain.scope import Scope
from service.observability import metrics
from service.postgres.engine import Session
from service.runtime import pii
from service.runtime.resources import Resources
from service.working.statements import working
from service.working.values import WorkingEntry, WorkingKind

MAX_VALUE_BYTES = 65_536
"""The largest value as JSON; larger ones belong in another store."""

ONLY = ""
"""The key of kinds with one entry per session."""


async def put(
    scope: Scope,
    kind: WorkingKind,
    key: str,
    value: Any,
    res: Resources,
    *,
    ttl_s: int | None = None,
    expected: Expected | None = None,
) -> tuple[WorkingEntry, bool]:
    """Stores an entry; returns it, and whether its key was new. Raises TooLarge, PiiRejected, or PreconditionFailed if
    the stored version is not the expected one."""
    field = "value" if kind == "item" else kind
    _check_size(value, field)
    clean = await pii.clean_json(value, field, res, key=key if kind == "item" else "")
    async with _lock_session(scope, res) as session:
        before = await working.use(session, scope, kind, key, now=res.clock())
        check_version(before.version if before else None, expected, kind)
        lifetime_s = ttl_s or res.settings.memories.working_ttl_s
        entry = await working.put(session, scope, kind, key, clean, now=res.clock(), ttl_s=lifetime_s)
    return entry, before is None


async def add_turn(
    scope: Scope,
    role: str,
    content: str,
    res: Resources,
    *,
    name: str | None = None,
    timestamp: datetime | None = None,
    ttl_s: int | None = None,
) -> WorkingEntry:
    """Adds a turn. Raises TooLarge or PiiRejected."""
    _check_size(content, "content")
    clean, _ = await pii.clean(content, "content", res)
    lifetime_s = ttl_s or res.settings.memories.working_ttl_s
    async with res.db.begin(scope.workspace_id) as session:
        return await working.put_turn(session, scope, role, clean, name, timestamp, now=res.clock(), ttl_s=lifetime_s)


async def put_goal(
    scope: Scope,
    goal_id: UUID | None,
    description: str | None,
    res: Resources,
    *,
    ttl_s: int | None = None,
    expected: Expected | None = None,
) -> tuple[WorkingEntry, bool]:
    """Sets the goal of the session; the description defaults to that of the goal. Raises NotFound if this user and
    agent have no such goal, and what `put` raises."""
    if goal_id is not None:
        async with res.db.read(scope.workspace_id) as session:
            described = await working.goal_description(session, scope, goal_id)
        if described is None:
            raise NotFound("goal_id: there is no goal with this id.", field="goal_id")
        description = description or described
    value = {"goal_id": str(goal_id) if goal_id else None, "description": description}
    return await put(scope, "goal", ONLY, value, res, ttl_s=ttl_s, expected=expected)


async def read(scope: Scope, kind: WorkingKind, key: str, res: Resources) -> WorkingEntry:
    """The entry. Reading counts as a use, so it is a writing transaction on the primary. Raises NotFound."""
    async with res.db.begin(scope.workspace_id) as session:
        entry = await working.use(session, scope, kind, key, now=res.clock())
    metrics.count_look_up("working_memory", hits=int(entry is not None), misses=int(entry is None))
    if entry is None:
        raise entry_not_found(kind)
    return entry


async def read_all(scope: Scope, res: Resources) -> list[WorkingEntry]:
    """All entries of the session, newest first; this does not count as a use."""
    async with res.db.read(scope.workspace_id) as session:
        return await working.contents(session, scope, now=res.clock())


async def latest(scope: Scope, kind: WorkingKind, res: Resources, *, limit: int) -> list[WorkingEntry]:
    """Entries of a kind, newest first."""
    async with res.db.read(scope.workspace_id) as session:
        return await working.latest(session, scope, kind, limit=limit, now=res.clock())


async def clear(scope: Scope, res: Resources) -> int:
    """Deletes all entries of the session; returns how many."""
    async with _lock_session(scope, res) as session:
        return await working.clear(session, scope)


async def remove(
    scope: Scope, kind: WorkingKind, key: str, res: Resources, *, expected: Expected | None = None
) -> None:
    """Deletes an entry. Raises NotFound if there is none with this key, or PreconditionFailed."""
    async with _lock_session(scope, res) as session:
        entry = await working.use(session, scope, kind, key, now=res.clock())
        if entry is None:
            raise entry_not_found(kind)
        check_version(entry.version, expected, kind)
        await working.remove(session, scope, kind, key)


def entry_not_found(kind: WorkingKind) -> NotFound:
    field = "key" if kind == "item" else "conversation_id"
    return NotFound(f"This session has no such {kind}.", field=field)


@asynccontextmanager
async def _lock_session(scope: Scope, res: Resources) -> AsyncIterator[Session]:
    async with res.db.begin(scope.workspace_id) as session:
        await working.lock(session, scope)
        yield session


def _check_size(value: Any, field: str) -> None:
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_VALUE_BYTES:
        raise TooLarge(f"{field}: as JSON at most {MAX_VALUE_BYTES} bytes are stored.", field=field)
