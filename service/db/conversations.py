"""How are conversations and their turns kept?

A conversation is known by its user, agent and external id, so two users with a run "S1" have two of them (A13).
Turn indexes are given under the scope lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, case, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from uuid_utils.compat import uuid7

from service.db import turns as rows
from service.db.engine import Session
from service.db.tables import Conversation, MemorySource, Turn
from service.db.turns import NewTurn, StoredTurn
from service.domain import conversation as domain
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.text import CleanText
from service.language.context import Turn as Said


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
    session: Session,
    scope: Scope,
    conversation_id: UUID,
    turns: Sequence[NewTurn],
    *,
    generation: int,
    consolidated: bool = False,
) -> list[StoredTurn]:
    """Adds turns at the end, in order; a consolidated conversation becomes unconsolidated again (R9.08), unless the
    facts of these turns are `consolidated` with them. Older turns that still wait for theirs go on waiting."""
    whole = (Conversation.turn_count == 0) | Conversation.consolidated_at.is_not(None)
    done = case((whole, func.now()), else_=None) if consolidated else None
    counted = (
        update(Conversation)
        .where(Conversation.workspace_id == scope.workspace_id, Conversation.id == conversation_id)
        .values({**TOUCHED, "turn_count": Conversation.turn_count + len(turns), "consolidated_at": done})
        .returning(Conversation.turn_count, Conversation.external_id)
    )
    row = (await session.execute(counted)).one()
    first = row.turn_count - len(turns)
    stored = [StoredTurn(uuid7(), conversation_id, first + place) for place in range(len(turns))]
    own = replace(scope, run_id=row.external_id)
    await rows.add(session, own, list(zip(turns, stored, strict=True)), generation=generation)
    return stored


async def put(session: Session, there: domain.Conversation, new: NewTurn, index: int, *, generation: int) -> StoredTurn:
    """Adds one turn at a place that is free; the conversation's count reaches beyond it. Under the scope lock."""
    place = StoredTurn(uuid7(), there.id, index)
    await session.execute(
        update(Conversation)
        .where(Conversation.workspace_id == there.scope.workspace_id, Conversation.id == there.id)
        .values({**TOUCHED, "turn_count": func.greatest(Conversation.turn_count, index + 1)})
    )
    await rows.add(session, there.scope, [(new, place)], generation=generation)
    return place


TOUCHED: Mapping[str, Any] = MappingProxyType(
    {
        "consolidated_at": None,
        "patterns_extracted": False,
        "version": Conversation.version + 1,
        "updated_at": func.now(),
    }
)
"""What a new turn does to its conversation."""


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


@dataclass(frozen=True, slots=True)
class Source:
    """That a memory came from a turn, and from which characters of it: the half-open span, where it is known."""

    memory_id: UUID
    turn_id: UUID
    start: int | None = None
    end: int | None = None


async def link(session: Session, scope: Scope, sources: Sequence[Source]) -> None:
    """Says which turn a memory came from, each pair once; of several spans the first."""
    if sources:
        pairs: dict[tuple[UUID, UUID], Source] = {}
        for each in sources:
            pairs.setdefault((each.memory_id, each.turn_id), each)
        rows = [
            {
                "workspace_id": scope.workspace_id,
                "memory_id": memory,
                "turn_id": turn,
                "start": each.start,
                "end": each.end,
            }
            for (memory, turn), each in sorted(pairs.items(), key=itemgetter(0))
        ]
        await session.execute(upsert(MemorySource).on_conflict_do_nothing(), rows)


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


# -- read and changed by themselves ---------------------------------------------------------------------------------


async def create(
    session: Session,
    scope: Scope,
    *,
    title: CleanText | None,
    started_at: datetime,
    metadata: Mapping[str, Any],
) -> domain.Conversation | None:
    """The new conversation; None when the user and agent have one of this name (`scope.run_id`) already."""
    row = {
        "workspace_id": scope.workspace_id,
        "id": uuid7(),
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "channel": scope.channel,
        "external_id": scope.run_id,
        "title": title,
        "started_at": started_at,
        "metadata": dict(metadata),
    }
    made = upsert(Conversation).values(row).on_conflict_do_nothing().returning(*COLUMNS)
    found = (await session.execute(made)).one_or_none()
    return None if found is None else _conversation(found)


async def get(session: Session, workspace_id: UUID, conversation_id: UUID) -> domain.Conversation | None:
    here = Conversation.workspace_id == workspace_id, Conversation.id == conversation_id
    row = (await session.execute(select(*COLUMNS).where(*here))).one_or_none()
    return None if row is None else _conversation(row)


async def named(
    session: Session, workspace_id: UUID, external_id: str, *, user_id: str | None, agent_id: str | None, limit: int = 2
) -> list[domain.Conversation]:
    """Conversations of this name, of the given user and agent where one is given. Uses ix_conversation_external."""
    query = select(*COLUMNS).where(Conversation.workspace_id == workspace_id, Conversation.external_id == external_id)
    if user_id is not None:
        query = query.where(Conversation.user_id == user_id)
    if agent_id is not None:
        query = query.where(Conversation.agent_id == agent_id)
    return [_conversation(row) for row in await session.execute(query.order_by(Conversation.id).limit(limit))]


async def exactly(session: Session, scope: Scope) -> domain.Conversation | None:
    """The one conversation of exactly this user, agent and name."""
    row = await session.execute(
        select(*COLUMNS).where(
            Conversation.workspace_id == scope.workspace_id,
            Conversation.user_id.is_not_distinct_from(scope.user_id),
            Conversation.agent_id.is_not_distinct_from(scope.agent_id),
            Conversation.external_id == scope.run_id,
        )
    )
    found = row.one_or_none()
    return None if found is None else _conversation(found)


async def listed(
    session: Session,
    scope: Scope,
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
    include_archived: bool = False,
    consolidated: bool | None = None,
) -> list[domain.Conversation]:
    """Conversations of a scope, the newest first, behind the key `after`."""
    named = {"user_id": scope.user_id, "agent_id": scope.agent_id, "external_id": scope.run_id}
    given = [getattr(Conversation, name) == value for name, value in named.items() if value is not None]
    query = select(*COLUMNS).where(
        Conversation.workspace_id == scope.workspace_id,
        Conversation.channel.in_((scope.channel, GLOBAL_CHANNEL)),
        *given,
    )
    if not include_archived:
        query = query.where(~Conversation.archived)
    if consolidated is not None:
        query = query.where(Conversation.consolidated_at.is_not(None) == consolidated)
    if after is not None:
        at, last = after
        older = and_(Conversation.created_at == at, Conversation.id < last)
        query = query.where(or_(Conversation.created_at < at, older))
    order = Conversation.created_at.desc(), Conversation.id.desc()
    return [_conversation(row) for row in await session.execute(query.order_by(*order).limit(limit))]


async def lock(session: Session, workspace_id: UUID, conversation_id: UUID) -> domain.Conversation | None:
    """The conversation as it is, its row held until the transaction ends."""
    here = Conversation.workspace_id == workspace_id, Conversation.id == conversation_id
    row = (await session.execute(select(*COLUMNS).where(*here).with_for_update())).one_or_none()
    return None if row is None else _conversation(row)


async def change(
    session: Session, workspace_id: UUID, conversation_id: UUID, values: Mapping[str, Any], *, now: datetime
) -> domain.Conversation:
    """Sets columns and counts the version up. The turns follow where they repeat a column (channel, archived)."""
    here = Conversation.workspace_id == workspace_id, Conversation.id == conversation_id
    changed = {**values, "version": Conversation.version + 1, "updated_at": now}
    row = (await session.execute(update(Conversation).where(*here).values(changed).returning(*COLUMNS))).one()
    if "archived" in values:
        theirs = Turn.workspace_id == workspace_id, Turn.conversation_id == conversation_id
        await session.execute(update(Turn).where(*theirs).values(archived=values["archived"]))
    return _conversation(row)


async def counts(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> dict[UUID, int]:
    """How many turns each conversation holds."""
    held = select(Turn.conversation_id, func.count()).where(
        Turn.workspace_id == workspace_id, Turn.conversation_id.in_(ids)
    )
    return {row[0]: row[1] for row in await session.execute(held.group_by(Turn.conversation_id))}


COLUMNS = tuple(Conversation.__table__.c)


def _conversation(row: Row[Any]) -> domain.Conversation:
    return domain.Conversation(
        id=row.id,
        scope=Scope(row.workspace_id, row.user_id, row.agent_id, row.external_id, row.channel),
        title=row.title,
        started_at=row.started_at,
        next_index=row.turn_count,
        consolidated_at=row.consolidated_at,
        patterns_extracted=row.patterns_extracted,
        archived=row.archived,
        metadata=row.metadata,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
