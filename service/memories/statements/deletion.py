"""Deletes memories and what belongs to a scope; each deletion has an entry in the history of its memory.

A batch of memories is locked by ascending id, then its edges in the order of their keys, so that two concurrent bulk
deletes wait for each other in one direction only. Sources, links, edges, vectors and statistics are deleted by foreign
key, relations between entities with the last memory that is evidence of them; entities that no memory names any more
are deleted, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, select, text, true

from service.conversations.statements import contexts, withdrawn
from service.conversations.statements.withdrawn import Withdrawal
from service.domain.decision import Action
from service.domain.scope import Extent
from service.graph.statements import entity_links, entity_relations
from service.memories.statements import history, versions
from service.memories.statements.history import Change
from service.postgres import scopes
from service.postgres.engine import Session, is_walled
from service.postgres.tables import MEMORY

BATCH = 500
"""Memories that one statement locks, at most."""

LOCK_EDGES = text("""
    SELECT FROM memory_edge
    WHERE workspace_id = :workspace
      AND (source_id = ANY (CAST(:ids AS uuid[])) OR target_id = ANY (CAST(:ids AS uuid[])))
    ORDER BY source_id, rel_type, target_id FOR UPDATE
""")

# The turns with exactly the text of these memories. If another memory came from the same turn, as a fact that was read
# from it, the turn stays.
DELETE_TURNS = text("""
    DELETE FROM turn t USING memory_source s, memory m
    WHERE s.workspace_id = :workspace AND s.memory_id = ANY (CAST(:ids AS uuid[]))
      AND m.workspace_id = :workspace AND m.id = s.memory_id
      AND t.workspace_id = :workspace AND t.id = s.turn_id AND t.content = m.content
      AND NOT EXISTS (SELECT FROM memory_source other WHERE other.workspace_id = :workspace AND other.turn_id = t.id
                      AND NOT other.memory_id = ANY (CAST(:ids AS uuid[])))
""")

# Pending reviews are deleted with their memory; a resolved one stays as a record. Uses ix_review_memory.
DELETE = text("""
    WITH pending AS (
        DELETE FROM review
        WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[])) AND state = 'pending'
    )
    DELETE FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[]))
""")

# Copies made by promotion, unless another memory that stays has the same text and was promoted to it.
COPIES = text("""
    SELECT DISTINCT e.source_id FROM memory_edge e
    WHERE e.workspace_id = :workspace AND e.target_id = ANY (CAST(:ids AS uuid[])) AND e.rel_type = 'PROMOTED_FROM'
      AND e.properties @> '{"copied": true}'
      AND NOT EXISTS (SELECT FROM memory_edge o WHERE o.workspace_id = e.workspace_id AND o.source_id = e.source_id
                      AND o.rel_type = 'PROMOTED_FROM' AND NOT o.target_id = ANY (CAST(:ids AS uuid[])))
""")

EXPIRE_COPIES = text("SELECT expire_copies(CAST(:ids AS uuid[]))")

DELETED_BEFORE = text("""
    SELECT DISTINCT memory_id FROM memory_history
    WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[])) AND event = 'DELETE'
""")

# SECURITY DEFINER, for loxodon_worker: no workspace is known here.
FIND_OUTLIVED = text("SELECT * FROM find_outlived(:at, CAST(:retention_days AS integer), :limit)")


def _rows(extent: Extent) -> ColumnElement[bool]:
    statement = scopes.deletable("memory", extent.scope, extent.channel).clause
    own = MEMORY.c.version_of.is_(None)  # past versions are deleted with their memory
    return and_(statement, own, true() if extent.upto is None else MEMORY.c.created_at <= extent.upto)


async def measure(session: Session, extent: Extent) -> tuple[int, datetime | None]:
    """The number of memories, and when the newest was created."""
    row = (await session.execute(select(func.count(), func.max(MEMORY.c.created_at)).where(_rows(extent)))).one()
    return row[0], row[1]


async def next_ids(session: Session, extent: Extent, *, after: UUID | None, limit: int = BATCH) -> list[UUID]:
    """The next ids by ascending id."""
    query = select(MEMORY.c.id).where(_rows(extent)).order_by(MEMORY.c.id).limit(limit)
    if after is not None:
        query = query.where(MEMORY.c.id > after)
    return list(await session.scalars(query))


async def delete_memories(
    session: Session, ids: Sequence[UUID], *, generation: int, withdraws: withdrawn.Reason | None = "deleted"
) -> list[UUID]:
    """Deletes at most BATCH memories with their past versions and promoted copies, each with a DELETE in its history;
    returns those of the given ids that existed. `withdraws`: why the sentences they were read from no longer count;
    None: they still do.

    Lock order: memories, edges, entities, relations, turns, each by ascending id or key."""
    going = await _with_followers(session, ids)
    # memories whose context has words of the deleted are locked, too: else two deletes of neighbours could deadlock
    positions = await contexts.positions(session, sorted(going))
    neighbours = await contexts.dependents(session, positions)
    locked = await history.lock(session, {*going, *neighbours})
    present = sorted((locked & going) | await lock_with_followers(session, ids, held=going))
    if not present:
        return []
    values = {"ids": present}
    if is_walled(session):  # copies beyond it are not seen here
        await session.execute(EXPIRE_COPIES, values)
    await session.execute(LOCK_EDGES, values)
    unnamed = await entity_links.lock_unnamed(session, present)
    await entity_relations.lock_evidenced(session, present)
    await history.append(session, [Change(each, Action.DELETE) for each in present], generation=generation)
    turns = await withdrawn.turns_shared_with(session, present)
    if withdraws is not None:
        turns += await withdrawn.withdraw(session, present, Withdrawal(withdraws))
    await session.execute(DELETE_TURNS, values)
    await session.execute(DELETE, values)
    await entity_links.remove_unnamed(session, unnamed)
    await withdrawn.refresh(session, set(turns))
    await contexts.rebuild(session, sorted(locked.intersection(neighbours) - set(present)))
    wanted = set(ids)
    return [each for each in present if each in wanted]


async def lock_with_followers(session: Session, ids: Sequence[UUID], *, held: Iterable[UUID] = ()) -> set[UUID]:
    """Locks the memories, their copies and past versions, also those added by transactions it waits for; returns what
    it has locked. `held`: locked before."""
    known, locked = set(held), set[UUID]()
    while late := await _with_followers(session, ids) - known:
        known |= late
        locked |= await history.lock(session, late)
    return locked


async def _with_followers(session: Session, ids: Sequence[UUID]) -> set[UUID]:
    """The memories, the copies that promotion made of them, and the past versions of both."""
    copies = await session.scalars(COPIES, {"ids": list(ids)})
    current = [*ids, *copies]
    return {*current, *await versions.of_memories(session, current)}


async def find_deleted(session: Session, ids: Sequence[UUID]) -> set[UUID]:
    """The ids among `ids` whose history has a DELETE."""
    return set(await session.scalars(DELETED_BEFORE, {"ids": list(ids)}))


async def list_outlived(
    session: Session, at: datetime, *, retention_days: int | None, limit: int
) -> list[tuple[UUID, UUID]]:
    """Workspace and id of memories that expired by `at`, or are past the retention of their workspace."""
    values = {"at": at, "retention_days": retention_days, "limit": limit}
    return [(row.workspace_id, row.memory_id) for row in await session.execute(FIND_OUTLIVED, values)]
