"""How does an agent hold something in mind? Redacted first, then written under the session's lock."""

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
"""The key of what a session has one of."""


async def put(
    desk: WorkingScope,
    kind: WorkingKind,
    key: str,
    value: Any,
    res: Resources,
    *,
    ttl_s: int | None = None,
    expected: Expected | None = None,
) -> tuple[WorkingEntry, bool]:
    """The note, and whether it is new. Raises TooLarge, PiiRejected, or PreconditionFailed when it is not the one
    expected."""
    field = "value" if kind is WorkingKind.ITEM else str(kind)
    _check_size(value, field, res)
    clean = await pii.clean_json(value, field, res, key=key)
    async with _locked(desk, res) as session:
        now = res.clock()
        there = await working.find(session, desk, kind, key, now=now)
        _check(there, expected)
        note = await working.put(session, desk, kind, key, clean, _limits(kind, ttl_s, res))
    return note, there is None


async def push_thought(desk: WorkingScope, thought: str, res: Resources, *, ttl_s: int | None = None) -> WorkingEntry:
    """One more thought."""
    _check_size(thought, "thought", res)
    clean = await pii.clean_words(thought, "thought", res)
    async with _locked(desk, res) as session:
        return await working.put(
            session, desk, WorkingKind.THOUGHT, str(uuid4()), clean, _limits(WorkingKind.THOUGHT, ttl_s, res)
        )


async def add_turn(desk: WorkingScope, turn: WorkingTurn, res: Resources, *, ttl_s: int | None = None) -> WorkingEntry:
    """One more turn; its content is redacted here."""
    _check_size(turn.content, "content", res)
    content, _ = await pii.clean(turn.content, "content", res)
    heard = WorkingTurn(turn.role, content, turn.name, turn.timestamp)
    async with res.db.begin(desk.workspace_id) as session:
        return (await working.copy_turns(session, desk, [heard], _limits(WorkingKind.TURN, ttl_s, res)))[0]


async def read(desk: WorkingScope, kind: WorkingKind, key: str, res: Resources) -> WorkingEntry:
    """The note, which counts as a use: on the primary, in a transaction that writes. Raises NotFound."""
    async with res.db.begin(desk.workspace_id) as session:
        found = await working.use(session, desk, kind, key, now=res.clock())
    if found is None:
        raise missing(kind)
    return found


async def remove(
    desk: WorkingScope, kind: WorkingKind, key: str, res: Resources, *, expected: Expected | None = None
) -> None:
    """Raises NotFound when there is none, or PreconditionFailed."""
    async with _locked(desk, res) as session:
        there = await working.find(session, desk, kind, key, now=res.clock())
        if there is None:
            raise missing(kind)
        _check(there, expected)
        await working.remove(session, desk, kind, key)


def turn_limits(res: Resources, ttl_s: int | None = None) -> WorkingLimits:
    """How turns are held under these settings, for whoever copies them in a transaction of its own."""
    return _limits(WorkingKind.TURN, ttl_s, res)


def missing(kind: WorkingKind) -> NotFound:
    return NotFound(
        f"This session holds no such {kind}.", field="key" if kind is WorkingKind.ITEM else "conversation_id"
    )


@asynccontextmanager
async def _locked(desk: WorkingScope, res: Resources) -> AsyncIterator[Session]:
    async with res.db.begin(desk.workspace_id) as session:
        await working.lock(session, desk)
        yield session


def _limits(kind: WorkingKind, ttl_s: int | None, res: Resources) -> WorkingLimits:
    settings = res.settings
    keep = {
        WorkingKind.ITEM: settings.working_max_items,
        WorkingKind.TURN: settings.working_max_turns,
        WorkingKind.THOUGHT: settings.working_max_thoughts,
    }.get(kind, 1)
    return WorkingLimits(res.clock(), ttl_s if ttl_s is not None else settings.working_ttl_s, keep)


def _check(there: WorkingEntry | None, expected: Expected | None) -> None:
    if expected is not None and (there is None or not expected.meets(there.version)):
        raise PreconditionFailed("It has changed since, or is gone: read it again.", field="If-Match")


def _check_size(value: Any, field: str, res: Resources) -> None:
    most = res.settings.working_value_bytes
    if len(json.dumps(value, ensure_ascii=False).encode()) > most:
        raise TooLarge(f"{field}: as JSON at most {most} bytes are held.", field=field)
