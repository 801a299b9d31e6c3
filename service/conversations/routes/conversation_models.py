"""Request and response models for conversations and turns."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from service.domain.conversation import Conversation
from service.episodes.turn_models import TurnListItem, TurnResponse
from service.http.free_json import JsonObject
from service.http.schemas import (
    Filled,
    Id,
    Name,
    NextCursor,
    OfAgent,
    OfChannel,
    OfUser,
    RedactionCount,
    RequestModel,
    ResponseModel,
    ScopeFields,
    Time,
    example,
)
from service.memories.routes.memory_models import MemoryItem
from service.search.routes.search_models import Answerable, AnswerProbability, HitProbability

MAX_TITLE = 500


class CreateConversationRequest(ScopeFields):
    """A conversation to open, named by `external_id` or its alias `run_id`; by default a name is generated."""

    model_config = example(user_id="alice", external_id="chat-17", title="Moving to Lisbon")

    external_id: Name | None = Field(None, description="Your own name for it; opening it twice is allowed")
    title: Filled | None = Field(None, max_length=MAX_TITLE, description="For people")
    started_at: Time | None = Field(None, description="Default now")
    metadata: JsonObject = Field(default_factory=dict, description="Your own data")

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.external_id is not None and self.run_id is not None and self.external_id != self.run_id:
            raise ValueError("external_id: give external_id or run_id, not both")
        return self


class PatchConversationRequest(RequestModel):
    """Only the given fields change. `title` may be null; a null metadata value removes the key."""

    model_config = example(title="Moving to Porto", archived=False)

    title: Filled | None = Field(None, max_length=MAX_TITLE, description="For people")
    archived: bool | None = Field(
        None,
        description="true: lists and searches omit it and its turns, until a new turn or false restores it",
    )
    consolidated: bool | None = Field(None, description="Whether facts were extracted; a new turn resets it")
    metadata: JsonObject = Field(default_factory=dict, description="Merged key by key; a null value removes the key")


class ConversationResponse(ResponseModel):
    """A conversation without its turns."""

    id: Id = Field(description="UUID")
    external_id: str = Field(description="Its name: yours, or a generated one")
    user_id: OfUser
    agent_id: OfAgent
    run_id: str = Field(description="Equal to external_id")
    channel: OfChannel
    title: str | None = Field(description="Title, for people; null: none")
    started_at: Time = Field(description="As given when opened; default: the time of opening")
    turn_count: int = Field(description="Number of turns")
    next_index: int = Field(
        description="The `turn_index` that the next turn gets by default; greater than turn_count if indexes have gaps"
    )
    consolidated: bool = Field(description="Whether facts were extracted from all its turns; a new turn resets it")
    consolidated_at: Time | None = Field(description="When they were extracted; null: not yet")
    patterns_extracted: bool = Field(
        description="Whether the job `patterns` has processed it; a new turn or tool invocation resets it"
    )
    archived: bool = Field(
        description="true: lists and searches omit it and its turns, until a new turn or false restores it"
    )
    metadata: dict[str, Any] = Field(description="Your own data")
    version: int = Field(description="Starts at 1, incremented by each change of it or its turns; the ETag")
    created_at: Time = Field(description="When it was opened")
    updated_at: Time = Field(description="When it or its turns last changed")


class StoreTurnResponse(TurnResponse):
    """The stored turn, with what was redacted."""

    redactions: list[RedactionCount] = Field(
        description="What was redacted, by kind; may be empty", default_factory=list
    )
    warnings: list[str] = Field(description="What was deferred, each as `code: sentence`", default_factory=list)


class ConversationDetailsResponse(ConversationResponse):
    """A conversation with a page of its turns, in order; pass `next_cursor` as `cursor` for the next page."""

    turns: list[TurnResponse] = Field(description="At most `limit` turns, by turn_index")
    next_cursor: NextCursor = None


class ConversationPage(ResponseModel):
    """Newest first."""

    results: list[ConversationResponse] = Field(description="At most `limit` conversations")
    next_cursor: NextCursor = None


class TurnList(ResponseModel):
    """Newest first."""

    results: list[TurnListItem] = Field(description="At most `limit` turns")
    next_cursor: NextCursor = None


class TurnSearchHit(TurnListItem):
    """A turn found by a search."""

    score: float = Field(description="The value that hits are ranked by; comparable within this response only")
    similarity: float | None = Field(
        description="Calibrated cosine to the query, 0..1; null for a hit found by its words only"
    )
    answer_probability: HitProbability


class TurnSearchResponse(ResponseModel):
    """Best first."""

    results: list[TurnSearchHit] = Field(description="At most `limit` turns")
    next_cursor: NextCursor = None
    answerable: Answerable = None
    answer_probability: AnswerProbability = None
    warnings: list[str] = Field(description="What was skipped, each as `code: sentence`", default_factory=list)


class ContextMemoryItem(MemoryItem):
    """A memory that is relevant to the conversation."""

    score: float = Field(description="Its score in a search: 0..1, times the factors")
    similarity: float | None = Field(description="Calibrated cosine to the query, 0..1; null without a vector")


class ConversationContextResponse(ResponseModel):
    """Turns and memories for a prompt, as lists and as text."""

    conversation_id: Id = Field(description="UUID")
    turns: list[TurnListItem] = Field(description="The latest turns that fit, without gaps")
    memories: list[ContextMemoryItem] = Field(
        description="Relevant memories of the same user or agent, without its own turns"
    )
    context: str = Field(description="Turns and memories as text for a prompt")
    tokens: int = Field(description="Estimated tokens of `context`: bytes of UTF-8 / 4")
    max_tokens: int = Field(description="As requested")
    warnings: list[str] = Field(description="What was skipped, each as `code: sentence`", default_factory=list)


def conversation_fields(conversation: Conversation, turn_count: int) -> dict[str, Any]:
    """Fields whose names or values differ from the domain's."""
    return {
        "run_id": conversation.external_id,
        "turn_count": turn_count,
        "consolidated": conversation.consolidated_at is not None,
    }
