"""Turns of conversations, written and read back.

A turn is written with its BM25 terms, its vector (if there is one yet) and a row in the conversation log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import ColumnElement, DateTime, Select, String, TextClause, Uuid, and_, bindparam, select, text
from uuid_utils.compat import uuid7

from service.domain.conversation import Turn
from service.domain.job import LONG_MAX_ATTEMPTS, NewJob
from service.domain.scope import Scope
from service.domain.text import CleanText, sha256
from service.language import lexemes
from service.postgres import direct, scopes
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.scopes import Condition, by_key
from service.postgres.tables import TURN, TURN_VECTOR, insert_into
from service.postgres.template import typed_text
from service.postgres.vectors import term_columns
from service.providers.protocols import Vector
from service.queue.statements import queue
from service.runtime.statements.deferred_vectors import DeferredVectors

TURNS_OF = "conversation_id"
"""In the payload of a job `embed`: the conversation whose turns lack vectors."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to store, redacted. `vector` None: a job makes it. `weights`: BM25 by term id; None: computed here."""

    role: str
    speaker: str | None
    text: CleanText
    timestamp: datetime
    vector: Vector | None = None
    token_count: int | None = None
    model: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[int, float] | None = None


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """The identity of a turn, and its index in the conversation."""

    id: UUID
    conversation_id: UUID
    index: int


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """Visible, unarchived turns of a scope, from `since` and before `until`, stored up to `stored_by`, of one
    conversation; with `now`, without those whose content has expired. `channels`: in addition to the scope's own and
    `_global`."""

    scope: Scope
    since: datetime | None = None
    until: datetime | None = None
    conversation_id: UUID | None = None
    channels: tuple[str, ...] = ()
    stored_by: datetime | None = None
    now: datetime | None = None

    def in_scope(self, alias: str) -> Condition:
        """The condition of the scope, on any table that has its columns."""
        return scopes.readable(alias, self.scope.private, self.channels, is_talk=True)

    def conditions(self, alias: str) -> Condition:
        """The other conditions, on `turn`."""
        condition = Condition(f"NOT {alias}.archived AND {alias}.shown IS DISTINCT FROM ''")
        if self.since is not None:
            condition &= Condition(f'{alias}."timestamp" >= :window_start', {"window_start": self.since})
        if self.until is not None:
            condition &= Condition(f'{alias}."timestamp" < :window_end', {"window_end": self.until})
        if self.stored_by is not None:
            condition &= Condition(f"{alias}.created_at <= :stored_by", {"stored_by": self.stored_by})
        if self.now is not None:
            condition &= scopes.without_expired_memories(alias, self.now)
        if self.conversation_id is not None:
            condition &= Condition(f"{alias}.conversation_id = :conversation", {"conversation": self.conversation_id})
        return condition


INSERT = insert_into("turn", by_default=("archived", "created_at", "shown"))
INSERT_VECTOR = insert_into("turn_vector", by_default=("created_at",), turn_id="id")
INSERT_LOG = insert_into("conversation_log", by_default=("recorded_at",), id="log_id", turn_id="id")


def new_rows(scope: Scope, turns: Sequence[tuple[NewTurn, StoredTurn]], *, generation: int) -> tuple[NewRows, ...]:
    """The rows of turns of a conversation, vectors, log lines, and the job that makes missing vectors; until then the
    turns are found by their words. `scope.run_id`: the conversation's external id."""
    jobs = [embed_job(place.conversation_id) for new, place in turns if new.vector is None][:1]
    rows = [
        {**_values(scope, new, place), "log_id": uuid7(), "generation": generation, "embedding": new.vector}
        for new, place in turns
    ]
    vectors = [row for row in rows if row["embedding"] is not None]
    return (
        NewRows(INSERT, rows),
        NewRows(INSERT_VECTOR, vectors),
        NewRows(INSERT_LOG, rows),
        queue.new_rows(scope.workspace_id, jobs),
    )


def embed_job(conversation_id: UUID) -> NewJob:
    """The job that makes the missing vectors of a conversation's turns."""
    return NewJob("embed", payload={TURNS_OF: str(conversation_id)}, max_attempts=LONG_MAX_ATTEMPTS)


async def page(session: Session, conversation_id: UUID, *, after: int | None = None, limit: int) -> list[Turn]:
    """Turns of a conversation in order, after index `after`."""
    query = _select().where(TURN.c.workspace_id == session.workspace_id, TURN.c.conversation_id == conversation_id)
    if after is not None:
        query = query.where(TURN.c.turn_index > after)
    return await direct.page(session, query.order_by(TURN.c.turn_index).limit(limit), None, _turn)


async def latest(session: Session, conversation_id: UUID, *, limit: int, now: datetime | None = None) -> list[Turn]:
    """The last turns of a conversation, in order; with `now`, without invisible and expired ones."""
    query = _select().where(TURN.c.workspace_id == session.workspace_id, TURN.c.conversation_id == conversation_id)
    if now is not None:
        query = query.where(TURN.c.shown.is_distinct_from(""), _of_nothing_expired(session.workspace_id, now))
    turns = await direct.page(session, query.order_by(TURN.c.turn_index.desc()).limit(limit), None, _turn)
    return turns[::-1]


async def recent(session: Session, wanted: TurnFilter, *, skip: int = 0, limit: int) -> list[Turn]:
    """The latest of these turns by timestamp, newest first, after the first `skip`."""
    query = _select().where((wanted.in_scope("turn") & wanted.conditions("turn")).clause)
    order = TURN.c.timestamp.desc(), TURN.c.conversation_id, TURN.c.turn_index.desc()
    return await direct.page(session, query.order_by(*order).offset(skip).limit(limit), None, _turn)


async def get_many(session: Session, ids: Sequence[UUID]) -> dict[UUID, Turn]:
    rows = await direct.fetch(session, BY_IDS, {"ids": list(ids)})
    return {row.id: _turn(row) for row in rows}


async def matching(session: Session, wanted: ColumnElement[bool], *, now: datetime) -> list[Turn]:
    """The visible, unarchived and unexpired turns of the workspace that meet a condition."""
    visible = ~TURN.c.archived, TURN.c.shown.is_distinct_from(""), _of_nothing_expired(session.workspace_id, now)
    query = _select().where(TURN.c.workspace_id == session.workspace_id, wanted, *visible)
    return [_turn(row) for row in await session.execute(query)]


COLUMNS = tuple(column for column in TURN.c if column.name not in {"terms", "bm25"})
OWN_COLUMNS = ", ".join(f't."{column.name}"' for column in COLUMNS)

# pk_turn, uq_turn_workspace_id_conversation_id_turn_index, pk_turn_vector. Without statistics an equality of ids may be
# served by ix_turn_channel, which reads the whole workspace.
BY_IDS = typed_text(f"""
    SELECT {OWN_COLUMNS},
           (SELECT l.id FROM turn l WHERE l.workspace_id = :workspace AND l.conversation_id = t.conversation_id
                AND l.turn_index > t.turn_index ORDER BY l.turn_index LIMIT 1) AS next_turn_id,
           EXISTS ({by_key("turn_vector", "t.id", key="turn_id")}) AS embedded
    FROM unnest(CAST(:ids AS uuid[])) AS x (id) CROSS JOIN LATERAL ({by_key("turn", "x.id")}) t
""")  # noqa: S608 - no user input

_later = TURN.alias()


def _select() -> Select[Any]:
    behind = and_(
        _later.c.workspace_id == TURN.c.workspace_id,
        _later.c.conversation_id == TURN.c.conversation_id,
        _later.c.turn_index > TURN.c.turn_index,
    )
    following = select(_later.c.id).where(behind).order_by(_later.c.turn_index).limit(1).scalar_subquery()
    return select(*COLUMNS, following.label("next_turn_id"), _has_vector().label("embedded"))


def _of_nothing_expired(workspace_id: UUID, now: datetime) -> ColumnElement[bool]:
    condition = scopes.without_expired_memories("turn", now) & Condition("true", {"workspace": workspace_id})
    return cast(ColumnElement[bool], condition.clause)


def _has_vector() -> Any:
    same_turn = TURN_VECTOR.c.workspace_id == TURN.c.workspace_id, TURN_VECTOR.c.turn_id == TURN.c.id
    return select(TURN_VECTOR.c.turn_id).where(*same_turn).exists()


def _values(scope: Scope, new: NewTurn, place: StoredTurn) -> dict[str, Any]:
    weights = lexemes.weights(new.text) if new.weights is None else new.weights
    return {
        **scope.columns,
        "is_run": scope.is_run,
        "id": place.id,
        "conversation_id": place.conversation_id,
        "turn_index": place.index,
        "role": new.role,
        "speaker": new.speaker,
        "content": new.text,
        "content_hash": sha256(new.text),
        "token_count": new.token_count,
        "model": new.model,
        "metadata": dict(new.metadata),
        **term_columns(weights),
        "timestamp": new.timestamp,
    }


def _visible(row: Any) -> CleanText:
    return CleanText(row.content if row.shown is None else row.shown)


_turn = direct.reader(
    Turn,
    index=lambda row: row.turn_index,
    scope=scopes.of_talk,
    text=_visible,
    hash=lambda row: row.content_hash,
    whole=lambda row: None if row.shown is None else CleanText(row.content),
    withdrawn=lambda row: (),
)

LATE_VECTORS = DeferredVectors(
    "turns",
    TURN,
    TURN_VECTOR,
    "turn_id",
    _visible,
    TURN.c.shown.is_distinct_from(""),
    copied=("workspace_id", "user_id", "agent_id", "run_id", "is_run", "channel"),
)


# Uses uq_turn_workspace_id_conversation_id_turn_index.
LATEST_TURNS = f"""
    SELECT {OWN_COLUMNS}, NULL AS next_turn_id, false AS embedded FROM turn t
    WHERE t.workspace_id = :workspace_id AND t.conversation_id = {{}} AND t.shown IS DISTINCT FROM ''
    ORDER BY t.turn_index DESC LIMIT :limit
"""  # noqa: S608 - no user input
LATEST_BEFORE = text(
    LATEST_TURNS.format(":conversation AND t.turn_index >= :first AND t.turn_index < :end")
).bindparams(bindparam("workspace_id", type_=Uuid()), bindparam("conversation", type_=Uuid()))

# The last conversation of a user or agent, if it has recent turns. Uses ix_turn_user or ix_turn_agent.
LATEST_OF_RECENT_CONVERSATION = text(
    LATEST_TURNS.format("""(
        SELECT n.conversation_id FROM turn n
        WHERE n.workspace_id = :workspace_id AND n.user_id IS NOT DISTINCT FROM :user
          AND n.agent_id IS NOT DISTINCT FROM :agent AND n.channel = :channel
          AND n.timestamp >= :since AND n.timestamp <= :until
        ORDER BY n.timestamp DESC, n.id DESC LIMIT 1
    )""")
).bindparams(
    bindparam("workspace_id", type_=Uuid()),
    bindparam("user", type_=String()),
    bindparam("agent", type_=String()),
    bindparam("since", type_=DateTime(timezone=True)),
    bindparam("until", type_=DateTime(timezone=True)),
)


async def latest_before(
    session: Session, conversation_id: UUID, end: int, *, first: int = 0, limit: int | None = None
) -> list[Turn]:
    """The last turns with indexes from `first` to before `end`, oldest first, without what follows them."""
    values = {"conversation": conversation_id, "first": first, "end": end, "limit": limit}
    return await _fetch_latest(session, LATEST_BEFORE, {"workspace_id": session.workspace_id, **values})


async def latest_of_recent_conversation(
    session: Session, scope: Scope, since: datetime, until: datetime, *, limit: int
) -> list[Turn]:
    """The last turns of the newest conversation of exactly this user, agent and channel in which something was said
    between the two moments."""
    values = {"user": scope.user_id, "agent": scope.agent_id, "channel": scope.channel, "since": since, "until": until}
    return await _fetch_latest(
        session, LATEST_OF_RECENT_CONVERSATION, {"workspace_id": scope.workspace_id, "limit": limit, **values}
    )


async def _fetch_latest(session: Session, statement: TextClause, values: Mapping[str, Any]) -> list[Turn]:
    return list(map(_turn, reversed(await direct.fetch(session, statement, values))))
