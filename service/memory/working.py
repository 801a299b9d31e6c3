"""Writes to working memory: the value is redacted first, then stored under the lock of its session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from service.db.cognition import working
from service.db.engine import Session
from service.domain.revision import Expected
from service.domain.working import WorkingEntry, WorkingKind, WorkingLimits, WorkingScope, WorkingTurn
from service.errors import NotFound, PreconditionFailed, TooLarge
from service.pipeline import pii
from service.resources import Resources

ONLY = ""
"""The key of kinds with one entry per session."""


async def put(
    scope: WorkingScope,
    kind: WorkingKind,
    key: str,
    value: Any,
    res: Resources,
    *,
    ttl_s: int | None = None,
    expected: Expected | None = None,
) -> tuple[WorkingEntry, bool]:
    """The entry, and whether its key was new. Raises TooLarge, PiiRejected, or PreconditionFailed when the stored
    version is not the one expected."""
    field = "value" if kind is WorkingKind.ITEM else str(kind)
    _check_size(value, field, res)
    clean = await pii.clean_json(value, field, res, key=key)
    async with _locked(scope, res) as session:
        there = await working.find(session, scope, kind, key, now=res.clock())
        _check_version(there, expected)
        entry = await working.put(session, scope, kind, key, clean, limits_of(kind, res, ttl_s))
    return entry, there is None


async def push_thought(scope: WorkingScope, thought: str, res: Resources, *, ttl_s: int | None = None) -> WorkingEntry:
    """Adds a thought. Raises TooLarge or PiiRejected."""
    _check_size(thought, "thought", res)
    clean = await pii.clean_words(thought, "thought", res)
    async with _locked(scope, res) as session:
        limits = limits_of(WorkingKind.THOUGHT, res, ttl_s)
        return await working.put(session, scope, WorkingKind.THOUGHT, str(uuid4()), clean, limits)


async def add_turn(scope: WorkingScope, turn: WorkingTurn, res: Resources, *, ttl_s: int | None = None) -> WorkingEntry:
    """Adds a turn, whose content is redacted here. Raises TooLarge or PiiRejected."""
    _check_size(turn.content, "content", res)
    content, _ = await pii.clean(turn.content, "content", res)
    clean = WorkingTurn(turn.role, content, turn.name, turn.timestamp)
    async with res.db.begin(scope.workspace_id) as session:
        return (await working.copy_turns(session, scope, [clean], limits_of(WorkingKind.TURN, res, ttl_s)))[0]


async def read(scope: WorkingScope, kind: WorkingKind, key: str, res: Resources) -> WorkingEntry:
    """The entry. Reading counts as a use, so it is a writing transaction on the primary. Raises NotFound."""
    async with res.db.begin(scope.workspace_id) as session:
        found = await working.use(session, scope, kind, key, now=res.clock())
    if found is None:
        raise missing(kind)
    return found


async def remove(
    scope: WorkingScope, kind: WorkingKind, key: str, res: Resources, *, expected: Expected | None = None
) -> None:
    """Raises NotFound when there is no such entry, or PreconditionFailed."""
    async with _locked(scope, res) as session:
        there = await working.find(session, scope, kind, key, now=res.clock())
        if there is None:
            raise missing(kind)
        _check_version(there, expected)
        await working.remove(session, scope, kind, key)


def limits_of(kind: WorkingKind, res: Resources, ttl_s: int | None = None) -> WorkingLimits:
    """The limits of a kind under these settings; `ttl_s` replaces the configured time to live."""
    settings = res.settings
    max_entries = {
        WorkingKind.ITEM: settings.working_max_items,
        WorkingKind.TURN: settings.working_max_turns,
        WorkingKind.THOUGHT: settings.working_max_thoughts,
    }.get(kind, 1)
    return WorkingLimits(res.clock(), ttl_s if ttl_s is not None else settings.working_ttl_s, max_entries)


def missing(kind: WorkingKind) -> NotFound:
    field = "key" if kind is WorkingKind.ITEM else "conversation_id"
    return NotFound(f"This session holds no such {kind}.", field=field)


@asynccontextmanager
async def _locked(scope: WorkingScope, res: Resources) -> AsyncIterator[Session]:
    async with res.db.begin(scope.workspace_id) as session:
        await working.lock(session, scope)
        yield session


def _check_version(there: WorkingEntry | None, expected: Expected | None) -> None:
    if expected is not None and (there is None or not expected.meets(there.version)):
        raise PreconditionFailed("It has changed since, or is gone: read it again.", field="If-Match")


def _check_size(value: Any, field: str, res: Resources) -> None:
    most = res.settings.working_value_bytes
    if len(json.dumps(value, ensure_ascii=False).encode()) > most:
        raise TooLarge(f"{field}: as JSON at most {most} bytes are held.", field=field)
