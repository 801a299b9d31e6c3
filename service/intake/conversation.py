"""Conversations to be stored, and their form in the payloads of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import TypeAdapter

from service.conversations.statements.turns import NewTurn, StoredTurn
from service.domain import filters
from service.domain.conversation import Turn
from service.domain.draft import CallerFields, Draft, Options, Speech
from service.domain.scope import Scope
from service.providers.protocols import Vector

GIVEN, OPTIONS, SPEECH = TypeAdapter(CallerFields), TypeAdapter(Options), TypeAdapter(Speech)
NOT_NEEDED = {"strict_size", "summarise", "embed_later"}
"""Options that concern a single text, or were used up before the job."""


@dataclass(frozen=True, slots=True)
class ConversationDraft:
    """Messages of one scope, in order; `external_id` names the conversation, None makes a new one.

    `infer`: whether facts are extracted, `instruction` replaces the instruction of the extraction. `stored`: its turns,
    if they are already stored and only the facts are missing.
    """

    scope: Scope
    drafts: Sequence[Draft]
    external_id: str | None
    infer: bool = False
    instruction: str | None = None
    stored: Sequence[StoredTurn] | None = None

    def __post_init__(self) -> None:
        self.scope.require_owner()  # a conversation is never shared by the workspace, nor are its facts

    def to_json(self) -> dict[str, Any]:
        """The payload of a job that stores it. Its messages and its instruction are redacted, so that no raw text is
        ever written."""
        first, scope = self.drafts[0], self.scope
        return {
            "scope": [scope.user_id, scope.agent_id, scope.run_id, scope.channel],
            "external_id": self.external_id,
            "infer": self.infer,
            "received_at": first.received_at.isoformat(),
            **self._request_to_json(first),
            "messages": [
                {"text": draft.clean, **SPEECH.dump_python(speech, mode="json")}
                for draft in self.drafts
                if (speech := draft.speech) is not None
            ],
        }

    @classmethod
    def from_json(cls, workspace_id: UUID, stored: Mapping[str, Any]) -> Self:
        """The conversation of such a payload."""
        scope, received_at = Scope(workspace_id, *stored["scope"]), datetime.fromisoformat(stored["received_at"])
        given, options = _read_request(stored)
        drafts = [
            Draft(scope, message["text"], given, options, received_at, SPEECH.validate_python(message))
            for message in stored["messages"]
        ]
        return cls(scope, drafts, stored["external_id"], stored["infer"], stored["instruction"])

    def turns_to_json(self, first: Draft, conversation_id: UUID, begin: int, end: int) -> dict[str, Any]:
        """The payload of a job that curates its stored turns `begin` to `end`, without their texts. `first`: one of the
        drafts, redacted."""
        return {
            "conversation_id": str(conversation_id),
            "first": begin,
            "last": end,
            "run_id": self.scope.run_id,
            **self._request_to_json(first),
        }

    @classmethod
    def from_turns(cls, payload: Mapping[str, Any], scope: Scope, turns: Sequence[Turn], now: datetime) -> Self:
        """The conversation of such a payload, with its turns read back."""
        given, options = _read_request(payload)
        run_scope = replace(scope, run_id=payload["run_id"])
        drafts = [
            Draft(run_scope, turn.text, given, options, now, Speech(turn.role, turn.speaker, turn.timestamp))
            for turn in turns
        ]
        stored = [StoredTurn(turn.id, turn.conversation_id, turn.index) for turn in turns]
        return cls(run_scope, drafts, None, infer=True, instruction=payload["instruction"], stored=stored)

    def _request_to_json(self, first: Draft) -> dict[str, Any]:
        given = replace(first.given, tags=first.tags, metadata=first.metadata)
        dedup_filter = given.dedup_filter and filters.write(given.dedup_filter)
        asked = GIVEN.dump_python(given, mode="json", exclude={"embedding", "dedup_filter"}, exclude_defaults=True)
        return {
            "instruction": self.instruction,
            "options": OPTIONS.dump_python(first.options, exclude=NOT_NEEDED, exclude_defaults=True),
            "asked": {**asked, "filters": dedup_filter},
        }


def _read_request(payload: Mapping[str, Any]) -> tuple[CallerFields, Options]:
    stored = payload["asked"]
    dedup_filter = filters.read(stored["filters"]) if stored["filters"] else None
    given = replace(GIVEN.validate_python(stored), dedup_filter=dedup_filter)
    return given, OPTIONS.validate_python(payload["options"])


def new_turn(draft: Draft, vector: Vector | None, weights: Mapping[int, float] | None = None) -> NewTurn:
    """The message as a turn. `vector` None: a job makes it; `weights`: of BM25, if already known."""
    speech = draft.speech
    assert speech is not None, "a conversation is made of messages"
    return NewTurn(speech.role, speech.speaker, draft.clean, draft.timestamp, vector, weights=weights)
