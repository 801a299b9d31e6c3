"""Conversations that are stored, or read for their facts, after the request that sent them.

`Prefer: respond-async`: the messages are redacted at once, then they are safe in an `operation` row with its job
`ingest`, and the caller gets its id. A job `consolidate` makes the facts of turns that are stored already, because the
model was unavailable or the caller wanted them word for word; a scheduled run looks for conversations with unread turns
and queues a job for each.

Both jobs call the verb of a direct request, with the options of that request, under an idempotency key of their own: a
job that dies after the commit and runs again finds that it is done. Turns that were erased in the meantime leave
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.access import workspace_jobs
from service.conversations.statements import conversations, turns
from service.conversations.statements.conversations import UnreadTurns
from service.domain import filters
from service.domain.conversation import Turn
from service.domain.decision import Action
from service.domain.draft import CallerFields, Draft, Options
from service.domain.errors import AnswerCut, NotFound, PromptTooLong, UnusableAnswer
from service.domain.job import LONG_MAX_ATTEMPTS, Counts, Job, NewJob
from service.domain.memory import StoreResult
from service.domain.request import Call, IdempotencyKey, Replay, StoredAnswer
from service.domain.scope import NIL_WORKSPACE, Scope
from service.domain.text import CleanText
from service.intake.conversation import ConversationDraft
from service.intake.curate import TurnsGone, curate, without_model
from service.intake.store import store
from service.memories import pipeline
from service.queue.statements import operations, queue
from service.queue.statements.operations import OperationRecord
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction

KIND = "record"
"""The kind of operations that store a conversation."""

QUIET = timedelta(minutes=10)
"""How long after its last turn a conversation is read: the next message may change what was meant."""

NO_MESSAGES = filters.read({"field": "turn_index", "operator": "eq", "value": None})
"""A fact is compared with facts only: compared with the message it was read from it would not be new."""

BATCH_SIZE = 1_000
"""Conversations read in one transaction, each of which reads the waiting jobs once."""

UNUSABLE_ATTEMPTS = 3
"""From this attempt on the rules read turns for which the model gives no usable answer, because each attempt costs
money."""

REMEMBERED_S = 30 * 86_400.0
"""How long finished jobs are remembered: longer than they can be retried."""


async def accept(conversation: ConversationDraft, res: Resources, call: Call) -> UUID:
    """Puts the redacted conversation into an operation and returns its id; raises PiiRejected like a direct request."""
    checked = [await pipeline.check_size(draft, res) for draft in conversation.drafts]
    redacted = list(await asyncio.gather(*(pii.redact(draft, res) for draft in checked)))
    prompt = conversation.instruction
    instruction = (await pii.clean(prompt, "prompt", res))[0] if prompt else None
    operation_id = uuid7()
    async with write_transaction(conversation.scope, res, call) as write:
        payload = replace(conversation, drafts=redacted, instruction=instruction).to_json()
        await operations.add(write.session, operation_id, KIND, payload)
        await queue.enqueue(write.session, [NewJob("ingest", payload={"operation_id": str(operation_id)})])
        return await write.answer(operation_id)


async def keep_finished(workspace_id: UUID, operation_id: UUID, result: Mapping[str, Any], res: Resources) -> None:
    """Keeps a finished operation with its result."""
    async with res.db.begin(workspace_id) as session:
        await operations.add(session, operation_id, KIND, {})
        await operations.finish(session, operation_id, result=result)


async def list_operations(workspace_id: UUID, res: Resources, *, skip: int, limit: int) -> list[OperationRecord]:
    async with res.db.read(workspace_id) as session:
        return await operations.list_newest(session, skip=skip, limit=limit)


async def progress(workspace_id: UUID, operation_id: UUID, res: Resources, name: str = "operation") -> OperationRecord:
    """The progress of an operation, which a client may know by another `name`; raises NotFound."""
    async with res.db.read(workspace_id) as session:
        operation = await operations.get(session, operation_id)
    if operation is None:
        raise NotFound.of(name)
    return operation


async def ingest(job: Job, res: Resources) -> Counts | None:
    """Stores the operation's conversation once, however often it runs."""
    result = await workspace_jobs.run_operation(job, res, partial(_store, job.workspace_id))
    return {"results": len(result["results"])} if result is not None else None


async def _store(workspace_id: UUID, operation: OperationRecord, res: Resources) -> Mapping[str, Any]:
    conversation = ConversationDraft.from_json(workspace_id, operation.request)
    name = f"operation:{operation.id}"
    key = IdempotencyKey(res.context.wall.own_name(name), str(operation.id), REMEMBERED_S)
    try:
        stored = await store(conversation, res, Call(name, idempotency=key, serialize=_results))
    except Replay as replay:
        return replay.answer.body
    return _results(stored).body


def _results(stored: StoreResult) -> StoredAnswer:
    """Ids and events, in the order of the messages; GET /v1/memories/{id} has the rest."""
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


async def consolidate(job: Job, res: Resources) -> Counts | None:
    """Makes the facts of the turns in the payload; if it has none, queues a job for each conversation with unread
    turns. Done when no turn is left; tried again while the model is unavailable."""
    if "conversation_id" not in job.payload:
        return await (
            workspace_jobs.start("consolidate", res) if job.workspace_id == NIL_WORKSPACE else _queue(job, res)
        )
    stored = await _find_turns(job, res)
    if stored is None:
        return None
    own = await workspace_jobs.with_own_settings(job, res)
    try:
        facts = await _read(job, *stored, own, f"job:{job.id}")
    except TurnsGone:
        if await _find_turns(job, res) is None:
            return None
        raise
    return None if facts is None else {"facts": facts}


async def _read(job: Job, scope: Scope, turns: Sequence[Turn], res: Resources, key: str) -> int | None:
    """The number of facts of the turns that were stored now; None if they were stored before. If the model has no room
    for the turns, or for all their facts, each half of the turns is read by itself. The rules read a single turn that
    is too long, and turns to which the model has given no usable answer."""
    conversation = ConversationDraft.from_turns(job.payload, scope, turns, res.clock())
    try:
        return await _curate_once(job, conversation, res, key)
    except (AnswerCut, PromptTooLong):
        if len(turns) == 1:
            return await _curate_once(job, without_model(conversation), res, key)
    except UnusableAnswer:
        if job.attempts < UNUSABLE_ATTEMPTS:
            raise
        return await _curate_once(job, without_model(conversation), res, key)
    middle = len(turns) // 2
    halves = (turns[:middle], turns[middle:])
    return sum([await _read(job, scope, half, res, f"{key}/{half[0].index}") or 0 for half in halves])


async def _curate_once(job: Job, conversation: ConversationDraft, res: Resources, key: str) -> int | None:
    once = IdempotencyKey(res.context.wall.own_name(key), str(job.id), REMEMBERED_S)
    try:
        curated = await curate(conversation, res, Call(f"job:{job.id}", idempotency=once, serialize=_results))
    except Replay:
        return None
    return len(curated.outcomes)


async def _queue(job: Job, res: Resources) -> Counts:
    """A job for each conversation of the workspace that is quiet and has unread turns."""
    own = await workspace_jobs.with_own_settings(job, res)
    queued, batch = 0, BATCH_SIZE
    verbatim_too = job.payload.get("by") != "schedule"  # infer=false: no facts unless somebody asks for them
    last: UUID | None = NIL_WORKSPACE
    while last is not None:
        async with own.db.begin(job.workspace_id) as session:
            unread = await conversations.find_unread(session, after=last, quiet=QUIET, kept=verbatim_too, batch=batch)
            await queue.enqueue(session, [_job_of(turn, own) for turn in unread])
            queued += len(unread)
        last = unread[-1].conversation_id if len(unread) == batch else None
    own.wakeup.notify()
    return {"conversations": queued}


def _job_of(turns: UnreadTurns, res: Resources) -> NewJob:
    given = CallerFields(timezone=res.settings.memories.timezone, session_id=turns.name, dedup_filter=NO_MESSAGES)
    draft = Draft(turns.scope, CleanText(""), given, Options(), res.clock())
    conversation = ConversationDraft(turns.scope, [draft], None, infer=True)
    payload = conversation.turns_to_json(draft, turns.conversation_id, turns.first, turns.last)
    return NewJob("consolidate", payload=payload, max_attempts=LONG_MAX_ATTEMPTS)


async def _find_turns(job: Job, res: Resources) -> tuple[Scope, Sequence[Turn]] | None:
    payload = job.payload
    conversation_id = UUID(str(payload["conversation_id"]))
    first, last = int(str(payload["first"])), int(str(payload["last"]))
    async with res.db.read(job.workspace_id) as session:
        conversation = await conversations.get(session, conversation_id)
        unread = await turns.latest_before(session, conversation_id, last + 1, first=first)
    return (replace(conversation.scope, run_id=None), unread) if conversation and unread else None
