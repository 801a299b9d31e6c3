"""Stored memories, their history, and the outcomes of storing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from service.domain.ageing import DECAYING_BELOW
from service.domain.conversation import Turn
from service.domain.decision import Action
from service.domain.draft import DedupOutcome, Draft, EmbeddingStatus
from service.domain.kinds import Classification, ClassificationSource, Importance, MemoryType
from service.domain.moments import Time
from service.domain.scope import Scope
from service.domain.temporal import TemporalDetails, TemporalType
from service.domain.text import CleanText, content_hash

HitSource = Literal["memory", "turn"]
MemoryState = Literal["live", "deleted"]
LifecycleState = Literal["enrichment_queued", "active", "decaying", "enrichment_abandoned", "archived", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanMemory:
    """The part of a memory that searches and lists read. `may_be_outdated_by`: newer memories that may replace it;
    `superseded_by`: those that did."""

    id: UUID
    scope: Scope
    text: CleanText
    hash: str
    kind: Classification
    importance: Importance
    metadata: Mapping[str, Any]
    timestamp: datetime
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    t_valid: datetime | None = None
    t_invalid: datetime | None = None
    role: str | None = None
    speaker: str | None = None
    conversation_id: UUID | None = None
    turn_index: int | None = None
    archived: bool = False
    may_be_outdated_by: tuple[UUID, ...] = ()
    superseded_by: tuple[UUID, ...] = ()
    source: HitSource = "memory"

    @property
    def channel(self) -> str:
        return self.scope.channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(LeanMemory):
    """One row, read back. `version_of`: it is a past version of that memory."""

    embedding_status: EmbeddingStatus
    created_at: datetime
    updated_at: datetime
    fact_confidence: float | None = None
    tag_prefixes: tuple[str, ...] = ()
    temporal: TemporalDetails = field(default_factory=lambda: TemporalDetails(TemporalType.PERSISTENT))
    session_id: str | None = None
    summary: str | None = None
    enriched_at: datetime | None = None
    enrichment_attempts: int = 0
    version: int = 1
    expires_at: datetime | None = None
    relevance: float = 1.0
    salience: float = 0.5
    access_count: int = 0
    last_accessed: datetime | None = None
    stale_at: datetime | None = None
    current_confidence: float | None = None
    entities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    version_of: UUID | None = None
    deleted_at: datetime | None = None

    @property
    def lifecycle_state(self) -> LifecycleState:
        """The state of the memory, from its columns alone."""
        if self.deleted_at is not None:
            return "deleted"
        if self.archived:
            return "archived"
        if self.enriched_at is not None:
            return "decaying" if self.relevance < DECAYING_BELOW else "active"
        return "enrichment_abandoned" if self.enrichment_attempts >= 3 else "enrichment_queued"


def memory_of(turn: Turn) -> Memory:
    """The turn as a hit: a memory with only what was said."""
    return Memory(
        id=turn.id,
        scope=turn.scope,
        text=turn.text,
        hash=content_hash(turn.text),
        kind=Classification(MemoryType.CONTEXT, 0.0, ClassificationSource.DEFAULT),
        importance=Importance.of_value(0.5),
        metadata=turn.metadata,
        timestamp=turn.timestamp,
        embedding_status=EmbeddingStatus.STORED if turn.embedded else EmbeddingStatus.QUEUED,
        created_at=turn.created_at,
        updated_at=turn.created_at,
        role=turn.role,
        speaker=turn.speaker,
        conversation_id=turn.conversation_id,
        turn_index=turn.index,
        source="turn",
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one text of a request. `memory_id` is None where a dry run would add, where a fact was dropped in
    favour of a known memory, and for an update of an unknown one. `kept_as`: the past version of an older statement.
    """

    draft: Draft
    event: Action
    dedup: DedupOutcome
    memory_id: UUID | None
    text: str | None
    old_text: str | None = None
    conversation_id: UUID | None = None
    turn_index: int | None = None
    kept_as: UUID | None = None


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The outcomes of one request in the order of its texts or facts; without any, a warning says why."""

    outcomes: tuple[Outcome, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemorySourceItem:
    """A turn that the memory was extracted from; the span is half-open, in characters."""

    conversation_id: Annotated[UUID, Field(description="UUID of the conversation")]
    external_id: Annotated[str, Field(description="The name of the conversation")]
    turn_id: Annotated[UUID, Field(description="UUID of the turn")]
    turn_index: Annotated[int, Field(description="Its index in the conversation, from 0")]
    role: Annotated[str, Field(description="user, assistant, system, tool, or any other word")]
    speaker: Annotated[str | None, Field(description="Name of the speaker; null: unknown")]
    timestamp: Annotated[Time, Field(description="When it was said")]
    start: Annotated[int | None, Field(description="Index of the first character of the span, from 0; null: unknown")]
    end: Annotated[int | None, Field(description="Index after the last character of the span; null: unknown")]
    quote: Annotated[str, Field(description="The text of the span; if unknown, the first 2,000 characters of the turn")]


@dataclass(frozen=True, slots=True)
class SignalTerm:
    """A signal of a hit."""

    raw: Annotated[float | None, Field(description="The measured value; null: none", examples=[0.83])]
    value: Annotated[float, Field(description="Normalised among the candidates, 0..1", examples=[0.91])]
    weight: Annotated[
        float, Field(description="Its share of the score, 0..1; the weights of a hit sum to 1", examples=[0.24])
    ]


@dataclass(frozen=True, slots=True)
class LaterStatementItem:
    """A later memory about the same thing."""

    id: Annotated[UUID, Field(description="UUID of the memory")]
    timestamp: Annotated[Time, Field(description="When it was said", examples=["2026-11-09T10:15:00+00:00"])]

    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that answers a query. `similarity` 0..1 (calibrated cosine, None without a vector); `score` ranks: the
    sum of value times weight over `terms`, times each of `factors`. `answer_probability` 0..1: that it has the answer;
    None if unknown. `later`: later statements about the same thing, latest first."""

    memory: LeanMemory
    score: float
    similarity: float | None
    terms: Mapping[str, SignalTerm] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    answer_probability: float | None = None
    later: tuple[LaterStatementItem, ...] = ()

    @property
    def whole(self) -> Memory:
        """The memory with all its fields, as a query with detail=full reads it."""
        assert isinstance(self.memory, Memory), "the query reads lean memories"
        return self.memory


@dataclass(frozen=True, slots=True)
class Revision:
    """A change; None leaves a field unchanged. `metadata` is merged key by key, a None in it removes the key, and None
    for all of it every key; `tags` replace the whole list; `columns` has the columns that change as they were sent,
    None clears one. `embed_now`: the vector is made in the request, else by a job."""

    text: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = field(default_factory=dict)
    type: MemoryType | None = None
    type_confidence: float | None = None
    importance: Importance | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    embed_now: bool = False
