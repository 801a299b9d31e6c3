"""Request and response models for memories and their history."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from service.domain.draft import EmbeddingStatus
from service.domain.kinds import ClassificationSource, ImportanceBand, MemoryType
from service.domain.memory import LeanMemory, LifecycleState, Memory
from service.domain.query import Detail
from service.domain.relation import ConnectedMemoryItem
from service.domain.sizes import MAX_TEXT
from service.domain.temporal import TemporalDetails
from service.domain.text import is_blank
from service.domain.version import Version
from service.http.free_json import JsonObject
from service.http.schemas import (
    ChangeModel,
    Id,
    Metadata,
    NextCursor,
    ResponseModel,
    Tags,
    Time,
    TypeName,
    Unit,
    example,
    iso,
    refuse_reserved,
)
from service.language import entities, importance
from service.memories.values import MemoryHistoryItem, TotalCount


class MemoryItem(ResponseModel):
    """A memory in a list: what callers act on. With detail=full it has every field of a MemoryResponse."""

    model_config = ConfigDict(extra="allow")

    id: Id = Field(description="UUID")
    memory: str = Field(description="Its text, redacted", examples=["Prefers tea over coffee in the morning"])
    type: MemoryType = Field(description="One of seven types", examples=["Preference"])
    tags: list[str] = Field(description="Lower case; 100 at most", examples=[["drink", "morning:tea"]])
    categories: list[str] = Field(description="What it is about, lower case", examples=[["food"]])
    metadata: Metadata = Field(
        description="The caller's own; in a MemoryResponse also summary and entities", examples=[{"project": "atlas"}]
    )
    user_id: str | None = Field(description="End user; null: none", examples=["alice"])
    agent_id: str | None = Field(description="Agent or persona; null: none", examples=["guide"])
    run_id: str | None = Field(description="One run with its own facts; null: none", examples=["session-1"])
    channel: str = Field(description="Soft scope; _global is visible from every channel", examples=["_global"])
    role: str | None = Field(
        description="Role of the speaker, such as user or assistant; null: not a message", examples=["user"]
    )
    speaker: str | None = Field(description="Name of the speaker; null: unknown", examples=["Ana"])
    conversation_id: Id | None = Field(description="UUID of its conversation; null: none")
    timestamp: Time = Field(description="When it happened", examples=["2026-03-02T09:30:00+00:00"])
    t_valid: Time | None = Field(description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(description="Valid until this moment; null: no end")
    may_be_outdated_by: list[Id] = Field(
        description="Newer memories that may contradict it, latest first; in doubt both were kept"
    )
    archived: bool | SkipJsonSchema[None] = Field(None, description="true, or left out: only archived memories have it")


class MemoryResponse(MemoryItem):
    """A stored memory, with every field."""

    model_config = ConfigDict(extra="forbid")

    hash: str = Field(description="MD5 of the text, in hexadecimal", examples=["9e107d9d372bb6826bd81d3542a419d6"])
    type_confidence: float = Field(description="Confidence in the type, 0..1", examples=[0.85])
    classification_source: ClassificationSource = Field(description="How the type was determined", examples=["regex"])
    fact_confidence: float | None = Field(
        description="Confidence in a fact extracted from a conversation, 0..1; null for other memories", examples=[0.9]
    )
    current_confidence: float | None = Field(
        description="fact_confidence, 0..1; for a fact that was only inferred it decays weekly until the fact is "
        "stated again; null without a fact_confidence",
        examples=[0.9],
    )
    importance: float = Field(description="0..1", examples=[0.6])
    importance_level: int = Field(description="Importance on a scale of 1..10", examples=[6])
    importance_band: ImportanceBand = Field(description="The importance as a word", examples=["Standard"])
    tag_prefixes: list[str] = Field(
        description="The tags and their prefixes up to each : or /", examples=[["drink", "morning", "morning:tea"]]
    )
    temporal: TemporalDetails = Field(description="The times its text mentions, and until when it is valid")
    entities: dict[str, list[str]] = Field(
        description="Names in the text by kind, found shortly after storing", examples=[{"people": ["Ana"]}]
    )
    summary: str | None = Field(
        description="Its first sentence, 240 characters at most, set shortly after storing; null: not yet",
        examples=["Prefers tea"],
    )
    enriched: bool = Field(description="Whether entities and summary have been computed")
    enriched_at: Time | None = Field(
        description="When they were computed; null: not yet", examples=["2026-03-02T09:30:04+00:00"]
    )
    enrichment_attempts: int = Field(description="Attempts to compute them, at most 3", examples=[1])
    lifecycle_state: LifecycleState = Field(
        description="Its state; decaying: relevance below 0.25; deleted: listed only with state=deleted",
        examples=["active"],
    )
    archived: bool = Field(description="Archived memories are read only with include_archived")
    deleted_at: Time | None = Field(description="When it was deleted, with state=deleted; else null")
    embedding: EmbeddingStatus = Field(description="Whether its vector is stored or still to be computed")
    shared: bool = Field(description="Whether it belongs to the whole workspace instead of a user, agent or run")
    session_id: str | None = Field(description="The session_id it was stored with; null: none", examples=["session-1"])
    turn_index: int | None = Field(
        description="Index in the conversation, from 0, of a message stored verbatim; else null", examples=[12]
    )
    relevance: float = Field(description="0..1: 1 when stored, decays without use", examples=[0.97])
    salience: float = Field(description="0..1: starts as importance, grows with use and decays without", examples=[0.6])
    access_count: int = Field(description="How often it was found; updated within about a second", examples=[3])
    last_accessed: Time | None = Field(
        description="When it was last found, or stored if never found; null: unknown",
        examples=["2026-03-04T18:00:00+00:00"],
    )
    stale_at: Time | None = Field(
        description="When it was flagged as no longer valid or long unused (`ageing`); null: not flagged"
    )
    version: int = Field(description="Starts at 1, incremented by each change; the ETag of one memory", examples=[1])
    created_at: Time = Field(description="When it was stored", examples=["2026-03-02T09:30:01+00:00"])
    updated_at: Time = Field(description="When it was last changed", examples=["2026-03-02T09:30:01+00:00"])
    expires_at: Time | None = Field(description="When it expires; null: never")
    version_of: Id | None = Field(
        description="For a past version, the memory that had this text from t_valid to t_invalid; else null"
    )


class MemoryPage(ResponseModel):
    """Newest first by default; for the next page send `next_cursor` as `cursor` with the same order."""

    results: list[MemoryItem] = Field(description="At most `limit` memories")
    next_cursor: NextCursor = None
    total: TotalCount | None = Field(None, description="Number of matches, with count=true; else null")
    warnings: list[str] = Field(description="What was omitted, each as `code: sentence`", default_factory=list)


class TaggedMemoryItem(MemoryItem):
    """A memory that has the tag."""

    score: float = Field(description="Its importance, 0..1, which the list is ordered by", examples=[0.6])
    similarity: float | None = Field(description="Always null, as there is no query")
    connected: list[ConnectedMemoryItem] = Field(description="The memories it is most strongly connected to")


class TaggedMemoryPage(ResponseModel):
    """Most important first, then latest."""

    results: list[TaggedMemoryItem] = Field(description="At most `limit` memories")
    next_cursor: NextCursor = None


class MemoryVersionItem(ResponseModel):
    """The text of a memory that was valid in the half-open [t_valid, t_invalid)."""

    id: Id = Field(description="UUID of the memory itself, of its past version, or of the memory it superseded")
    memory: str = Field(description="Its text", examples=["Lives in Berlin"])
    timestamp: Time = Field(description="When this text was last stated")
    t_valid: Time | None = Field(description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(description="Valid until this moment; null: no end")
    is_current: bool = Field(description="Whether it is the memory's current text")


class MemoryHistoryResponse(ResponseModel):
    """Oldest first; available after the memory was deleted too."""

    results: list[MemoryHistoryItem] = Field(
        description="At most `limit` changes, in the order in which they were recorded"
    )
    versions: list[MemoryVersionItem] = Field(
        description="Its texts in order of validity, however they arrived; empty once the memory is deleted"
    )
    next_cursor: NextCursor = None


def memory_response(memory: Memory) -> MemoryResponse:
    return MemoryResponse(**memory_fields(memory))


def memory_item(memory: LeanMemory, detail: Detail) -> dict[str, Any]:
    """A MemoryItem, with detail=full a MemoryResponse, for responses written without a model."""
    if detail == "full":
        assert isinstance(memory, Memory), "read with fewer fields than the answer has"
        return memory_json(memory)
    return _with_times_as_text(_lean_fields(memory)) | ({"archived": True} if memory.archived else {})


def memory_json(memory: Memory) -> dict[str, Any]:
    """A MemoryResponse, for responses written without a model."""
    return _with_times_as_text(memory_fields(memory))


def _with_times_as_text(named: dict[str, Any]) -> dict[str, Any]:
    return {name: iso(each) if isinstance(each, datetime) else each for name, each in named.items()}


def _lean_fields(memory: LeanMemory) -> dict[str, Any]:
    return {
        "id": str(memory.id),  # pydantic takes ten times as long for the driver's UUIDs
        "memory": memory.text,
        "type": memory.kind.type,
        "tags": list(memory.tags),
        "categories": list(memory.categories),
        "metadata": memory.metadata,
        "user_id": memory.scope.user_id,
        "agent_id": memory.scope.agent_id,
        "run_id": memory.scope.run_id,
        "channel": memory.scope.channel,
        "role": memory.role,
        "speaker": memory.speaker,
        "conversation_id": memory.conversation_id and str(memory.conversation_id),
        "timestamp": memory.timestamp,
        "t_valid": memory.t_valid,
        "t_invalid": memory.t_invalid,
        "may_be_outdated_by": [str(each) for each in memory.may_be_outdated_by],
    }


SAME_NAME = [
    name for name in MemoryResponse.model_fields if hasattr(Memory, name) and name not in MemoryItem.model_fields
]


def memory_fields(memory: Memory) -> dict[str, Any]:
    """The fields of a memory; the four values of enrichment also appear in metadata."""
    named = _entities(memory)
    return {
        **_lean_fields(memory),
        **{name: getattr(memory, name) for name in SAME_NAME},
        "type_confidence": memory.kind.confidence,
        "classification_source": memory.kind.source,
        "importance": memory.importance.value,
        "importance_level": memory.importance.level,
        "importance_band": importance.band(memory.importance.value),
        "metadata": _metadata(memory, named),
        "temporal": memory.temporal,
        "entities": named,
        "enriched": memory.enriched_at is not None,
        "archived": memory.archived,
        "embedding": memory.embedding_status,
        "shared": memory.scope.is_shared,
    }


def _entities(memory: Memory) -> dict[str, list[str]]:
    spans = [entities.EntitySpan(name, kind, 0, 0) for kind, names in memory.entities.items() for name in names]
    return entities.group(spans)


def _metadata(memory: Memory, named: dict[str, list[str]]) -> dict[str, Any]:
    if memory.enriched_at is None:
        return dict(memory.metadata)
    return {
        "enriched_at": memory.enriched_at.isoformat(),
        "enrichment_attempts": memory.enrichment_attempts,
        "summary": memory.summary,
        "entities": named,
        **memory.metadata,  # the caller's own values take precedence
    }


def version_item(version: Version) -> MemoryVersionItem:
    return MemoryVersionItem.of(
        version, memory=version.text, timestamp=version.said_at[-1], is_current=not version.is_past
    )


class PatchMemoryRequest(ChangeModel):
    """Only the given fields change. `metadata` is merged key by key, null removes a key; `tags` replaces all tags."""

    model_config = example(importance=0.9, metadata={"reviewed": True})
    nullable = frozenset({"tags", "metadata", "t_valid", "t_invalid", "expires_at"})

    content: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_TEXT,
        description="The new text; it is redacted, its times and categories are determined again, and a job embeds it",
        examples=["Lives in Porto since May."],
    )
    tags: Tags | None = Field(
        None,
        description="Replaces all tags; null removes them. A list, or one comma-separated string",
        examples=[["home"]],
    )
    importance: Unit | None = Field(None, description="0..1")
    importance_level: int | None = Field(None, ge=1, le=10, description="1..10; instead of importance")
    type: TypeName | None = Field(None, description="One of seven types; a new text does not change it")
    type_confidence: Unit | None = Field(None, description="Confidence in the type, 0..1")
    fact_confidence: Unit | None = Field(None, description="Confidence in the fact, 0..1")
    metadata: JsonObject | None = Field(
        None,
        description="Merged key by key; a null value removes the key, null removes all keys",
        examples=[{"reviewed": True}],
    )
    t_valid: Time | None = Field(None, description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(None, description="Valid until this moment; null: no end")
    expires_at: Time | None = Field(None, description="When it expires; null: never")
    timestamp: Time | None = Field(None, description="Only with allow_system_fields")
    updated_at: Time | None = Field(None, description="Only with allow_system_fields")
    last_accessed: Time | None = Field(None, description="Only with allow_system_fields")
    allow_system_fields: bool = Field(False, description="Needs the right memory:admin")
    reserves_names: ClassVar[bool] = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if {"importance", "importance_level"} <= self.model_fields_set:
            raise ValueError("importance: give importance or importance_level, not both")
        if self.content is not None and is_blank(self.content):
            raise ValueError("content: must not be blank")
        if self.reserves_names:
            refuse_reserved(self.metadata)
        return self


class DeletedMemoryResponse(ResponseModel):
    """The outcome of deleting a memory."""

    id: Id = Field(description="UUID of the memory")
    deleted: bool = Field(description="Always true")
    already_deleted: bool = Field(description="Whether it had been deleted before")
    message: str = Field(
        description="The outcome as a sentence", examples=["Memory 0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c deleted"]
    )
