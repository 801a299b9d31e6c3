"""Conversations that are accepted now and stored soon, and what a job needs to curate stored turns.

`Prefer: respond-async`: the messages pass PII at once, then they are safe in an `operation` row with its job, and the
caller gets its id. The job runs the same verb as a direct request under the idempotency key `operation:<id>`, so a
job that dies after the commit and runs again finds the answer and stores nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.db.episodes.conversations import TurnContent
from service.db.jobs import operations, queue
from service.domain import filters
from service.domain.draft import CallerFields, Draft, Options, Speech
from service.domain.job import NewJob
from service.domain.kinds import Importance, MemoryType
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.memory.record import ConversationDraft
from service.memory.transactions import keep, write_transaction
from service.pipeline import pii, size
from service.resources import Resources

KIND = "record"


async def accept(conversation: ConversationDraft, res: Resources, request: WriteContext) -> UUID:
    """Puts the redacted conversation into an operation and returns its id; raises PiiRejected like a direct request."""
    checked = [await size.check(draft, res) for draft in conversation.drafts]
    redacted = list(await asyncio.gather(*(pii.redact(draft, res) for draft in checked)))
    prompt = conversation.instruction
    instruction = (await pii.clean(prompt, "prompt", res))[0] if prompt else None
    operation_id = uuid7()
    scope = conversation.scope
    async with write_transaction(scope, res, request) as session:
        job = NewJob("ingest", payload={"operation_id": str(operation_id)}, max_attempts=res.settings.job_max_attempts)
        payload = to_json(replace(conversation, drafts=redacted), instruction)
        await operations.add(session, scope.workspace_id, operation_id, KIND, payload)
        await queue.enqueue(session, scope.workspace_id, [job])
        await keep(session, scope.workspace_id, operation_id, request)
    return operation_id


def to_json(conversation: ConversationDraft, instruction: str | None = None) -> dict[str, Any]:
    """What the job needs, redacted: the texts are the clean ones, so that no raw text is ever written."""
    first = conversation.drafts[0]
    scope, options = conversation.scope, first.options
    return {
        "scope": [scope.user_id, scope.agent_id, scope.run_id, scope.channel],
        "external_id": conversation.external_id,
        "infer": conversation.infer,
        "instruction": instruction,
        "use_llm": options.use_llm,
        "received_at": first.received_at.isoformat(),
        "dedup": options.dedup,
        "asked": _given_to_json(first),
        "messages": [_message(draft) for draft in conversation.drafts],
    }


def consolidation_payload(
    conversation: ConversationDraft, first: Draft, conversation_id: UUID, begin: int, end: int
) -> dict[str, Any]:
    """What a job needs to curate turns `begin` to `end` that are stored already, without their texts. `first`: one of
    the drafts, redacted."""
    return {
        "conversation_id": str(conversation_id),
        "first": begin,
        "last": end,
        "run_id": conversation.scope.run_id,
        "instruction": conversation.instruction,
        "dedup": first.options.dedup,
        "asked": _given_to_json(first),
    }


def from_turns(
    payload: Mapping[str, Any], scope: Scope, turns: Sequence[TurnContent], now: datetime
) -> ConversationDraft:
    """The conversation of a consolidation payload, with its turns read back."""
    given, options = _given(payload["asked"]), Options(dedup=payload["dedup"])
    whole = replace(scope, run_id=payload["run_id"])
    drafts = [
        Draft(whole, turn.text, given, options, now, Speech(turn.role, turn.speaker, turn.timestamp)) for turn in turns
    ]
    stored = [turn.place for turn in turns]
    return ConversationDraft(whole, drafts, None, infer=True, instruction=payload["instruction"], stored=stored)


def _given_to_json(draft: Draft) -> dict[str, Any]:
    given = draft.given
    return {
        "type": given.type,
        "type_confidence": given.type_confidence,
        "importance": [given.importance.value, given.importance.level] if given.importance else None,
        "tags": list(draft.tags),
        "metadata": dict(draft.metadata),
        "timestamp": _iso(given.timestamp),
        "timezone": given.timezone,
        "t_valid": _iso(given.t_valid),
        "t_invalid": _iso(given.t_invalid),
        "expires_at": _iso(given.expires_at),
        "session_id": given.session_id,
        "filters": filters.written(given.compare) if given.compare else None,
    }


def from_json(workspace_id: UUID, stored_json: Mapping[str, Any]) -> ConversationDraft:
    """The conversation that `to_json` was given, its texts redacted."""
    user_id, agent_id, run_id, channel = stored_json["scope"]
    scope = Scope(workspace_id, user_id, agent_id, run_id, channel)
    given = _given(stored_json["asked"])
    options = Options(dedup=stored_json["dedup"], use_llm=stored_json["use_llm"], record=not stored_json["infer"])
    received_at = datetime.fromisoformat(stored_json["received_at"])
    drafts = [_draft(each, scope, given, options, received_at) for each in stored_json["messages"]]
    return ConversationDraft(
        scope, drafts, stored_json["external_id"], infer=stored_json["infer"], instruction=stored_json["instruction"]
    )


def _message(draft: Draft) -> dict[str, Any]:
    spoken = draft.speech
    assert spoken is not None, "a record is a message"
    return {
        "text": draft.clean,
        "role": spoken.role,
        "speaker": spoken.speaker,
        "timestamp": _iso(spoken.timestamp),
    }


def _draft(
    stored_json: Mapping[str, Any], scope: Scope, given: CallerFields, options: Options, received_at: datetime
) -> Draft:
    spoken = Speech(stored_json["role"], stored_json["speaker"], _moment(stored_json["timestamp"]))
    return Draft(scope, stored_json["text"], given, options, received_at, spoken)


def _given(stored_json: Mapping[str, Any]) -> CallerFields:
    return CallerFields(
        type=MemoryType(stored_json["type"]) if stored_json["type"] else None,
        type_confidence=stored_json["type_confidence"],
        importance=Importance(*stored_json["importance"]) if stored_json["importance"] else None,
        tags=tuple(stored_json["tags"]),
        metadata=stored_json["metadata"],
        timestamp=_moment(stored_json["timestamp"]),
        timezone=stored_json["timezone"],
        t_valid=_moment(stored_json["t_valid"]),
        t_invalid=_moment(stored_json["t_invalid"]),
        expires_at=_moment(stored_json.get("expires_at")),
        session_id=stored_json["session_id"],
        compare=filters.read(stored_json["filters"]) if stored_json.get("filters") else None,
    )


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _moment(stored_json: str | None) -> datetime | None:
    return datetime.fromisoformat(stored_json) if stored_json else None
