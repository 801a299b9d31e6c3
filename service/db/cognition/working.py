# ruff: noqa: S608 - what is put into the statements are constants of this file
"""What is held in mind in one session, and what is let go of?

An UNLOGGED table (migration 0012): read on the primary only, empty after a crash. Reads filter by expiry with the
caller's clock; the sweeper removes the rows. Writers of one session take turns by an advisory lock, so that the caps
are exact; it is the last lock of a transaction that takes others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import DateTime, bindparam, text

from service.db.conditions import typed
from service.db.engine import Session
from service.domain.scope import Scope
from service.domain.working import WorkingEntry, WorkingKind, WorkingLimits, WorkingMemory, WorkingScope, WorkingTurn

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('working:' || CAST(:name AS text), 0))")

COLUMNS = "kind, key, value, seq, created_at, last_used_at, expires_at"

# pk_working_item finds all of a session in a few pages.
HERE = "workspace_id = :workspace AND session_id = :session"

PUT = typed(
    text(f"""
    INSERT INTO working_item (workspace_id, session_id, kind, key, user_id, agent_id, channel, conversation_id, turn_id,
                              value, last_used_at, expires_at)
    SELECT :workspace, :session, :kind, new.key, :user_id, :agent_id, :channel, :conversation_id, new.turn_id,
           CAST(new.value AS jsonb), :now, :expires_at
    FROM unnest(CAST(:keys AS text[]), CAST(:turn_ids AS uuid[]), CAST(:values AS text[]))
         WITH ORDINALITY AS new (key, turn_id, value, place)
    ORDER BY new.place
    ON CONFLICT (workspace_id, session_id, kind, key) DO UPDATE
        SET value = excluded.value, seq = excluded.seq, last_used_at = excluded.last_used_at,
            expires_at = excluded.expires_at, turn_id = excluded.turn_id,
            created_at = CASE WHEN working_item.expires_at <= :now THEN excluded.created_at
                              ELSE working_item.created_at END
    RETURNING {COLUMNS}
""")
).bindparams(bindparam("expires_at", type_=DateTime(timezone=True)))

# Least recently used first (R11.09): reading an item is a use. What expired goes before anything that did not.
TRIM = typed(
    text(f"""
    DELETE FROM working_item
    WHERE {HERE} AND kind = :kind AND (expires_at <= :now OR key = ANY (ARRAY(
        SELECT key FROM working_item WHERE {HERE} AND kind = :kind AND expires_at > :now
        ORDER BY last_used_at DESC, seq DESC OFFSET :keep)))
""")
)

FIND = typed(
    text(f"""
    SELECT {COLUMNS} FROM working_item WHERE {HERE} AND kind = :kind AND key = :key AND expires_at > :now
""")
)

USE = typed(
    text(f"""
    UPDATE working_item SET last_used_at = :now
    WHERE {HERE} AND kind = :kind AND key = :key AND expires_at > :now RETURNING {COLUMNS}
""")
)

LATEST = typed(
    text(f"""
    SELECT {COLUMNS} FROM working_item WHERE {HERE} AND kind = :kind AND expires_at > :now
    ORDER BY seq DESC LIMIT :limit
""")
)

ALL = typed(
    text(f"""
    SELECT {COLUMNS} FROM working_item WHERE {HERE} AND expires_at > :now ORDER BY kind, seq DESC
""")
)

REMOVE = text(f"DELETE FROM working_item WHERE {HERE} AND kind = :kind AND key = :key")
CLEAR = text(f"DELETE FROM working_item WHERE {HERE}")

# A session of a run bears its name, or the id of its conversation.
ERASE = text("""
    DELETE FROM working_item w
    WHERE w.workspace_id = :workspace AND (CAST(:user_id AS text) IS NULL OR w.user_id = :user_id)
      AND (CAST(:agent_id AS text) IS NULL OR w.agent_id = :agent_id)
      AND (CAST(:channel AS text) IS NULL OR w.channel = :channel)
      AND (CAST(:run_id AS text) IS NULL OR w.conversation_id = :run_id OR w.conversation_id IN (
          SELECT c.id::text FROM conversation c WHERE c.workspace_id = :workspace AND c.external_id = :run_id))
""")

SWEEP = text("SELECT sweep_working(:at, :batch)")
BYTES = text("SELECT pg_total_relation_size('working_item')")


async def lock(session: Session, desk: WorkingScope) -> None:
    """The session's turn to write, until the transaction ends. Alone in its statement, like every lock (A9)."""
    await session.execute(LOCK, {"name": f"{desk.workspace_id}|{desk.session_id}"})


async def put(
    session: Session, desk: WorkingScope, kind: WorkingKind, key: str, value: Any, how: WorkingLimits
) -> WorkingEntry:
    """The note as it is held now; its key's former value is gone. `lock` comes first."""
    return (await _put(session, desk, kind, [key], [value], [None], how))[0]


async def copy_turns(
    session: Session, desk: WorkingScope, turns: Sequence[WorkingTurn], how: WorkingLimits
) -> list[WorkingEntry]:
    """Turns to be held in mind, in their order, inside the caller's transaction, of which this must be the last lock. A
    turn with a `turn_id` that is held already is held anew."""
    if not turns:
        return []
    await lock(session, desk)
    keys, ids = [turn.key for turn in turns], [turn.turn_id for turn in turns]
    return await _put(session, desk, WorkingKind.TURN, keys, [turn.value for turn in turns], ids, how)


async def _put(
    session: Session,
    desk: WorkingScope,
    kind: WorkingKind,
    keys: Sequence[str],
    values: Sequence[Any],
    turn_ids: Sequence[Any],
    how: WorkingLimits,
) -> list[WorkingEntry]:
    rows = await session.execute(
        PUT,
        {
            **_here(desk, how.now),
            "kind": str(kind),
            "keys": list(keys),
            "values": [json.dumps(value, ensure_ascii=False) for value in values],
            "turn_ids": list(turn_ids),
            "user_id": desk.user_id,
            "agent_id": desk.agent_id,
            "channel": desk.channel,
            "conversation_id": desk.conversation_id,
            "expires_at": how.now + timedelta(seconds=how.ttl_s),
        },
    )
    made = [_note(row) for row in rows]
    await session.execute(TRIM, {**_here(desk, how.now), "kind": str(kind), "keep": how.keep})
    return made


async def find(
    session: Session, desk: WorkingScope, kind: WorkingKind, key: str, *, now: datetime
) -> WorkingEntry | None:
    """The note, without counting as a use."""
    row = (await session.execute(FIND, {**_here(desk, now), "kind": str(kind), "key": key})).one_or_none()
    return _note(row) if row else None


async def use(
    session: Session, desk: WorkingScope, kind: WorkingKind, key: str, *, now: datetime
) -> WorkingEntry | None:
    """The note, used at `now`: the caps let go of it last."""
    row = (await session.execute(USE, {**_here(desk, now), "kind": str(kind), "key": key})).one_or_none()
    return _note(row) if row else None


async def latest(
    session: Session, desk: WorkingScope, kind: WorkingKind, *, limit: int, now: datetime
) -> list[WorkingEntry]:
    """The newest notes of a kind, newest first."""
    rows = await session.execute(LATEST, {**_here(desk, now), "kind": str(kind), "limit": limit})
    return [_note(row) for row in rows]


async def mind(session: Session, desk: WorkingScope, *, now: datetime) -> WorkingMemory:
    """All that the session holds, without counting as a use."""
    notes = [_note(row) for row in await session.execute(ALL, _here(desk, now))]
    of = {kind: [note for note in notes if note.kind is kind] for kind in WorkingKind}
    return WorkingMemory(
        of[WorkingKind.TURN],
        of[WorkingKind.THOUGHT],
        {note.key: note for note in sorted(of[WorkingKind.ITEM], key=lambda note: note.key)},
        next(iter(of[WorkingKind.GOAL]), None),
        next(iter(of[WorkingKind.SESSION]), None),
    )


async def remove(session: Session, desk: WorkingScope, kind: WorkingKind, key: str) -> bool:
    """Was there such a note?"""
    values = {"workspace": desk.workspace_id, "session": desk.session_id, "kind": str(kind), "key": key}
    return bool((await session.execute(REMOVE, values)).rowcount)


async def clear(session: Session, desk: WorkingScope) -> int:
    """How many notes of the session went."""
    values = {"workspace": desk.workspace_id, "session": desk.session_id}
    return (await session.execute(CLEAR, values)).rowcount


async def erase(session: Session, scope: Scope, channel: str | None) -> int:
    """How many notes went, of all sessions that have every given id (and the channel, if one is given)."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}
    return (await session.execute(ERASE, {"workspace": scope.workspace_id, **ids, "channel": channel})).rowcount


async def sweep(session: Session, at: datetime, *, batch: int) -> int:
    """How many notes of all workspaces went: those that had expired by `at`, at most `batch`. For the worker's role."""
    return int(await session.scalar(SWEEP, {"at": at, "batch": batch}) or 0)


async def size_bytes(session: Session) -> int:
    """What the table and its indexes take, of all workspaces together."""
    return int(await session.scalar(BYTES) or 0)


def _here(desk: WorkingScope, now: datetime) -> dict[str, Any]:
    return {"workspace": desk.workspace_id, "session": desk.session_id, "now": now}


def _note(row: Any) -> WorkingEntry:
    return WorkingEntry(
        WorkingKind(row.kind), row.key, row.value, row.seq, row.created_at, row.last_used_at, row.expires_at
    )
