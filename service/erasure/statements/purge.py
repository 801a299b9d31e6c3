"""Purging a subject with its history, and resetting a whole workspace.

The application has no right to delete from history, audit and the conversation log, so purge_subject() and
erase_history() (SECURITY DEFINER) do it. A purge is one transaction, because half an erasure would be worthless. See
docs/decisions/022-erasure.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text

from service.cognition.statements import invocations
from service.domain.scope import Scope
from service.erasure.statements import activity
from service.graph.statements import entities, merges
from service.memories.statements import deletion
from service.postgres import scopes
from service.postgres.engine import Session
from service.postgres.tables import MEMORY, MEMORY_HISTORY
from service.postgres.template import Template, typed_text

# The walk over a workspace's history and audit has no index: it may take longer than a normal statement.
LONG_TIMEOUT = text("SELECT set_config('statement_timeout', '600000', true)")

PURGE_SUBJECT = text("""
    SELECT name, affected FROM purge_subject(
        CAST(:user_id AS text), CAST(:agent_id AS text), CAST(:run_id AS text), CAST(:channel AS text),
        CAST(:memories AS uuid[]), CAST(:turns AS uuid[]), CAST(:kept AS uuid[]))
""")

LOCK_SCOPE = Template("SELECT count(*) FROM (SELECT FROM memory WHERE {scope} ORDER BY id FOR UPDATE) held")

# has_table_privilege does not know MAINTAIN before Postgres 17
MAY_VACUUM = text("""
    SELECT CASE WHEN current_setting('server_version_num')::integer >= 170000
                THEN has_table_privilege('loxodon_worker', 'memory', 'MAINTAIN') ELSE false END
""")


async def purge_scope(session: Session, scope: Scope, channel: str | None) -> dict[str, int]:
    """Erases rows with every given id (and the channel, if given); returns those removed or blanked by table."""
    owned = scopes.deletable("memory", scope, channel)
    # concurrent changes of them have to finish, or their additions would be missed
    await session.execute(LOCK_SCOPE.fill(scope=owned.sql), dict(owned.values))
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}
    counts = await activity.delete_activity(session, scope, channel)
    counts |= await _purge(session, {**ids, "channel": channel, "memories": None, "turns": [], "kept": []})
    if scope.user_id is not None and scope.agent_id is None and scope.run_id is None:
        counts["entity"] += await entities.purge(session, scope, channel)
    await merges.forget_names(session)
    return counts


async def purge_memories(
    session: Session, ids: Sequence[UUID], *, turns: Sequence[UUID] = (), keep_turns: Sequence[UUID] = ()
) -> dict[str, int]:
    """Erases memories, their past versions and promoted copies, the turns that all of them came from (except
    `keep_turns`), and these turns; returns the rows by table."""
    anyone = {"user_id": None, "agent_id": None, "run_id": None, "channel": None}
    followed = await deletion.lock_with_followers(session, ids)
    everything = sorted({*ids, *followed})
    named = {"memories": everything, "turns": list(turns), "kept": list(keep_turns)}
    counts = await _purge(session, {**anyone, **named})
    counts["tool_invocation"] = await invocations.erase_of_deleted_turns(session)
    await merges.forget_names(session)
    return counts


async def _purge(session: Session, values: dict[str, object]) -> dict[str, int]:
    await session.execute(LONG_TIMEOUT)
    return {row.name: row.affected for row in await session.execute(PURGE_SUBJECT, values)}


async def owner_of(session: Session, memory_id: UUID) -> tuple[Scope, int | None] | None:
    """The scope of an existing memory and its version, or the owner of a deleted one; None for an unknown id."""
    workspace_id = session.workspace_id
    columns = MEMORY.c.user_id, MEMORY.c.agent_id, MEMORY.c.run_id, MEMORY.c.channel
    conditions = MEMORY.c.workspace_id == workspace_id, MEMORY.c.id == memory_id
    row = (await session.execute(select(*columns, MEMORY.c.version).where(*conditions))).one_or_none()
    if row is not None:
        return Scope(workspace_id, *row[:4]), row.version
    history = select(MEMORY_HISTORY.c.user_id, MEMORY_HISTORY.c.agent_id, MEMORY_HISTORY.c.run_id).where(
        MEMORY_HISTORY.c.workspace_id == workspace_id, MEMORY_HISTORY.c.memory_id == memory_id
    )
    past = (await session.execute(history.limit(1))).one_or_none()
    return None if past is None else (Scope(workspace_id, *past), None)


# -- the reset of a workspace ---------------------------------------------------------------------------------------

DELETE_MEMORIES = text("""
    DELETE FROM memory WHERE workspace_id = :workspace AND id = ANY (ARRAY(
        SELECT id FROM memory
        WHERE workspace_id = :workspace AND created_at <= :upto AND (CAST(:after AS uuid) IS NULL OR id > :after)
        ORDER BY id LIMIT :batch FOR UPDATE))
    RETURNING id
""")

ERASE_HISTORY = text("SELECT erase_history(:until, :batch)")

DELETE_OLDER = """
    DELETE FROM {table} WHERE workspace_id = :workspace AND ctid = ANY (ARRAY(
        SELECT ctid FROM {table} WHERE workspace_id = :workspace AND created_at <= :until LIMIT :batch FOR UPDATE))
"""

# Tables with text of the workspace's users. Turns are deleted with their conversation.
DELETE_REST = tuple(
    text(DELETE_OLDER.format(table=table))
    for table in (
        "conversation",
        "entity",
        "decision",
        "review",
        "embedding_cache",
        "llm_cache",
        "working_item",
        "user_profile",
        "goal",
        "term_stat",
        "strategy",
    )
)

# Stored answers contain texts too; that of the reset itself is still being written.
DELETE_ANSWERS = text("""
    DELETE FROM idempotency WHERE workspace_id = :workspace AND created_at <= :until AND key <> :own_key
      AND status IS NOT NULL AND status <> 410
""")

# Requests that were accepted but not yet stored are dropped too. A job that is working on one finds it answered and
# stores nothing.
CANCEL_ACCEPTED = typed_text("""
    WITH gone AS (
        DELETE FROM operation WHERE workspace_id = :workspace AND kind = 'record'
            AND (CAST(:user_id AS text) IS NULL OR request -> 'scope' ->> 0 = :user_id)
            AND (CAST(:agent_id AS text) IS NULL OR request -> 'scope' ->> 1 = :agent_id)
            AND (CAST(:run_id AS text) IS NULL OR request -> 'scope' ->> 2 = :run_id)
            AND (CAST(:channel AS text) IS NULL OR request -> 'scope' ->> 3 = :channel)
        RETURNING id, wall
    )
    INSERT INTO idempotency (workspace_id, key, fingerprint, status, body, expires_at)
    SELECT :workspace, coalesce(wall || ':', '') || 'operation:' || id, id::text, 410,
           '{"results": [], "warnings": ["deleted"]}', now() + interval '1 day'
    FROM gone ON CONFLICT DO NOTHING
""")

# Jobs whose payload contains texts of memories; every other job is about the workspace.
DELETE_JOBS = text("""
    DELETE FROM job WHERE workspace_id = :workspace AND id = ANY (ARRAY(
        SELECT id FROM job WHERE workspace_id = :workspace AND created_at <= :until
          AND (memory_id IS NOT NULL OR kind IN ('ingest', 'consolidate')) ORDER BY id LIMIT :batch FOR UPDATE))
""")


async def measure_workspace(session: Session) -> tuple[int, datetime | None, datetime]:
    """The number of memories, the creation time of the newest, and the server's time."""
    figures = func.count(), func.max(MEMORY.c.created_at), func.clock_timestamp()
    row = (await session.execute(select(*figures).where(MEMORY.c.workspace_id == session.workspace_id))).one()
    return row[0], row[1], row[2]


async def cancel_accepted(session: Session, scope: Scope, channel: str | None = None) -> None:
    """Drops requests with every given id (and the channel, if given) that were accepted but not yet stored."""
    await session.execute(CANCEL_ACCEPTED, {**scope.columns, "channel": channel})


async def remove_memories(session: Session, upto: datetime, *, after: UUID | None, batch: int) -> list[UUID]:
    """Deletes at most `batch` memories after the id `after`; returns their ids, ascending. Writes no history."""
    values = {"upto": upto, "after": after, "batch": batch}
    return sorted(await session.scalars(DELETE_MEMORIES, values))


async def remove_the_rest(session: Session, until: datetime, *, batch: int, own_key: str = "") -> int:
    """Deletes history, conversations, entities, decisions, jobs and caches, at most `batch` rows of each; returns how
    many. Keys, settings and the audit log stay."""
    values = {"until": until, "batch": batch}
    removed = int(await session.scalar(ERASE_HISTORY, values) or 0)
    removed += await invocations.erase_all(session, until, batch=batch)
    for statement in (DELETE_JOBS, *DELETE_REST):
        removed += (await session.execute(statement, values)).rowcount
    await session.execute(DELETE_ANSWERS, {"until": until, "own_key": own_key})
    return removed


async def may_vacuum(session: Session) -> bool:
    """Whether the worker may VACUUM the tables."""
    return bool(await session.scalar(MAY_VACUUM))
