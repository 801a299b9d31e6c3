"""Conversations: their rows and the places of new turns in them.

A conversation is identified by its user, agent and external id, so two users with a run "S1" have two conversations;
behind a wall, its channel and whether it is a run's are part of the identity. Turn indexes are assigned under the scope
lock. See docs/decisions/015-conversation-identity.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, DateTime, Interval, bindparam, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on
from uuid_utils.compat import uuid7

from service.conversations.statements.turns import NewTurn, StoredTurn, new_rows
from service.domain.conversation import Conversation
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.postgres import direct, scopes
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.tables import CONVERSATION, TURN
from service.postgres.template import Template

NEW = """
    INSERT INTO conversation AS c (workspace_id, id, user_id, agent_id, channel, external_id, is_run, started_at,
                                   turn_count, consolidated_at, consolidated_turns)
    VALUES (:workspace_id, :id, :user_id, :agent_id, :channel, :external_id, :is_run, :started_at, :turn_count,
            :consolidated_at, :consolidated_turns)
"""
INSERT = text(NEW)

TOUCHED = "patterns_extracted = false, archived = false, version = c.version + 1"

# New turns make a consolidated conversation unconsolidated, unless their facts are stored with them; a conversation
# with older unread turns stays unconsolidated in any case.
EXTENDED = f"""
        turn_count = c.turn_count + :turn_count, {TOUCHED},
        consolidated_at = CASE WHEN c.turn_count = 0 OR c.consolidated_at IS NOT NULL
                               THEN CAST(:consolidated_at AS timestamptz) END,
        consolidated_turns = CASE WHEN (c.turn_count = 0 OR c.consolidated_at IS NOT NULL)
                                   AND CAST(:consolidated_at AS timestamptz) IS NOT NULL
                                  THEN c.turn_count + :turn_count ELSE c.consolidated_turns END
"""
# Citus refuses now() in a DO UPDATE.
CREATE = text(f"""
    {NEW} ON CONFLICT ON CONSTRAINT uq_conversation_identity DO UPDATE
    SET updated_at = excluded.updated_at, {EXTENDED} RETURNING id, turn_count, is_run
""")  # noqa: S608 - no user input

# The run or session that is meant if both exist, in the channel if there is one, else the first. Uses
# uq_conversation_identity.
EXTEND = Template(f"""
    UPDATE conversation AS c SET updated_at = now(), {EXTENDED}
    WHERE c.workspace_id = :workspace_id AND c.id = (
        SELECT id FROM conversation WHERE workspace_id = :workspace_id AND {{owner}} AND external_id = :external_id
        ORDER BY is_run = :is_run DESC, channel = :channel DESC, id LIMIT 1)
    RETURNING c.id, c.turn_count, c.is_run
""")  # noqa: S608 - no user input

ADD_ONE = text(f"""
    UPDATE conversation AS c SET turn_count = greatest(c.turn_count, :index + 1), {TOUCHED}, updated_at = now(),
        consolidated_at = NULL, consolidated_turns = least(c.consolidated_turns, :index)
    WHERE c.workspace_id = :workspace AND c.id = :id
""")  # noqa: S608 - no user input


async def append_turns(
    session: Session,
    scope: Scope,
    external_id: str | None,
    turns: Sequence[NewTurn],
    *,
    generation: int,
    consolidated_at: datetime | None = None,
) -> tuple[list[StoredTurn], tuple[NewRows, ...]]:
    """Makes rows for turns (at least one) at the end of a conversation, which is created if it is new. Under the scope
    lock. The caller inserts the rows in the same transaction, before anything that refers to the conversation.

    `external_id` None: a new conversation, among the rows. `consolidated_at`: now, if the facts of these turns are
    stored with them.
    """
    named = scope.named(external_id or str(uuid7()))
    new: dict[str, Any] = {
        **scope.columns,
        "id": uuid7(),
        "external_id": named.run_id,
        "is_run": named.is_run,
        "started_at": turns[0].timestamp,
        "turn_count": len(turns),
        "consolidated_at": consolidated_at,
        "consolidated_turns": len(turns) if consolidated_at else 0,
    }
    created: tuple[NewRows, ...] = ()
    if external_id is None:
        created, conversation_id, first = (NewRows(INSERT, [new]),), new["id"], 0
    else:
        ids = ("user_id", "agent_id")
        owner = " AND ".join(f"{name} IS NULL" if new[name] is None else f"{name} = :{name}" for name in ids)
        extended = await direct.fetch(session, EXTEND.fill(owner=owner), new)
        [row] = extended or await direct.fetch(session, CREATE, new)
        conversation_id, first, named = row.id, row.turn_count - len(turns), replace(named, is_run=row.is_run)
    session.info["new_turns"] = True
    stored = [StoredTurn(uuid7(), conversation_id, first + place) for place in range(len(turns))]
    placed = list(zip(turns, stored, strict=True))
    return stored, (*created, *new_rows(named, placed, generation=generation))


async def insert_turn(
    session: Session, conversation: Conversation, new: NewTurn, index: int, *, generation: int
) -> StoredTurn:
    """Adds one turn at a free index and moves the conversation's next index after it. Under the scope lock."""
    place = StoredTurn(uuid7(), conversation.id, index)
    values = {"id": conversation.id, "index": index}
    await direct.fetch(session, ADD_ONE, values)
    session.info["new_turns"] = True
    await direct.insert(session, *new_rows(conversation.scope, [(new, place)], generation=generation))
    return place


LOCK_TURNS = text("SELECT id FROM turn WHERE workspace_id = :workspace AND id = ANY (:ids) ORDER BY id FOR KEY SHARE")


async def lock_turns(session: Session, turns: Sequence[StoredTurn]) -> bool:
    """Locks turns against deletion until the transaction ends; returns whether all of them exist."""
    values = {"ids": [turn.id for turn in turns]}
    return len(await direct.fetch(session, LOCK_TURNS, values)) == len(turns)


# Turns between those read before and these would be skipped for good, so there may be none.
MARK_READ = text("""
    UPDATE conversation c SET consolidated_turns = :last + 1, consolidated_at = (
        SELECT now() WHERE NOT EXISTS (
            SELECT FROM turn t WHERE t.workspace_id = :workspace AND t.conversation_id = :conversation
            AND t.turn_index > :last AND t.shown IS DISTINCT FROM ''))
    WHERE c.workspace_id = :workspace AND c.id = :conversation AND c.consolidated_turns <= :last
      AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = c.workspace_id AND t.conversation_id = c.id
                      AND t.turn_index >= c.consolidated_turns AND t.turn_index < :first
                      AND t.shown IS DISTINCT FROM '')
""")


async def mark_consolidated(session: Session, turns: Sequence[StoredTurn]) -> None:
    """Records that the facts of these turns, in order, are stored; the conversation is consolidated if none is left."""
    values = {"conversation": turns[0].conversation_id, "first": turns[0].index, "last": turns[-1].index}
    await direct.fetch(session, MARK_READ, values)


# -- rows of conversations ------------------------------------------------------------------------------------------


async def create(
    session: Session, scope: Scope, *, title: CleanText | None, started_at: datetime, metadata: Mapping[str, Any]
) -> Conversation:
    """Creates a conversation with a name (`scope.run_id`) that `of_scope` does not find. Under the scope lock."""
    columns = {name: value for name, value in scope.columns.items() if name != "run_id"}
    columns |= {"external_id": scope.run_id, "is_run": scope.is_run, "title": title, "started_at": started_at}
    columns["metadata"] = dict(metadata)
    new = insert(CONVERSATION).values(**columns, id=uuid7()).returning(*COLUMNS)
    return _conversation((await session.execute(new)).one())


async def get(session: Session, conversation_id: UUID, *, lock: bool = False) -> Conversation | None:
    """The conversation; with `lock` its row is locked until the transaction ends."""
    query = select(*COLUMNS).where(
        CONVERSATION.c.workspace_id == session.workspace_id, CONVERSATION.c.id == conversation_id
    )
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else _conversation(row)


async def by_external_id(session: Session, external_id: str, owner: Scope) -> list[Conversation]:
    """Two conversations, at most, with this external id, of the given user and agent; the first of each user and agent.
    Uses ix_conversation_external."""
    of_each = CONVERSATION.c.user_id, CONVERSATION.c.agent_id
    query = select(*COLUMNS).where(CONVERSATION.c.external_id == external_id, *_owned(owner))
    query = query.ext(distinct_on(*of_each)).order_by(*of_each, CONVERSATION.c.id).limit(2)
    return [_conversation(row) for row in await session.execute(query)]


def _owned(scope: Scope) -> list[ColumnElement[bool]]:
    """The conversations of the given user, agent and run; without a user, only those opened for the run."""
    columns = CONVERSATION.c
    owner = {"workspace_id": scope.workspace_id, "user_id": scope.user_id, "agent_id": scope.agent_id}
    ids: dict[str, Any] = {**owner, "external_id": scope.run_id}
    rows = [columns[name] == value for name, value in ids.items() if value is not None]
    return rows if scope.run_id is None or scope.user_id is not None else [*rows, columns.is_run]


async def of_scope(session: Session, scope: Scope) -> Conversation | None:
    """The conversation of exactly this user and agent that the external id (`scope.run_id`) means."""
    query = select(*COLUMNS).where(
        CONVERSATION.c.workspace_id == scope.workspace_id,
        CONVERSATION.c.user_id == scope.user_id,
        CONVERSATION.c.agent_id == scope.agent_id,
        CONVERSATION.c.external_id == scope.run_id,
    )
    same = CONVERSATION.c.is_run == scope.is_run, CONVERSATION.c.channel == scope.channel
    order = *(each.desc() for each in same), CONVERSATION.c.id
    row = (await session.execute(query.order_by(*order).limit(1))).one_or_none()
    return None if row is None else _conversation(row)


# A conversation mentions the entities that the memories read from its turns name. Uses ix_memory_source_turn,
# ix_memory_entity_entity and the primary keys.
MENTIONS = """SELECT {wanted} FROM memory_entity me
              JOIN memory_source s ON s.workspace_id = me.workspace_id AND s.memory_id = me.memory_id
              JOIN turn t ON t.workspace_id = s.workspace_id AND t.id = s.turn_id
              WHERE me.workspace_id = :workspace AND {given}"""
OF_ENTITY = MENTIONS.format(wanted="t.conversation_id", given="me.entity_id = :entity")
MENTIONS_ENTITY = text(f"conversation.id IN ({OF_ENTITY})")


async def page(
    session: Session,
    scope: Scope,
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
    include_archived: bool = False,
    consolidated: bool | None = None,
    entity_id: UUID | None = None,
) -> list[Conversation]:
    """Conversations of a scope, newest first, after the key `after`. `entity_id`: that mention this entity."""
    query = select(*COLUMNS).where(scopes.seen_channels("conversation", scope).clause, *_owned(scope))
    if entity_id is not None:
        query = query.where(MENTIONS_ENTITY.bindparams(workspace=scope.workspace_id, entity=entity_id))
    if not include_archived:
        query = query.where(~CONVERSATION.c.archived)
    if consolidated is not None:
        query = query.where(CONVERSATION.c.consolidated_at.is_not(None) == consolidated)
    key = CONVERSATION.c.created_at, CONVERSATION.c.id
    return await direct.newest(session, query, key, _conversation, after=after, limit=limit)


async def change(session: Session, conversation_id: UUID, values: Mapping[str, Any], *, now: datetime) -> Conversation:
    """Sets columns and increments the version."""
    conditions = CONVERSATION.c.workspace_id == session.workspace_id, CONVERSATION.c.id == conversation_id
    changed = {**values, "version": CONVERSATION.c.version + 1, "updated_at": now}
    row = (await session.execute(update(CONVERSATION).where(*conditions).values(changed).returning(*COLUMNS))).one()
    return _conversation(row)


# Archiving does not count as a change of the conversation, so `updated_at` stays.
ARCHIVE_IDLE = text("""
    UPDATE conversation c SET archived = true, version = c.version + 1
    WHERE c.workspace_id = :workspace AND c.id = ANY (ARRAY(
        SELECT i.id FROM conversation i
        WHERE i.workspace_id = :workspace AND i.id > :after AND NOT i.archived AND i.updated_at < :before
        ORDER BY i.id LIMIT :batch FOR UPDATE SKIP LOCKED))
    RETURNING c.id
""").bindparams(bindparam("before", type_=DateTime(timezone=True)))


async def archive_idle(session: Session, *, after: UUID, before: datetime, batch: int) -> list[UUID]:
    """Archives the next conversations that did not change since `before`; returns their ids."""
    values = {"after": after, "before": before, "batch": batch}
    return list(await session.scalars(ARCHIVE_IDLE, values))


async def turn_counts(session: Session, ids: Sequence[UUID]) -> dict[UUID, int]:
    """The number of turns of each conversation."""
    counts = select(TURN.c.conversation_id, func.count()).where(
        TURN.c.workspace_id == session.workspace_id, TURN.c.conversation_id.in_(ids)
    )
    return {row[0]: row[1] for row in await session.execute(counts.group_by(TURN.c.conversation_id))}


COLUMNS = tuple(CONVERSATION.c)


_conversation = direct.reader(
    Conversation,
    scope=lambda row: Scope(
        row.workspace_id, row.user_id, row.agent_id, row.external_id, row.channel, is_run=row.is_run
    ),
    next_index=lambda row: row.turn_count,
)


LOCK_UNREAD = text("SELECT pg_advisory_xact_lock(hashtextextended('loxodon:consolidate:' || :workspace, 0))")

# Facts get the same run as the conversation's own memories. Citus reads the queue, which is on the coordinator, first.
UNREAD = text("""
    WITH queued AS MATERIALIZED (
        SELECT j.payload ->> 'conversation_id' AS id FROM job j
        WHERE j.workspace_id = :workspace AND j.kind = 'consolidate'
          AND (j.state = 'ready' OR j.state = 'running' OR j.state = 'dead')
    )
    SELECT c.workspace_id, c.id, c.user_id, c.agent_id, c.channel, c.external_id, said.first, said.last,
           (SELECT m.run_id FROM memory_source s JOIN memory m ON m.workspace_id = s.workspace_id AND m.id = s.memory_id
            WHERE s.workspace_id = c.workspace_id AND s.turn_id = said.last_id LIMIT 1) AS run_id
    FROM conversation c CROSS JOIN LATERAL (
        SELECT min(t.turn_index) AS first, max(t.turn_index) AS last, max(t.created_at) AS at,
               (array_agg(t.id ORDER BY t.turn_index DESC))[1] AS last_id
        FROM turn t
        WHERE t.workspace_id = c.workspace_id AND t.conversation_id = c.id
          AND t.turn_index >= c.consolidated_turns AND t.shown IS DISTINCT FROM ''
    ) said
    WHERE c.workspace_id = :workspace AND c.id > :after AND c.consolidated_at IS NULL AND NOT c.archived
      AND (c.user_id IS NOT NULL OR c.agent_id IS NOT NULL)  -- nobody's facts would be everybody's
      AND said.at <= now() - :quiet
      AND (:kept OR NOT EXISTS (
          SELECT FROM memory_source s JOIN memory m ON m.workspace_id = s.workspace_id AND m.id = s.memory_id
          WHERE s.workspace_id = c.workspace_id AND s.turn_id = said.last_id AND m.turn_index IS NOT NULL))
      AND c.id::text NOT IN (SELECT id FROM queued WHERE id IS NOT NULL)  -- hashed, also for many
    ORDER BY c.id LIMIT :batch
""").bindparams(bindparam("quiet", type_=Interval()))


@dataclass(frozen=True, slots=True)
class UnreadTurns:
    """Turns `first` to `last` of a conversation; `scope` is that of the facts, `name` the conversation's own."""

    conversation_id: UUID
    scope: Scope
    name: str
    first: int
    last: int


async def find_unread(session: Session, *, after: UUID, quiet: timedelta, kept: bool, batch: int) -> list[UnreadTurns]:
    """At most `batch` conversations after the id `after`; `quiet`: since their last turn was stored; `kept`: also
    messages that are stored verbatim as memories. A conversation with a job is skipped, even if that job is dead,
    because a person has to decide about it. A concurrent run waits until the transaction ends, and then sees its
    jobs."""
    await session.execute(LOCK_UNREAD, {"workspace": str(session.workspace_id)})
    values = {"after": after, "quiet": quiet, "kept": kept, "batch": batch}
    rows = await direct.fetch(session, UNREAD, values)
    return [UnreadTurns(row.id, scopes.of_row(row), row.external_id, row.first, row.last) for row in rows]
