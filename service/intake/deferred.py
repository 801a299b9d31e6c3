"""Conversations that are accepted now and stored later, and the payload of jobs that curate stored turns.

`Prefer: respond-async`: the messages are redacted at once, then they are safe in an `operation` row with its job, and
the caller gets its id. The job runs the same verb as a direct request under the idempotency key `operation:<id>`, so a
job that dies after the commit and runs again finds the answer and stores nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from uuid_utils.compat import uuid7

from service.domain import filters
from service.domain.draft import CallerFields, Draft, Options, Speech
from service.domain.errors import NotFound
from service.domain.job import NewJob
from service.domain.request import Call
from service.domain.scope import Scope
from service.episodes.statements.last_turns import TurnContent
from service.intake.verbatim import ConversationDraft
from service.memories.stages import size
from service.queue.statements import operations, queue
from service.queue.statements.operations import OperationRecord
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction

KIND = "record"


async def accept(conversation: ConversationDraft, res: Resources, call: Call) -> UUID:
    """Puts the redacted conversation into an operation and returns its id; raises PiiRejected like a direct request."""
    checked = [await size.check(draft, res) for draft in conversation.drafts]
    redacted = list(await asyncio.gather(*(pii.redact(draft, res) for draft in checked)))
    prompt = conversation.instruction
    instruction = (await pii.clean(prompt, "prompt", res))[0] if prompt else None
    operation_id = uuid7()
    scope = conversation.scope
    async with write_transaction(scope, res, call) as write:
        job = NewJob("ingest", payload={"operation_id": str(operation_id)})
        payload = to_json(replace(conversation, drafts=redacted), instruction)
        await operations.add(write.session, operation_id, KIND, payload)
        await queue.enqueue(write.session, [job])
        return await write.answer(operation_id)


async def keep_finished(workspace_id: UUID, operation_id: UUID, result: Mapping[str, Any], res: Resources) -> None:
    """Keeps a finished operation with its result."""
    async with res.db.begin(workspace_id) as session:
        await operations.add(session, operation_id, KIND, {})
        await operations.finish(session, operation_id, result=result)


async def list_operations(workspace_id: UUID, res: Resources, *, limit: int) -> list[OperationRecord]:
    async with res.db.read(workspace_id) as session:
        return await operations.list_newest(session, limit=limit)


async def progress(workspace_id: UUID, operation_id: UUID, res: Resources, name: str = "operation") -> OperationRecord:
    """The progress of an operation, which a client may know by another `name`; raises NotFound."""
    async with res.db.read(workspace_id) as session:
        operation = await operations.get(session, operation_id)
    if operation is None:
        raise NotFound.of(name)
    return operation


def to_json(conversation: ConversationDraft, instruction: str | None = None) -> dict[str, Any]:
    """The payload of the job, with redacted texts only, so that no raw text is ever written."""
    first = conversation.drafts[0]
    scope, options = conversation.scope, first.options
    return {
        "scope": [scope.user_id, scope.agent_id, scope.run_id, scope.channel],
        "external_id": conversation.external_id,
        "infer": conversation.infer,
        "instruction": instruction,
        "use_llm": options.use_llm,
        "may_delete": options.may_delete,
        "received_at": first.received_at.isoformat(),
        "dedup": options.dedup,
        "asked": _given_to_json(first),
        "messages": [
            {"text": draft.clean, **SPEECH.dump_python(speech, mode="json")}
            for draft in conversation.drafts
            if (speech := draft.speech) is not None
        ],
    }


def from_json(workspace_id: UUID, stored: Mapping[str, Any]) -> ConversationDraft:
    """The conversation that `to_json` was given, its texts redacted."""
    scope, infer = Scope(workspace_id, *stored["scope"]), stored["infer"]
    options = Options(
        dedup=stored["dedup"], use_llm=stored["use_llm"], record=not infer, may_delete=stored["may_delete"]
    )
    given, received_at = _parse_given(stored["asked"]), datetime.fromisoformat(stored["received_at"])
    drafts = [
        Draft(scope, message["text"], given, options, received_at, SPEECH.validate_python(message))
        for message in stored["messages"]
    ]
    return ConversationDraft(scope, drafts, stored["external_id"], infer=infer, instruction=stored["instruction"])


def consolidation_payload(
    conversation: ConversationDraft, first: Draft, conversation_id: UUID, begin: int, end: int
) -> dict[str, Any]:
    """The payload of a job that curates the stored turns `begin` to `end`, without their texts. `first`: one of the
    drafts, redacted."""
    return {
        "conversation_id": str(conversation_id),
        "first": begin,
        "last": end,
        "run_id": conversation.scope.run_id,
        "instruction": conversation.instruction,
        "dedup": first.options.dedup,
        "may_delete": first.options.may_delete,
        "asked": _given_to_json(first),
    }


def from_turns(
    payload: Mapping[str, Any], scope: Scope, turns: Sequence[TurnContent], now: datetime
) -> ConversationDraft:
    """The conversation of a consolidation payload, with its turns read back."""
    given = _parse_given(payload["asked"])
    options = Options(dedup=payload["dedup"], may_delete=payload["may_delete"])
    whole = replace(scope, run_id=payload["run_id"])
    drafts = [
        Draft(whole, turn.text, given, options, now, Speech(turn.role, turn.speaker, turn.timestamp)) for turn in turns
    ]
    stored = [turn.place for turn in turns]
    return ConversationDraft(whole, drafts, None, infer=True, instruction=payload["instruction"], stored=stored)


GIVEN, SPEECH = TypeAdapter(CallerFields), TypeAdapter(Speech)


def _given_to_json(draft: Draft) -> dict[str, Any]:
    given = replace(draft.given, tags=draft.tags, metadata=draft.metadata)
    asked = GIVEN.dump_python(given, mode="json", exclude={"embedding", "dedup_filter"}, exclude_defaults=True)
    return {**asked, "filters": given.dedup_filter and filters.write(given.dedup_filter)}


def _parse_given(stored: Mapping[str, Any]) -> CallerFields:
    dedup_filter = filters.read(stored["filters"]) if stored["filters"] else None
    return replace(GIVEN.validate_python(stored), dedup_filter=dedup_filter)
