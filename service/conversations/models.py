"""Request and response models of conversations and turns."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from service.domain.conversation import Turn
from service.domain.query import Detail
from service.domain.text import RedactionCount, sha256
from service.http.free_json import JsonObject
from service.http.schemas import (
    Filled,
    Id,
    Name,
    NextCursor,
    OfAgent,
    OfChannel,
    OfUser,
    RequestModel,
    ResponseModel,
    Role,
    ScopeFields,
    Secretless,
    Speaker,
    Text,
    Time,
    Vector,
    example,
    iso,
)

MAX_INDEX = 2**31 - 2


class StoreTurnRequest(RequestModel):
    """One turn. With `turn_index`, repeating it returns the stored turn (200); a different text is a conflict (409)."""

    model_config = example(role="user", content="I moved to Lisbon last week.", turn_index=0)

    role: Role = Field(description="user, assistant, system or tool; any other word is accepted")
    content: Text = Field(description="What was said; redacted")
    name: Speaker | None = Field(None, description="Name of the speaker")
    turn_index: int | None = Field(None, ge=0, le=MAX_INDEX, description="Its index, from 0; default: the end")
    timestamp: Time | None = Field(None, description="When it was said; default now")
    token_count: int | None = Field(None, ge=0, le=2**31 - 1, description="Number of tokens; default: estimated")
    model: Annotated[str, Field(min_length=1, max_length=100), Secretless] | None = Field(
        None, description="The model that wrote it"
    )
    metadata: JsonObject = Field(default_factory=dict, description="Your own data")
    embedding: Vector | None = Field(None, description="Your own vector, of the service's dimension")


class WithdrawnSpanItem(ResponseModel):
    """A part of a turn that is no longer true."""

    start: int = Field(description="Index of its first character in `content`, from 0")
    end: int = Field(description="Index after its last character")
    reason: Literal["deleted", "expired", "updated", "superseded"] = Field(description="What happened to its memory")
    memory_id: Id | None = Field(description="UUID of the memory extracted from it; null: none")
    replaced_by: Id | None = Field(description="UUID of the memory that replaces it; null: none")


class TurnListItem(ResponseModel):
    """A turn in a list: what callers act on. With detail=full it has every field of a TurnResponse."""

    model_config = ConfigDict(extra="allow")

    id: Id = Field(description="UUID")
    conversation_id: Id = Field(description="UUID of its conversation")
    external_id: str | None = Field(description="The name of its conversation; null: not known")
    turn_index: int = Field(description="Its index in the conversation, from 0; there may be gaps")
    role: str = Field(description="user, assistant, system, tool, or any other word")
    name: str | None = Field(description="Name of the speaker; null: not given")
    content: str = Field(
        description="What was said, redacted. Sentences whose facts were deleted, changed or superseded are left out; "
        "only the transcript of a conversation shows changed and superseded ones, and marks them in `withdrawn`"
    )
    metadata: dict[str, Any] = Field(description="As you stored it")
    timestamp: Time = Field(description="When it was said")
    user_id: OfUser
    agent_id: OfAgent
    channel: OfChannel


class TurnResponse(TurnListItem):
    """A turn as stored, with every field."""

    model_config = ConfigDict(extra="forbid")

    next_turn_id: Id | None = Field(description="UUID of the turn after it; null: it is the last one")
    withdrawn: list[WithdrawnSpanItem] = Field(
        description="Parts of `content` that are no longer true; only in a conversation's transcript",
        default_factory=list,
    )
    content_hash: str = Field(description="SHA-256 of the content, in hexadecimal")
    token_count: int | None = Field(description="As given, else estimated as bytes of UTF-8 / 4; null: not known")
    model: str | None = Field(description="The model that wrote it; null: not given")
    run_id: str | None = Field(description="Equal to external_id; null: not known")
    archived: bool = Field(description="Whether its conversation is archived")
    embedding: Literal["stored", "queued"] = Field(
        description="stored, or queued: found by its words until its vector is computed"
    )
    created_at: Time = Field(description="When it was stored")


def turn_fields(turn: Turn) -> dict[str, Any]:
    """Fields whose names differ from the domain's."""
    return {
        "external_id": turn.scope.run_id,
        "turn_index": turn.index,
        "name": turn.speaker,
        "content": turn.text,
        "withdrawn": [WithdrawnSpanItem.of(span) for span in turn.withdrawn],
        "content_hash": turn.hash if turn.whole is None else sha256(turn.text),
        "embedding": "stored" if turn.embedded else "queued",
    }


def turn_item(turn: Turn, detail: Detail) -> dict[str, Any]:
    """A TurnListItem, with detail=full a TurnResponse, for responses written without a model."""
    if detail == "full":
        return TurnResponse.of(turn, **turn_fields(turn)).model_dump(mode="json")
    return {
        "id": turn.id,
        "conversation_id": turn.conversation_id,
        "external_id": turn.scope.run_id,
        "turn_index": turn.index,
        "role": turn.role,
        "name": turn.speaker,
        "content": turn.text,
        "metadata": turn.metadata,
        "timestamp": iso(turn.timestamp),
        "user_id": turn.scope.user_id,
        "agent_id": turn.scope.agent_id,
        "channel": turn.scope.channel,
    }


MAX_TITLE = 500


class CreateConversationRequest(ScopeFields):
    """A conversation to open, named by `external_id` or its alias `run_id`; by default a name is generated."""

    model_config = example(user_id="alice", external_id="chat-17", title="Moving to Lisbon")

    external_id: Name | None = Field(None, description="Your own name for it; opening it twice is allowed")
    title: Filled | None = Field(None, max_length=MAX_TITLE, description="Title, for people")
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

    title: Filled | None = Field(None, max_length=MAX_TITLE, description="Title, for people")
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
