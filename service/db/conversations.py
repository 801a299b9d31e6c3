"""How are conversations and their turns kept?

A conversation is known by its user, agent and external id, so two users with a run "S1" have two of them (A13).
Turn indexes are given under the scope lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import case, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from uuid_utils.compat import uuid7

from service.db.engine import Session
from service.db.tables import Conversation, MemorySource, Turn
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.language.context import Turn as Said


@dataclass(frozen=True, slots=True)
class NewTurn:
    """What was said, redacted."""

    role: str
    speaker: str | None
    text: CleanText
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn's identity and its place in the conversation."""

    id: UUID
    conversation_id: UUID
    index: int


async def open_conversation(session: Session, scope: Scope, external_id: str, started_at: datetime) -> UUID:
    """The conversation's id; made when it is new."""
    row = {
        "workspace_id": scope.workspace_id,
        "id": uuid7(),
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "channel": scope.channel,
        "external_id": external_id,
        "started_at": started_at,
    }
    made = upsert(Conversation).values(row)
    made = made.on_conflict_do_update(  # touches the row so that RETURNING has it
        constraint="uq_conversation_workspace_id_user_id_agent_id_external_id",
        set_={"external_id": made.excluded.external_id},
    )
    found: UUID = (await session.execute(made.returning(Conversation.id))).scalar_one()
    return found


async def append(
    session: Session, scope: Scope, conversation_id: UUID, turns: Sequence[NewTurn], *, consolidated: bool = False
) -> list[StoredTurn]:
    """Adds turns at the end, in order; a consolidated conversation becomes unconsolidated again (R9.08), unless the
    facts of these turns are `consolidated` with them. Older turns that still wait for theirs go on waiting."""
    whole = (Conversation.turn_count == 0) | Conversation.consolidated_at.is_not(None)
    done = case((whole, func.now()), else_=None) if consolidated else None
    counted = (
        update(Conversation)
        .where(Conversation.workspace_id == scope.workspace_id, Conversation.id == conversation_id)
        .values(turn_count=Conversation.turn_count + len(turns), consolidated_at=done, patterns_extracted=False)
        .returning(Conversation.turn_count)
    )
    first = (await session.execute(counted)).scalar_one() - len(turns)
    stored = [StoredTurn(uuid7(), conversation_id, first + place) for place in range(len(turns))]
    await session.execute(insert(Turn), [_row(scope, turn, place) for turn, place in zip(turns, stored, strict=True)])
    return stored


async def mark_consolidated(session: Session, scope: Scope, turns: Sequence[StoredTurn]) -> None:
    """Says that the facts of these turns are extracted, if they are all there are (R9.08)."""
    await session.execute(
        update(Conversation)
        .where(Conversation.workspace_id == scope.workspace_id, Conversation.id == turns[0].conversation_id)
        .where(Conversation.turn_count == len(turns))
        .values(consolidated_at=func.now())
    )


def fresh_name() -> str:
    """The external id of a conversation that the caller did not name."""
    return str(uuid7())


async def link(session: Session, scope: Scope, sources: Sequence[tuple[UUID, UUID]]) -> None:
    """Says which turn a memory came from: pairs of memory id and turn id, each pair once."""
    if sources:
        rows = [
            {"workspace_id": scope.workspace_id, "memory_id": memory, "turn_id": turn}
            for memory, turn in sorted(set(sources))
        ]
        await session.execute(upsert(MemorySource).on_conflict_do_nothing(), rows)


def _row(scope: Scope, turn: NewTurn, place: StoredTurn) -> dict[str, Any]:
    return {
        "workspace_id": scope.workspace_id,
        "id": place.id,
        "conversation_id": place.conversation_id,
        "turn_index": place.index,
        "user_id": scope.user_id,
        "channel": scope.channel,
        "role": turn.role,
        "speaker": turn.speaker,
        "content": turn.text,
        "content_hash": hashlib.sha256(turn.text.encode()).hexdigest(),
        "timestamp": turn.timestamp,
    }


@dataclass(frozen=True, slots=True)
class Tail:
    """How many turns a conversation has, and the last of them, oldest first."""

    count: int
    turns: tuple[Said, ...]


async def tail(session: Session, scope: Scope, external_id: str, *, limit: int) -> Tail:
    """The end of the conversation that a request goes on with; nothing for a new one."""
    owner = (
        Conversation.workspace_id == scope.workspace_id,
        Conversation.user_id.is_not_distinct_from(scope.user_id),
        Conversation.agent_id.is_not_distinct_from(scope.agent_id),
        Conversation.external_id == external_id,
    )
    row = (await session.execute(select(Conversation.id, Conversation.turn_count).where(*owner))).one_or_none()
    if row is None:
        return Tail(0, ())
    turns = await session.execute(
        select(Turn.content, Turn.speaker, Turn.role)
        .where(Turn.workspace_id == scope.workspace_id, Turn.conversation_id == row.id)
        .order_by(Turn.turn_index.desc())
        .limit(limit)
    )
    said = [Said(CleanText(text), speaker or role) for text, speaker, role in turns]
    return Tail(row.turn_count, tuple(reversed(said)))


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn read back."""

    place: StoredTurn
    role: str
    speaker: str | None
    text: CleanText
    timestamp: datetime


async def kept(
    session: Session, workspace_id: UUID, conversation_id: UUID, first: int, last: int
) -> tuple[Scope, list[KeptTurn]] | None:
    """Scope (without a run) and those of the turns `first` to `last` that are there, in order; None when none is."""
    owner = select(Conversation.user_id, Conversation.agent_id, Conversation.channel)
    here = owner.where(Conversation.workspace_id == workspace_id, Conversation.id == conversation_id)
    row = (await session.execute(here)).one_or_none()
    if row is None:
        return None
    turns = await session.execute(
        select(Turn.id, Turn.turn_index, Turn.role, Turn.speaker, Turn.content, Turn.timestamp)
        .where(Turn.workspace_id == workspace_id, Turn.conversation_id == conversation_id)
        .where(Turn.turn_index.between(first, last))
        .order_by(Turn.turn_index)
    )
    kept = [
        KeptTurn(StoredTurn(row_id, conversation_id, index), role, speaker, CleanText(text), timestamp)
        for row_id, index, role, speaker, text, timestamp in turns
    ]
    return (Scope(workspace_id, row.user_id, row.agent_id, channel=row.channel), kept) if kept else None
