"""Which conversation was kept without its facts, because the model was away?

Its turns stand in the database; this makes the facts of them, by the same verb that a request calls and as that
request wanted it. When the model is still away the job fails and is tried again, later each time. One that dies after
the commit and runs again finds that it is done. Turns that were erased meanwhile leave nothing: when none is left the
job is done, else it is tried again with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from service.db import caches
from service.db.episodes import conversations
from service.db.episodes.conversations import KeptTurn
from service.db.idempotency import Replay
from service.domain.job import Counts, Job
from service.domain.memory import StoreResult
from service.domain.request import IdempotencyKey, StoredAnswer, WriteContext
from service.domain.scope import Scope
from service.memory import later
from service.memory.curate import TurnsGone, curate
from service.resources import Resources

REMEMBERED_S = 30 * 86_400.0
"""How long it is known that the job is done: longer than it can be retried."""


async def run(job: Job, res: Resources) -> Counts | None:
    """Facts of the turns in the payload; those that are gone are done."""
    kept = job.payload
    found = await _kept(job, res)
    if found is None:
        return None
    key = IdempotencyKey(f"job:{job.id}", str(job.id), REMEMBERED_S)
    wanted = later.again(kept, *found, res.clock())
    try:
        with caches.holding():  # what a model says of a conversation that is erased meanwhile must not stay
            context = WriteContext(f"job:{job.id}", idempotency=key, serialize=_answer)
            curated = await curate(wanted, res, context)
    except Replay:
        return None
    except TurnsGone:
        if await _kept(job, res) is None:
            return None
        raise
    return {"facts": len(curated.outcomes)}


async def _kept(job: Job, res: Resources) -> tuple[Scope, Sequence[KeptTurn]] | None:
    asked = job.payload
    conversation_id = UUID(str(asked["conversation_id"]))
    first, last = int(str(asked["first"])), int(str(asked["last"]))
    async with res.db.read(job.workspace_id) as session:
        return await conversations.kept(session, job.workspace_id, conversation_id, first, last)


def _answer(curated: StoreResult) -> StoredAnswer:
    ids = [str(each.memory_id) for each in curated.outcomes if each.memory_id]
    return StoredAnswer(200, {"results": ids, "warnings": list(curated.warnings)})
