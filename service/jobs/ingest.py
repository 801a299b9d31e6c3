"""Which conversation was accepted and is to be stored now?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from service.db import caches
from service.db.idempotency import Replay
from service.db.jobs import operations
from service.domain.decision import Action
from service.domain.job import Counts, Job
from service.domain.memory import StoreResult
from service.domain.request import IdempotencyKey, StoredAnswer, WriteContext
from service.errors import ServiceError
from service.memory.curate import curate
from service.memory.later import from_json
from service.memory.record import Conversation, record
from service.resources import Resources

FOREVER_S = 30 * 86_400.0
"""How long a finished operation's key is kept: longer than a job can be retried."""


async def run(job: Job, res: Resources) -> Counts | None:
    """Stores the operation's conversation once, however often it runs; the last failed attempt fails the operation."""
    operation_id = UUID(str(job.payload["operation_id"]))
    async with res.db.begin(job.workspace_id) as session:
        operation = await operations.get(session, job.workspace_id, operation_id)
        await operations.begin(session, job.workspace_id, operation_id)
    if operation is None or operation.finished_at is not None:
        return None
    try:
        result = await _store(operation_id, from_json(job.workspace_id, operation.request), res)
    except ServiceError as exc:
        if not exc.retryable or job.is_last_attempt:
            async with res.db.begin(job.workspace_id) as session:
                error = {"code": exc.code, "detail": exc.detail, "field": exc.field}
                await operations.finish(session, job.workspace_id, operation_id, error=error)
        raise
    async with res.db.begin(job.workspace_id) as session:
        await operations.finish(session, job.workspace_id, operation_id, result=result)
    return {"results": len(result["results"])}


async def _store(operation_id: UUID, conversation: Conversation, res: Resources) -> Mapping[str, Any]:
    key = IdempotencyKey(f"operation:{operation_id}", str(operation_id), FOREVER_S)
    try:
        request = WriteContext(f"operation:{operation_id}", idempotency=key, serialize=_answer)
        with caches.holding():  # what a model says of a conversation that is erased meanwhile must not stay
            if conversation.infer:
                stored = await curate(conversation, res, request)
            else:
                stored = StoreResult(tuple(await record(conversation, res, request)))
    except Replay as replay:
        return replay.answer.body
    return _answer(stored).body


def _answer(stored: StoreResult) -> StoredAnswer:
    """Ids and events, in the order of the messages; GET /v1/memories/{id} tells the rest."""
    results = [
        {
            "event": str(outcome.event),
            "id": str(outcome.memory_id) if outcome.memory_id else None,
            "conversation_id": str(outcome.conversation_id) if outcome.conversation_id else None,
            "turn_index": outcome.turn_index,
        }
        for outcome in stored.outcomes
    ]
    status = 201 if any(outcome.event is Action.ADD for outcome in stored.outcomes) else 200
    return StoredAnswer(status, {"results": results, "warnings": list(stored.warnings)})
