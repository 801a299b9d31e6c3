"""How does an archived memory come back? What was deleted does not (A10)."""

from __future__ import annotations

from uuid import UUID

from service.db import writes
from service.db.memories import history, memories, updates
from service.db.memories.history import Change
from service.domain.decision import Action
from service.domain.memory import Memory
from service.domain.request import WriteContext
from service.domain.revision import Expected
from service.memory.store import write_transaction
from service.memory.transactions import check, keep, missing, note
from service.resources import Resources


async def restore(
    workspace_id: UUID, memory_id: UUID, res: Resources, request: WriteContext, *, expected: Expected | None = None
) -> Memory:
    """The memory, active; one that is not archived stays as it is. Raises NotFound, PreconditionFailed, or Conflict
    when the scope has a live memory with this text."""
    async with res.db.read(workspace_id) as session:
        there = await memories.get(session, workspace_id, memory_id, alive_at=res.clock())
    if there is None:
        raise missing()
    async with write_transaction(there.scope, res, request) as session:
        was = await history.snapshot(session, workspace_id, memory_id, generation=res.generation)
        found = await memories.get(session, workspace_id, memory_id, alive_at=res.clock())
        if was is None or found is None:
            raise missing()
        check(found.version, expected)
        if found.archived:
            now = res.clock()
            await writes.release_expired(session, workspace_id, [found.hash], now=now)
            await updates.set_columns(session, workspace_id, memory_id, {"archived": False}, now=now)
            # as fresh as a new one, or the next round of forgetting would take it away again
            await updates.set_stat(
                session, workspace_id, memory_id, {"relevance": 1.0, "last_accessed": now, "stale_at": None}
            )
            text = found.text
            change = Change(memory_id, Action.UPDATE, found.scope, text, text, was.before, was.vector, was.generation)
            await history.append(session, workspace_id, [change])
            await note(session, "restore", found.scope, [memory_id], request, res)
            found = await memories.get(session, workspace_id, memory_id) or found
        await keep(session, workspace_id, found, request)
    return found
