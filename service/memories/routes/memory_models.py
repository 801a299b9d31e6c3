"""Answers that show stored memories and their history."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from service.domain.decision import Action
from service.domain.draft import EmbeddingStatus
from service.domain.kinds import ClassificationSource, ImportanceBand, MemoryType
from service.domain.memory import HistoryEntry, LifecycleState, Memory
from service.domain.version import Version
from service.http.schemas import (
    Id,
    Metadata,
    NextCursor,
    OfAgent,
    OfRun,
    OfUser,
    ResponseModel,
    TemporalDetails,
    Time,
    iso,
    temporal_details,
)
from service.language import entities, importance


class MemoryResponse(ResponseModel):
    """A stored memory."""

    id: Id = Field(description="UUID")
    memory: str = Field(description="Its text, redacted", examples=["Prefers tea over coffee in the morning"])
    hash: str = Field(description="MD5 of the text, in hexadecimal", examples=["9e107d9d372bb6826bd81d3542a419d6"])
    type: MemoryType = Field(description="One of seven types", examples=["Preference"])
    type_confidence: float = Field(description="0..1: how sure the type is", examples=[0.85])
    classification_source: ClassificationSource = Field(description="Who determined the type", examples=["regex"])
    fact_confidence: float | None = Field(
        description="0..1: how sure a fact out of a conversation is; null for what was stored as it is", examples=[0.9]
    )
    current_confidence: float | None = Field(
        description="0..1: fact_confidence, or what is left of it where the fact was only inferred: it fades by the "
        "week until the fact is said again; null without a fact_confidence",
        examples=[0.9],
    )
    importance: float = Field(description="0..1", examples=[0.6])
    importance_level: int = Field(description="The same as 1..10", examples=[6])
    importance_band: ImportanceBand = Field(description="The importance in a word", examples=["Standard"])
    tags: list[str] = Field(description="In lower case, 100 at most", examples=[["drink", "morning:tea"]])
    tag_prefixes: list[str] = Field(
        description="The tags and what stands before each : or /", examples=[["drink", "morning", "morning:tea"]]
    )
    categories: list[str] = Field(description="What it is about, in lower case", examples=[["food"]])
    metadata: Metadata = Field(description="The caller's own", examples=[{"project": "atlas"}])
    temporal: TemporalDetails = Field(description="The times that its text names, and until when it is valid")
    entities: dict[str, list[str]] = Field(
        description="Names in it by kind, found shortly after storing", examples=[{"people": ["Ana"]}]
    )
    summary: str | None = Field(
        description="Its first sentence, 240 characters at most, made shortly after storing; null: not yet",
        examples=["Prefers tea"],
    )
    enriched: bool = Field(description="Whether entities and summary have been looked for")
    enriched_at: Time | None = Field(description="When that was; null: not yet", examples=["2026-03-02T09:30:04+00:00"])
    enrichment_attempts: int = Field(description="From 0; after 3 it is given up", examples=[1])
    lifecycle_state: LifecycleState = Field(
        description="Where it stands; decaying: of a relevance below 0.25; deleted: shown by state=deleted alone",
        examples=["active"],
    )
    archived: bool = Field(description="Retired: reads leave it out unless include_archived is set")
    deleted_at: Time | None = Field(description="With state=deleted: when it was deleted; else null")
    embedding: EmbeddingStatus = Field(description="Whether its vector is there, or still to be made")
    user_id: str | None = Field(description="End user; null: none", examples=["alice"])
    agent_id: str | None = Field(description="Agent or persona; null: none", examples=["guide"])
    run_id: str | None = Field(description="One run, whose facts are its own; null: none", examples=["session-1"])
    channel: str = Field(description="Soft scope; _global is seen from every channel", examples=["_global"])
    shared: bool = Field(description="Whether it belongs to the whole workspace, to no user, agent or run")
    session_id: str | None = Field(description="As it was stored with; null: none", examples=["session-1"])
    role: str | None = Field(
        description="Who said it, such as user or assistant; null: nobody, it was stored as a text", examples=["user"]
    )
    speaker: str | None = Field(description="The name of who said it; null: not given", examples=["Ana"])
    conversation_id: Id | None = Field(description="UUID of the conversation that it comes from; null: of none")
    turn_index: int | None = Field(
        description="Of a message stored word for word its place in the conversation, from 0; else null", examples=[12]
    )
    timestamp: Time = Field(description="When it happened", examples=["2026-03-02T09:30:00+00:00"])
    t_valid: Time | None = Field(description="Valid from this moment on; null: since ever")
    t_invalid: Time | None = Field(description="No longer valid from this moment on; null: it is still valid")
    relevance: float = Field(description="0..1: fades without use; 1 when stored", examples=[0.97])
    salience: float = Field(description="0..1: begins as importance, grows with use and fades without", examples=[0.6])
    access_count: int = Field(description="How often it was found, from 0; about a second late", examples=[3])
    last_accessed: Time | None = Field(
        description="When it was last found, before that when it was stored; null: not known",
        examples=["2026-03-04T18:00:00+00:00"],
    )
    stale_at: Time | None = Field(
        description="When it was flagged as past its end, or as unused for long (`ageing`); null: it is not"
    )
    version: int = Field(description="From 1, one more with each change; the ETag of one memory", examples=[1])
    created_at: Time = Field(description="When it was stored", examples=["2026-03-02T09:30:01+00:00"])
    updated_at: Time = Field(description="When it was last changed", examples=["2026-03-02T09:30:01+00:00"])
    expires_at: Time | None = Field(description="From this moment on it is gone; null: never")
    version_of: Id | None = Field(
        description="Of a past version the memory whose value it was from t_valid to t_invalid; null: it is none"
    )
    may_be_outdated_by: list[Id] = Field(
        description="Newer memories that may say what holds instead, the latest first; both were kept in doubt"
    )


class TotalCount(ResponseModel):
    """How many there are: counted up to 10,000, an estimate above."""

    value: int = Field(description="How many, from 0")
    is_exact: bool = Field(description="true: counted; false: above 10,000, estimated by the planner")


class MemoryPage(ResponseModel):
    """Newest first unless another order is given; send `next_cursor` back with the same order for the next page."""

    results: list[MemoryResponse] = Field(description="At most `limit` memories")
    next_cursor: NextCursor = None
    total: TotalCount | None = Field(None, description="With count=true; else null")
    warnings: list[str] = Field(description="What was left out, each as `code: sentence`", default_factory=list)


class MemoryHistoryItem(ResponseModel):
    """One change of a memory, known in the half-open [recorded_from, recorded_to)."""

    id: Id = Field(description="UUID of the entry")
    memory_id: Id = Field(description="UUID of the memory")
    event: Action = Field(description="What happened; DELETE: it was deleted, or archived by the curator")
    old_memory: str | None = Field(description="Its text before; null: there was none, or it was purged")
    new_memory: str | None = Field(description="Its text afterwards; null: after a DELETE, or it was purged")
    is_deleted: bool = Field(description="Whether it was a DELETE")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    timestamp: Time = Field(description="The same as recorded_from")
    recorded_from: Time = Field(description="When it happened: from this moment on it was so")
    recorded_to: Time | None = Field(description="The moment of the next change; null: it still is so")


class MemoryVersionItem(ResponseModel):
    """What a memory said in the half-open [t_valid, t_invalid)."""

    id: Id = Field(description="UUID of the memory itself, of its past version, or of the memory it superseded")
    memory: str = Field(description="Its text", examples=["Lives in Berlin"])
    timestamp: Time = Field(description="When it was said, the last time")
    t_valid: Time | None = Field(description="It held from this moment on; null: since ever")
    t_invalid: Time | None = Field(description="It held until this moment; null: it still holds")
    is_current: bool = Field(description="Whether it is what the memory says now")


class MemoryHistoryResponse(ResponseModel):
    """Oldest first; there also after the memory is gone."""

    results: list[MemoryHistoryItem] = Field(
        description="At most `limit` changes, in the order in which they were recorded"
    )
    versions: list[MemoryVersionItem] = Field(
        description="What it said when, in the order of validity, however the statements arrived; none once it is gone"
    )
    next_cursor: NextCursor = None


def memory_response(found: Memory) -> MemoryResponse:
    return MemoryResponse(**memory_fields(found))


def memory_fields(found: Memory) -> dict[str, Any]:
    """The fields of a memory; the four values of enrichment are also shown in metadata."""
    named = _entities(found)
    return {
        "id": found.id,
        "memory": found.text,
        "hash": found.hash,
        "type": found.kind.type,
        "type_confidence": found.kind.confidence,
        "classification_source": found.kind.source,
        "fact_confidence": found.fact_confidence,
        "current_confidence": found.current_confidence,
        "importance": found.importance.value,
        "importance_level": found.importance.level,
        "importance_band": importance.band(found.importance.value),
        "tags": list(found.tags),
        "tag_prefixes": list(found.tag_prefixes),
        "categories": list(found.categories),
        "metadata": _metadata(found, named),
        "temporal": temporal_details(found.temporal),
        "entities": named,
        "summary": found.summary,
        "enriched": found.enriched_at is not None,
        "enriched_at": found.enriched_at,
        "enrichment_attempts": found.enrichment_attempts,
        "lifecycle_state": found.lifecycle_state,
        "archived": found.archived,
        "deleted_at": found.deleted_at,
        "embedding": found.embedding_status,
        **_origin(found),
        "timestamp": found.timestamp,
        "t_valid": found.t_valid,
        "t_invalid": found.t_invalid,
        "relevance": found.relevance,
        "salience": found.salience,
        "access_count": found.access_count,
        "last_accessed": found.last_accessed,
        "stale_at": found.stale_at,
        "version": found.version,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "expires_at": found.expires_at,
        "version_of": found.version_of,
        "may_be_outdated_by": list(found.may_be_outdated_by),
    }


def memory_json(found: Memory) -> dict[str, Any]:
    """The same with times as text, for an answer that is written without its model."""
    return {name: iso(each) if isinstance(each, datetime) else each for name, each in memory_fields(found).items()}


def _entities(found: Memory) -> dict[str, list[str]]:
    spans = [entities.EntitySpan(name, kind, 0, 0) for kind, names in found.entities.items() for name in names]
    return entities.grouped(spans)


def _metadata(found: Memory, named: dict[str, list[str]]) -> dict[str, Any]:
    if found.enriched_at is None:
        return dict(found.metadata)
    return {
        "enriched_at": found.enriched_at.isoformat(),
        "enrichment_attempts": found.enrichment_attempts,
        "summary": found.summary,
        "entities": named,
        **found.metadata,  # what the caller has put there under such a name is his
    }


def _origin(found: Memory) -> dict[str, Any]:
    return {
        "user_id": found.scope.user_id,
        "agent_id": found.scope.agent_id,
        "run_id": found.scope.run_id,
        "channel": found.scope.channel,
        "shared": found.scope.is_shared,
        "session_id": found.session_id,
        "role": found.role,
        "speaker": found.speaker,
        "conversation_id": found.conversation_id,
        "turn_index": found.turn_index,
    }


def version_item(found: Version) -> MemoryVersionItem:
    return MemoryVersionItem(
        id=found.id,
        memory=found.text,
        timestamp=found.said_at[-1],
        t_valid=found.t_valid,
        t_invalid=found.t_invalid,
        is_current=not found.is_past,
    )


def history_item(found: HistoryEntry) -> MemoryHistoryItem:
    return MemoryHistoryItem(
        id=found.id,
        memory_id=found.memory_id,
        event=found.event,
        old_memory=found.old_memory,
        new_memory=found.new_memory,
        is_deleted=found.is_deleted,
        user_id=found.user_id,
        agent_id=found.agent_id,
        run_id=found.run_id,
        timestamp=found.recorded_at,
        recorded_from=found.recorded_at,
        recorded_to=found.recorded_to,
    )
