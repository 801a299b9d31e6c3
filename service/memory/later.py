"""How is a conversation taken now and stored soon?

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
from service.memory.record import Conversation
from service.memory.transactions import keep, write_transaction
from service.pipeline import pii, size
from service.resources import Resources

KIND = "record"


async def accept(conversation: Conversation, res: Resources, request: WriteContext) -> UUID:
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


def to_json(conversation: Conversation, instruction: str | None = None) -> dict[str, Any]:
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
        "asked": _kept_asked(first),
        "messages": [_message(draft) for draft in conversation.drafts],
    }


def kept(conversation: Conversation, first: Draft, conversation_id: UUID, begin: int, end: int) -> dict[str, Any]:
    """What a job needs to curate turns `begin` to `end` that are stored already, without their texts. `first`: one of
    the drafts, redacted."""
    return {
        "conversation_id": str(conversation_id),
        "first": begin,
        "last": end,
        "run_id": conversation.scope.run_id,
        "instruction": conversation.instruction,
        "dedup": first.options.dedup,
        "asked": _kept_asked(first),
    }


def again(kept: Mapping[str, Any], scope: Scope, turns: Sequence[TurnContent], now: datetime) -> Conversation:
    """The conversation that `kept` was given, with its turns read back."""
    asked, options = _asked(kept["asked"]), Options(dedup=kept["dedup"])
    whole = replace(scope, run_id=kept["run_id"])
    drafts = [
        Draft(whole, turn.text, asked, options, now, Speech(turn.role, turn.speaker, turn.timestamp)) for turn in turns
    ]
    stored = [turn.place for turn in turns]
    return Conversation(whole, drafts, None, infer=True, instruction=kept["instruction"], stored=stored)


def _kept_asked(draft: Draft) -> dict[str, Any]:
    asked = draft.given
    return {
        "type": asked.type,
        "type_confidence": asked.type_confidence,
        "importance": [asked.importance.value, asked.importance.level] if asked.importance else None,
        "tags": list(draft.tags),
        "metadata": dict(draft.metadata),
        "timestamp": _iso(asked.timestamp),
        "timezone": asked.timezone,
        "t_valid": _iso(asked.t_valid),
        "t_invalid": _iso(asked.t_invalid),
        "expires_at": _iso(asked.expires_at),
        "session_id": asked.session_id,
        "filters": filters.written(asked.compare) if asked.compare else None,
    }


def from_json(workspace_id: UUID, kept: Mapping[str, Any]) -> Conversation:
    """The conversation that `to_json` was given, its texts redacted."""
    user_id, agent_id, run_id, channel = kept["scope"]
    scope = Scope(workspace_id, user_id, agent_id, run_id, channel)
    asked = _asked(kept["asked"])
    options = Options(dedup=kept["dedup"], use_llm=kept["use_llm"], record=not kept["infer"])
    received_at = datetime.fromisoformat(kept["received_at"])
    drafts = [_draft(each, scope, asked, options, received_at) for each in kept["messages"]]
    return Conversation(scope, drafts, kept["external_id"], infer=kept["infer"], instruction=kept["instruction"])


def _message(draft: Draft) -> dict[str, Any]:
    spoken = draft.speech
    assert spoken is not None, "a record is somebody's message"
    return {
        "text": draft.clean,
        "role": spoken.role,
        "speaker": spoken.speaker,
        "timestamp": _iso(spoken.timestamp),
    }


def _draft(
    kept: Mapping[str, Any], scope: Scope, asked: CallerFields, options: Options, received_at: datetime
) -> Draft:
    spoken = Speech(kept["role"], kept["speaker"], _moment(kept["timestamp"]))
    return Draft(scope, kept["text"], asked, options, received_at, spoken)


def _asked(kept: Mapping[str, Any]) -> CallerFields:
    return CallerFields(
        type=MemoryType(kept["type"]) if kept["type"] else None,
        type_confidence=kept["type_confidence"],
        importance=Importance(*kept["importance"]) if kept["importance"] else None,
        tags=tuple(kept["tags"]),
        metadata=kept["metadata"],
        timestamp=_moment(kept["timestamp"]),
        timezone=kept["timezone"],
        t_valid=_moment(kept["t_valid"]),
        t_invalid=_moment(kept["t_invalid"]),
        expires_at=_moment(kept.get("expires_at")),
        session_id=kept["session_id"],
        compare=filters.read(kept["filters"]) if kept.get("filters") else None,
    )


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _moment(kept: str | None) -> datetime | None:
    return datetime.fromisoformat(kept) if kept else None
