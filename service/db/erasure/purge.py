"""Which rows of which tables hold a subject's words, and how do they go?

`purge_subject` (migration 0011) and what stands beside it do it in one transaction: history, audit and the log of
conversations give no right to delete, and an erasure that stops half-way would be none.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from sqlalchemy import select, text

from service.db.cognition import invocations
from service.db.engine import Session
from service.db.erasure import belongings, episodes
from service.db.graph import entities, merges
from service.db.memories import decisions
from service.db.tables import Memory, MemoryHistory
from service.domain.scope import Scope

# The walk over a workspace's history and audit has no index to count on: it may take longer than a request's statement.
PATIENCE = text("SELECT set_config('statement_timeout', '600000', true)")

PURGE = text("""
    SELECT name, affected FROM purge_subject(CAST(:user_id AS text), CAST(:agent_id AS text), CAST(:run_id AS text),
                                             CAST(:channel AS text), CAST(:memory_id AS uuid))
""")


# Memories that waited for a person's word and gave their text to this one: their history still says it.
TAKEN_OVER = text("""
    SELECT DISTINCT taken.memory_id FROM decision own JOIN decision taken
        ON taken.workspace_id = own.workspace_id AND taken.ruling_id = own.ruling_id
    WHERE own.workspace_id = :workspace AND own.memory_id = :id AND taken.verdict ->> 'action' = :action
      AND taken.state = 'applied' AND taken.memory_id <> own.memory_id
""")


async def purge_scope(session: Session, scope: Scope, channel: str | None) -> dict[str, int]:
    """Rows removed or blanked by table, of all that has every given id (and the channel, if one is given)."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}
    others = await belongings.erase(session, scope, channel)
    counts = others | await _purge(session, {**ids, "channel": channel, "memory_id": None})
    if scope.user_id is not None and scope.agent_id is None and scope.run_id is None:
        counts["entity"] += await entities.purge(session, scope, channel)
    await merges.fade(session, scope.workspace_id)
    return counts


async def purge_memory(session: Session, workspace_id: UUID, memory_id: UUID) -> dict[str, int]:
    """The same for one memory, its promoted copies, what a person let take its place, and the turns they came from."""
    nobody = {"user_id": None, "agent_id": None, "run_id": None, "channel": None}
    values = {"workspace": workspace_id, "id": memory_id, "action": decisions.TAKEN_OVER}
    gone_into_it = list(await session.scalars(TAKEN_OVER, values))
    counts = Counter(await _purge(session, {**nobody, "memory_id": memory_id}))
    for each in gone_into_it:
        counts.update(await _purge(session, {**nobody, "memory_id": each}))
    counts["tool_invocation"] = await invocations.erase_of_deleted_turns(session, workspace_id)
    await merges.fade(session, workspace_id)
    return counts


async def _purge(session: Session, values: dict[str, object]) -> dict[str, int]:
    await session.execute(PATIENCE)
    said = await episodes.purge(session, values)
    return said | {row.name: row.affected for row in await session.execute(PURGE, values)}


async def owner_of(session: Session, workspace_id: UUID, memory_id: UUID) -> tuple[Scope, int | None] | None:
    """Whose the memory is, or was, and its version while it is there; None for an id that was never seen."""
    columns = Memory.user_id, Memory.agent_id, Memory.run_id
    here = Memory.workspace_id == workspace_id, Memory.id == memory_id
    row = (await session.execute(select(*columns, Memory.version).where(*here))).one_or_none()
    if row is not None:
        return Scope(workspace_id, row[0], row[1], row[2]), row.version
    told = select(MemoryHistory.user_id, MemoryHistory.agent_id, MemoryHistory.run_id).where(
        MemoryHistory.workspace_id == workspace_id, MemoryHistory.memory_id == memory_id
    )
    past = (await session.execute(told.limit(1))).one_or_none()
    return None if past is None else (Scope(workspace_id, *past), None)
