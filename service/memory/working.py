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
from service.domain.working import Desk, Holding, Kind, Note, Spoken
from service.errors import NotFound, PreconditionFailed, TooLarge
from service.pipeline import pii
from service.resources import Resources

ONLY = ""
"""The key of what a session has one of."""


async def hold(
    desk: Desk,
    kind: Kind,
    key: str,
    value: Any,
    res: Resources,
    *,
    ttl_s: int | None = None,
    expected: Expected | None = None,
) -> tuple[Note, bool]:
    """The note, and whether it is new. Raises TooLarge, PiiRejected, or PreconditionFailed when it is not the one
    expected."""
    field = "value" if kind is Kind.ITEM else str(kind)
    _check_size(value, field, res)
    clean = await pii.clean_json(value, field, res, key=key)
    async with _turn(desk, res) as session:
        now = res.clock()
        there = await working.find(session, desk, kind, key, now=now)
        _check(there, expected)
        note = await working.put(session, desk, kind, key, clean, _holding(kind, ttl_s, res))
    return note, there is None


async def think(desk: Desk, thought: str, res: Resources, *, ttl_s: int | None = None) -> Note:
    """One more thought."""
    _check_size(thought, "thought", res)
    clean = await pii.clean_words(thought, "thought", res)
    async with _turn(desk, res) as session:
        return await working.put(session, desk, Kind.THOUGHT, str(uuid4()), clean, _holding(Kind.THOUGHT, ttl_s, res))


async def hear(desk: Desk, turn: Spoken, res: Resources, *, ttl_s: int | None = None) -> Note:
    """One more turn; its content is redacted here."""
    _check_size(turn.content, "content", res)
    content, _ = await pii.clean(turn.content, "content", res)
    heard = Spoken(turn.role, content, turn.name, turn.timestamp)
    async with res.db.begin(desk.workspace_id) as session:
        return (await working.copy_turns(session, desk, [heard], _holding(Kind.TURN, ttl_s, res)))[0]


async def recollect(desk: Desk, kind: Kind, key: str, res: Resources) -> Note:
    """The note, which counts as a use: on the primary, in a transaction that writes. Raises NotFound."""
    async with res.db.begin(desk.workspace_id) as session:
        found = await working.use(session, desk, kind, key, now=res.clock())
    if found is None:
        raise missing(kind)
    return found


async def drop(desk: Desk, kind: Kind, key: str, res: Resources, *, expected: Expected | None = None) -> None:
    """Raises NotFound when there is none, or PreconditionFailed."""
    async with _turn(desk, res) as session:
        there = await working.find(session, desk, kind, key, now=res.clock())
        if there is None:
            raise missing(kind)
        _check(there, expected)
        await working.remove(session, desk, kind, key)


def holding_turns(res: Resources, ttl_s: int | None = None) -> Holding:
    """How turns are held under these settings, for whoever copies them in a transaction of its own."""
    return _holding(Kind.TURN, ttl_s, res)


def missing(kind: Kind) -> NotFound:
    return NotFound(f"This session holds no such {kind}.", field="key" if kind is Kind.ITEM else "conversation_id")


@asynccontextmanager
async def _turn(desk: Desk, res: Resources) -> AsyncIterator[Session]:
    async with res.db.begin(desk.workspace_id) as session:
        await working.lock(session, desk)
        yield session


def _holding(kind: Kind, ttl_s: int | None, res: Resources) -> Holding:
    settings = res.settings
    keep = {
        Kind.ITEM: settings.working_max_items,
        Kind.TURN: settings.working_max_turns,
        Kind.THOUGHT: settings.working_max_thoughts,
    }.get(kind, 1)
    return Holding(res.clock(), ttl_s if ttl_s is not None else settings.working_ttl_s, keep)


def _check(there: Note | None, expected: Expected | None) -> None:
    if expected is not None and (there is None or not expected.meets(there.version)):
        raise PreconditionFailed("It has changed since, or is gone: read it again.", field="If-Match")


def _check_size(value: Any, field: str, res: Resources) -> None:
    most = res.settings.working_value_bytes
    if len(json.dumps(value, ensure_ascii=False).encode()) > most:
        raise TooLarge(f"{field}: as JSON at most {most} bytes are held.", field=field)
