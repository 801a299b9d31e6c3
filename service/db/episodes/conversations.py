"""How are conversations and their turns kept?

A conversation is known by its user, agent and external id, so two users with a run "S1" have two of them (A13).
Turn indexes are given under the scope lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Integer, Row, Uuid, and_, bindparam, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from uuid_utils.compat import uuid7

from service.db import direct
from service.db.direct import NewRows
from service.db.engine import Session
from service.db.episodes import turns as spoken
from service.db.episodes.turns import NewTurn, StoredTurn
from service.db.tables import ConversationRow, TurnRow
from service.domain import conversation as domain
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.text import CleanText
from service.language.context import ContextTurn

INSERT = text("""
    INSERT INTO conversation (workspace_id, id, user_id, agent_id, channel, external_id, started_at, turn_count,
                              consolidated_at)
    VALUES (:workspace_id, :id, :user_id, :agent_id, :channel, :external_id, :started_at, :turn_count, :consolidated_at)
""")

# A consolidated one becomes unconsolidated again by new turns (R9.08), unless the facts of these are extracted with
# them; older turns that still wait for theirs go on waiting.
# Uses uq_conversation_workspace_id_user_id_agent_id_external_id.
GO_ON = text("""
    INSERT INTO conversation AS c (workspace_id, id, user_id, agent_id, channel, external_id, started_at, turn_count,
                                   consolidated_at)
    VALUES (:workspace_id, :id, :user_id, :agent_id, :channel, :external_id, :started_at, :turn_count, :consolidated_at)
    ON CONFLICT ON CONSTRAINT uq_conversation_workspace_id_user_id_agent_id_external_id DO UPDATE
    SET turn_count = c.turn_count + :turn_count, patterns_extracted = false, version = c.version + 1,
        updated_at = now(),
        consolidated_at = CASE WHEN c.turn_count = 0 OR c.consolidated_at IS NOT NULL THEN :consolidated_at END
    RETURNING id, turn_count
""").bindparams(
    bindparam("workspace_id", type_=Uuid()),
    bindparam("id", type_=Uuid()),
    bindparam("started_at", type_=DateTime(timezone=True)),
    bindparam("turn_count", type_=Integer()),
    bindparam("consolidated_at", type_=DateTime(timezone=True)),
)


async def go_on(
    session: Session,
    scope: Scope,
    external_id: str | None,
    turns: Sequence[NewTurn],
    *,
    generation: int,
    consolidated_at: datetime | None = None,
) -> tuple[list[StoredTurn], tuple[NewRows, ...]]:
    """Gives turns, at least one, their places at the end of a conversation, in order; begins it when it is new. Under
    the scope lock. The rows are the caller's to insert before the transaction ends, with whatever goes along, and
    before what names the conversation.

    `external_id` None: a conversation of its own, one of the rows. `consolidated_at`: now, when the facts of these
    turns are stored with them.
    """
    name = external_id or fresh_name()
    new: dict[str, Any] = {
        "workspace_id": scope.workspace_id,
        "id": uuid7(),
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "channel": scope.channel,
        "external_id": name,
        "started_at": turns[0].timestamp,
        "turn_count": len(turns),
        "consolidated_at": consolidated_at,
    }
    begun: tuple[NewRows, ...] = ()
    if external_id is None:
        begun, here, first = (NewRows(INSERT, [new]),), new["id"], 0
    else:
        [row] = await direct.fetch(session, GO_ON, new)
        here, first = row.id, row.turn_count - len(turns)
    stored = [StoredTurn(uuid7(), here, first + place) for place in range(len(turns))]
    said = list(zip(turns, stored, strict=True))
    return stored, (*begun, *spoken.new_rows(replace(scope, run_id=name), said, generation=generation))


def fresh_name() -> str:
    """The external id of a conversation that the caller did not name."""
    return str(uuid7())


async def put(session: Session, there: domain.Conversation, new: NewTurn, index: int, *, generation: int) -> StoredTurn:
    """Adds one turn at a place that is free; the conversation's count reaches beyond it. Under the scope lock."""
    place = StoredTurn(uuid7(), there.id, index)
    await session.execute(
        update(ConversationRow)
        .where(ConversationRow.workspace_id == there.scope.workspace_id, ConversationRow.id == there.id)
        .values({**TOUCHED, "turn_count": func.greatest(ConversationRow.turn_count, index + 1)})
    )
    await direct.insert(session, *spoken.new_rows(there.scope, [(new, place)], generation=generation))
    return place


TOUCHED: Mapping[str, Any] = MappingProxyType(
    {
        "consolidated_at": None,
        "patterns_extracted": False,
        "version": ConversationRow.version + 1,
        "updated_at": func.now(),
    }
)
"""What a new turn does to its conversation."""


HOLD = text("SELECT id FROM turn WHERE workspace_id = :workspace AND id = ANY (:ids) ORDER BY id FOR KEY SHARE")


async def hold(session: Session, scope: Scope, turns: Sequence[StoredTurn]) -> bool:
    """Keeps these turns until the transaction ends. Are all of them there?"""
    values = {"workspace": scope.workspace_id, "ids": [each.id for each in turns]}
    return len(await direct.fetch(session, HOLD, values)) == len(turns)


async def mark_consolidated(session: Session, scope: Scope, turns: Sequence[StoredTurn]) -> None:
    """Says that the facts of these turns are extracted, if they are all there are (R9.08)."""
    await session.execute(
        update(ConversationRow)
        .where(ConversationRow.workspace_id == scope.workspace_id, ConversationRow.id == turns[0].conversation_id)
        .where(ConversationRow.turn_count == len(turns))
        .values(consolidated_at=func.now())
    )


@dataclass(frozen=True, slots=True)
class Tail:
    """How many turns a conversation has, and the last of them, oldest first."""

    count: int
    turns: tuple[ContextTurn, ...]


async def tail(session: Session, scope: Scope, external_id: str, *, limit: int) -> Tail:
    """The end of the conversation that a request goes on with; nothing for a new one."""
    owner = (
        ConversationRow.workspace_id == scope.workspace_id,
        ConversationRow.user_id.is_not_distinct_from(scope.user_id),
        ConversationRow.agent_id.is_not_distinct_from(scope.agent_id),
        ConversationRow.external_id == external_id,
    )
    row = (await session.execute(select(ConversationRow.id, ConversationRow.turn_count).where(*owner))).one_or_none()
    if row is None:
        return Tail(0, ())
    turns = await session.execute(
        select(TurnRow.content, TurnRow.speaker, TurnRow.role)
        .where(TurnRow.workspace_id == scope.workspace_id, TurnRow.conversation_id == row.id)
        .order_by(TurnRow.turn_index.desc())
        .limit(limit)
    )
    said = [ContextTurn(CleanText(text), speaker or role) for text, speaker, role in turns]
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
    owner = select(ConversationRow.user_id, ConversationRow.agent_id, ConversationRow.channel)
    here = owner.where(ConversationRow.workspace_id == workspace_id, ConversationRow.id == conversation_id)
    row = (await session.execute(here)).one_or_none()
    if row is None:
        return None
    turns = await session.execute(
        select(TurnRow.id, TurnRow.turn_index, TurnRow.role, TurnRow.speaker, TurnRow.content, TurnRow.timestamp)
        .where(TurnRow.workspace_id == workspace_id, TurnRow.conversation_id == conversation_id)
        .where(TurnRow.turn_index.between(first, last))
        .order_by(TurnRow.turn_index)
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
    made = upsert(ConversationRow).values(row).on_conflict_do_nothing().returning(*COLUMNS)
    found = (await session.execute(made)).one_or_none()
    return None if found is None else _conversation(found)


async def get(session: Session, workspace_id: UUID, conversation_id: UUID) -> domain.Conversation | None:
    here = ConversationRow.workspace_id == workspace_id, ConversationRow.id == conversation_id
    row = (await session.execute(select(*COLUMNS).where(*here))).one_or_none()
    return None if row is None else _conversation(row)


async def named(
    session: Session, workspace_id: UUID, external_id: str, *, user_id: str | None, agent_id: str | None, limit: int = 2
) -> list[domain.Conversation]:
    """Conversations of this name, of the given user and agent where one is given. Uses ix_conversation_external."""
    query = select(*COLUMNS).where(
        ConversationRow.workspace_id == workspace_id, ConversationRow.external_id == external_id
    )
    if user_id is not None:
        query = query.where(ConversationRow.user_id == user_id)
    if agent_id is not None:
        query = query.where(ConversationRow.agent_id == agent_id)
    return [_conversation(row) for row in await session.execute(query.order_by(ConversationRow.id).limit(limit))]


async def exactly(session: Session, scope: Scope) -> domain.Conversation | None:
    """The one conversation of exactly this user, agent and name."""
    row = await session.execute(
        select(*COLUMNS).where(
            ConversationRow.workspace_id == scope.workspace_id,
            ConversationRow.user_id.is_not_distinct_from(scope.user_id),
            ConversationRow.agent_id.is_not_distinct_from(scope.agent_id),
            ConversationRow.external_id == scope.run_id,
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
    given = [getattr(ConversationRow, name) == value for name, value in named.items() if value is not None]
    query = select(*COLUMNS).where(
        ConversationRow.workspace_id == scope.workspace_id,
        ConversationRow.channel.in_((scope.channel, GLOBAL_CHANNEL)),
        *given,
    )
    if not include_archived:
        query = query.where(~ConversationRow.archived)
    if consolidated is not None:
        query = query.where(ConversationRow.consolidated_at.is_not(None) == consolidated)
    if after is not None:
        at, last = after
        older = and_(ConversationRow.created_at == at, ConversationRow.id < last)
        query = query.where(or_(ConversationRow.created_at < at, older))
    order = ConversationRow.created_at.desc(), ConversationRow.id.desc()
    return [_conversation(row) for row in await session.execute(query.order_by(*order).limit(limit))]


async def lock(session: Session, workspace_id: UUID, conversation_id: UUID) -> domain.Conversation | None:
    """The conversation as it is, its row held until the transaction ends."""
    here = ConversationRow.workspace_id == workspace_id, ConversationRow.id == conversation_id
    row = (await session.execute(select(*COLUMNS).where(*here).with_for_update())).one_or_none()
    return None if row is None else _conversation(row)


async def change(
    session: Session, workspace_id: UUID, conversation_id: UUID, values: Mapping[str, Any], *, now: datetime
) -> domain.Conversation:
    """Sets columns and counts the version up. The turns follow where they repeat a column (channel, archived)."""
    here = ConversationRow.workspace_id == workspace_id, ConversationRow.id == conversation_id
    changed = {**values, "version": ConversationRow.version + 1, "updated_at": now}
    row = (await session.execute(update(ConversationRow).where(*here).values(changed).returning(*COLUMNS))).one()
    if "archived" in values:
        theirs = TurnRow.workspace_id == workspace_id, TurnRow.conversation_id == conversation_id
        await session.execute(update(TurnRow).where(*theirs).values(archived=values["archived"]))
    return _conversation(row)


async def counts(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> dict[UUID, int]:
    """How many turns each conversation holds."""
    held = select(TurnRow.conversation_id, func.count()).where(
        TurnRow.workspace_id == workspace_id, TurnRow.conversation_id.in_(ids)
    )
    return {row[0]: row[1] for row in await session.execute(held.group_by(TurnRow.conversation_id))}


COLUMNS = tuple(ConversationRow.__table__.c)


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
