"""Statements on working memory.

The table is UNLOGGED: read on the primary only, empty after a crash. Reads filter by expiry with the caller's clock;
the sweeper deletes the rows. An advisory lock serialises the writers of one session, so that the caps are exact; a
transaction that takes other locks takes this one last.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import DateTime, bindparam, text

from service.domain.scope import Scope
from service.domain.text import CleanText
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.template import typed_text
from service.working.values import WorkingEntry, WorkingKind, session_id

MAX_ENTRIES: dict[WorkingKind, int] = {
    "item": 256,
    "turn": 100,
    "thought": 100,
    "goal": 1,
}
"""The most entries of a session; beyond that the least recently used, or the oldest, is removed."""

# Every statement on one session finds its few pages by the primary key, pk_working_item.

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('working:' || CAST(:name AS text), 0))")

ENTRY = "kind, key, value, seq AS version, created_at, expires_at"

PUT = typed_text(f"""
    INSERT INTO working_item (workspace_id, session_id, kind, key, user_id, agent_id, channel, conversation_id, turn_id,
                              value, last_used_at, expires_at)
    VALUES (:workspace, :session, :kind, :key, :user_id, :agent_id, :channel, :conversation_id, :turn_id,
            CAST(:value AS jsonb), :now, :expires_at)
    ON CONFLICT (workspace_id, session_id, kind, key) DO UPDATE
        SET value = excluded.value, seq = excluded.seq, last_used_at = excluded.last_used_at,
            expires_at = excluded.expires_at, turn_id = excluded.turn_id,
            created_at = CASE WHEN working_item.expires_at <= :now THEN excluded.created_at
                              ELSE working_item.created_at END
    RETURNING {ENTRY}
""").bindparams(bindparam("expires_at", type_=DateTime(timezone=True)))  # noqa: S608 - no user input

# Deletes expired entries, and all others but the `max_entries` used last; reading an item is a use.
TRIM = typed_text("""
    DELETE FROM working_item
    WHERE workspace_id = :workspace AND session_id = :session AND kind = :kind
      AND (expires_at <= :now OR key = ANY (ARRAY(
          SELECT key FROM working_item
          WHERE workspace_id = :workspace AND session_id = :session AND kind = :kind AND expires_at > :now
          ORDER BY last_used_at DESC, seq DESC OFFSET :max_entries)))
""")

USE = typed_text(f"""
    UPDATE working_item SET last_used_at = :now
    WHERE workspace_id = :workspace AND session_id = :session AND kind = :kind AND key = :key AND expires_at > :now
    RETURNING {ENTRY}
""")  # noqa: S608 - no user input

LATEST = typed_text(f"""
    SELECT {ENTRY} FROM working_item
    WHERE workspace_id = :workspace AND session_id = :session AND kind = :kind AND expires_at > :now
    ORDER BY seq DESC LIMIT :limit
""")  # noqa: S608 - no user input

ALL = typed_text(f"""
    SELECT {ENTRY} FROM working_item
    WHERE workspace_id = :workspace AND session_id = :session AND expires_at > :now
    ORDER BY seq DESC
""")  # noqa: S608 - no user input

REMOVE = text("""
    DELETE FROM working_item
    WHERE workspace_id = :workspace AND session_id = :session AND kind = :kind AND key = :key
""")
CLEAR = text("DELETE FROM working_item WHERE workspace_id = :workspace AND session_id = :session")

# A session of a run is named after the run, or after the id of its conversation; without a user, those of users' chats
# of that name stay. Notes of a conversation belong to its user and agent even if they do not say so; those found only
# by its name do if no other conversation has that name.
ERASE = text("""
    DELETE FROM working_item w
    WHERE w.workspace_id = :workspace AND (CAST(:channel AS text) IS NULL OR w.channel = :channel) AND (
        ((CAST(:user_id AS text) IS NULL OR w.user_id = :user_id)
         AND (CAST(:agent_id AS text) IS NULL OR w.agent_id = :agent_id)
         AND (CAST(:run_id AS text) IS NULL OR w.conversation_id IN (
             SELECT c.id::text FROM conversation c WHERE c.workspace_id = :workspace AND c.external_id = :run_id
                 AND (c.is_run OR CAST(:user_id AS text) IS NOT NULL))
           OR w.conversation_id = :run_id AND (CAST(:user_id AS text) IS NOT NULL OR NOT EXISTS (
               SELECT FROM conversation c WHERE c.workspace_id = :workspace AND c.external_id = :run_id
                 AND NOT c.is_run AND c.user_id = w.user_id))))
        OR EXISTS (
            SELECT FROM conversation c
            WHERE c.workspace_id = :workspace AND w.conversation_id IN (c.id::text, c.external_id)
              AND (CAST(:user_id AS text) IS NULL OR c.user_id = :user_id)
              AND (CAST(:agent_id AS text) IS NULL OR c.agent_id = :agent_id)
              AND (CAST(:run_id AS text) IS NULL
                   OR c.external_id = :run_id AND (c.is_run OR CAST(:user_id AS text) IS NOT NULL))
              AND (w.conversation_id = c.id::text OR (
                  coalesce(w.user_id, c.user_id) IS NOT DISTINCT FROM c.user_id AND NOT EXISTS (
                      SELECT FROM conversation other
                      WHERE other.workspace_id = :workspace AND other.external_id = c.external_id
                        AND other.user_id IS DISTINCT FROM c.user_id)))))
""")

# Deletes the notes of one conversation: those of its user and agent under its name, or those with fewer ids that can
# belong to nobody else.
ERASE_OF_CONVERSATION = text("""
    DELETE FROM working_item w USING conversation c
    WHERE c.workspace_id = :workspace AND c.id = :conversation AND w.workspace_id = :workspace
      AND (w.conversation_id = c.id::text OR (w.conversation_id = c.external_id AND (
          (w.user_id IS NOT DISTINCT FROM c.user_id AND w.agent_id IS NOT DISTINCT FROM c.agent_id)
          OR (coalesce(w.user_id, c.user_id) IS NOT DISTINCT FROM c.user_id AND NOT EXISTS (
              SELECT FROM conversation other
              WHERE other.workspace_id = :workspace AND other.external_id = c.external_id AND other.id <> c.id)))))
""")

SWEEP = text("SELECT sweep_working(:at, :batch)")
BYTES = text("SELECT pg_total_relation_size('working_item')")


async def lock(session: Session, scope: Scope) -> None:
    """Makes this transaction the only writer of the session until it ends. Alone in its statement, so that the next
    statement sees what the previous writer committed."""
    await session.execute(LOCK, {"name": f"{scope.workspace_id}|{session_id(scope)}"})


async def put(
    session: Session,
    scope: Scope,
    kind: WorkingKind,
    key: str,
    value: Any,
    *,
    now: datetime,
    ttl_s: float,
    turn_id: UUID | None = None,
) -> WorkingEntry:
    """Stores an entry, replacing the one with its key, and removes those beyond MAX_ENTRIES. Under `lock`."""
    common = {**_parameters(scope, now), "kind": kind}
    new = {
        **common,
        "key": key,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "channel": scope.channel,
        "conversation_id": scope.run_id,
        "turn_id": turn_id,
        "value": json.dumps(value, ensure_ascii=False),
        "expires_at": now + timedelta(seconds=ttl_s),
    }
    [stored] = await direct.fetch(session, PUT, new)
    await session.execute(TRIM, {**common, "max_entries": MAX_ENTRIES[kind]})
    return _entry(stored)


async def put_turn(
    session: Session,
    scope: Scope,
    role: str,
    content: CleanText,
    name: str | None,
    timestamp: datetime | None,
    *,
    copied: tuple[UUID, int] | None = None,
    now: datetime,
    ttl_s: float,
) -> WorkingEntry:
    """Stores a turn, inside the caller's transaction, whose last lock this takes. `copied`: the id and index of the
    stored turn that it copies, which replaces an earlier copy and is deleted with that turn."""
    turn_id, turn_index = copied or (None, None)
    value = {
        "role": role,
        "content": content,
        "name": name,
        "timestamp": timestamp.isoformat() if timestamp else None,
        "turn_id": str(turn_id) if turn_id else None,
        "turn_index": turn_index,
    }
    await lock(session, scope)
    return await put(session, scope, "turn", str(turn_id or uuid4()), value, now=now, ttl_s=ttl_s, turn_id=turn_id)


async def use(session: Session, scope: Scope, kind: WorkingKind, key: str, *, now: datetime) -> WorkingEntry | None:
    """The entry, now the most recently used of its kind."""
    row = (await session.execute(USE, {**_parameters(scope, now), "kind": kind, "key": key})).one_or_none()
    return _entry(row) if row else None


async def latest(session: Session, scope: Scope, kind: WorkingKind, *, limit: int, now: datetime) -> list[WorkingEntry]:
    """Entries of a kind, newest first."""
    values = {**_parameters(scope, now), "kind": kind, "limit": limit}
    return await direct.page(session, LATEST, values, _entry)


async def contents(session: Session, scope: Scope, *, now: datetime) -> list[WorkingEntry]:
    """All entries of the session, newest first; this does not count as a use."""
    return [_entry(row) for row in await session.execute(ALL, _parameters(scope, now))]


async def remove(session: Session, scope: Scope, kind: WorkingKind, key: str) -> bool:
    """Deletes the entry; whether it existed."""
    values = {"session": session_id(scope), "kind": kind, "key": key}
    return bool((await session.execute(REMOVE, values)).rowcount)


async def clear(session: Session, scope: Scope) -> int:
    """Deletes all entries of the session; returns how many."""
    values = {"session": session_id(scope)}
    return (await session.execute(CLEAR, values)).rowcount


async def erase(session: Session, scope: Scope, channel: str | None) -> int:
    """Deletes the entries of all sessions with every given id (and the channel, if given); returns how many."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}
    return (await session.execute(ERASE, {**ids, "channel": channel})).rowcount


async def erase_of_conversation(session: Session, conversation_id: UUID) -> int:
    """Deletes the entries of the sessions of a conversation, which must still exist; returns how many."""
    values = {"conversation": conversation_id}
    return (await session.execute(ERASE_OF_CONVERSATION, values)).rowcount


async def sweep(session: Session, at: datetime, *, batch: int) -> int:
    """Deletes at most `batch` entries of all workspaces that had expired by `at`; returns how many. Needs the worker's
    role."""
    return int(await session.scalar(SWEEP, {"at": at, "batch": batch}) or 0)


async def size_bytes(session: Session) -> int:
    """Size of the table with its indexes, of all workspaces together."""
    return int(await session.scalar(BYTES) or 0)


def _parameters(scope: Scope, now: datetime) -> dict[str, Any]:
    return {"workspace": scope.workspace_id, "session": session_id(scope), "now": now}


_entry = direct.reader(WorkingEntry)


GOAL_DESCRIPTION = typed_text("""
    SELECT description FROM goal WHERE workspace_id = :workspace AND id = :goal
        AND user_id IS NOT DISTINCT FROM :user_id AND agent_id IS NOT DISTINCT FROM :agent_id
""")


async def goal_description(session: Session, scope: Scope, goal_id: UUID) -> str | None:
    """The description of a goal of this user and agent; None without such a goal."""
    values = {"goal": goal_id, "user_id": scope.user_id, "agent_id": scope.agent_id}
    description: str | None = await session.scalar(GOAL_DESCRIPTION, values)
    return description
