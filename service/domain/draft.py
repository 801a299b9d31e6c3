"""A text on its way to becoming a memory.

A `Draft` enters the pipeline with the caller's fields; each stage adds only its own. `draft.finish()` turns it into a
complete `NewMemory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from uuid_utils.compat import uuid7

from service.domain.decision import UNJUDGED, Action, ChangeOf, Claim, Decision, Evidence, MergedText, Neighbour
from service.domain.fact import Fact
from service.domain.filters import Filter
from service.domain.kinds import Classification, Importance, MemoryType
from service.domain.scope import Scope
from service.domain.temporal import TemporalDetails
from service.domain.text import CleanText, RedactionCount
from service.domain.version import begins


class EmbeddingStatus(StrEnum):
    """State of a memory's vector: stored, queued for a job, or replaced by a placeholder while the provider is down."""

    STORED = "stored"
    QUEUED = "queued"
    PLACEHOLDER = "placeholder"


class DedupAction(StrEnum):
    """The outcome of deduplication."""

    DUPLICATE_EXACT = "duplicate_exact"
    UPDATED_EXISTING = "updated_existing"
    STORED_NEW = "stored_new"


@dataclass(frozen=True, slots=True)
class CallerFields:
    """Fields set by the caller; None means that the service determines it. `dedup_filter`: a filter for the memories
    that facts are compared with, None for all."""

    id: UUID | None = None
    type: MemoryType | None = None
    type_confidence: float | None = None
    importance: Importance | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timestamp: datetime | None = None
    timezone: str = "UTC"
    t_valid: datetime | None = None
    t_invalid: datetime | None = None
    expires_at: datetime | None = None
    embedding: NDArray[np.float32] | None = None
    session_id: str | None = None
    dedup_filter: Filter | None = None
    updated_at: datetime | None = None
    last_accessed: datetime | None = None

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the request. `record`: store verbatim (messages with infer=false). `may_delete`: the caller may
    delete, so that a message may ask to forget."""

    dedup: bool = True
    use_llm: bool = True
    summarise: bool = False
    strict_size: bool = False
    record: bool = False
    embed_later: bool = False
    may_delete: bool = False


@dataclass(frozen=True, slots=True)
class Speech:
    """Who said a text in a conversation, and when."""

    role: str
    speaker: str | None = None
    timestamp: datetime | None = None


@dataclass(frozen=True, slots=True)
class DedupOutcome:
    """How the text compares with the memories of its scope."""

    action: Annotated[DedupAction, Field(description="Stored as new, merged into an existing memory, or already known")]
    existing_id: Annotated[
        UUID | None, Field(description="The memory that it was merged into or that says it already; null: none")
    ] = None
    similarity: Annotated[
        float | None,
        Field(
            description="Calibrated cosine to the nearest memory of the scope, 0..1; null when nothing was compared",
            examples=[0.42],
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The turns before a turn: the text for its context terms, and its vector, if there is one."""

    text: CleanText
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """The usable parts of a model's annotation of a text; missing parts are left to the rules."""

    importance_level: int | None = None
    temporal: TemporalDetails | None = None
    categories: tuple[str, ...] | None = None
    kind: MemoryType | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """One text in the pipeline, whose stages fill the fields after `fact`. `change`: as in a Claim.
    `expired_duplicate_possible`: False after none was found under the scope lock. `merged`: the text of the edit that
    is carried out. `context`: only for a message."""

    scope: Scope
    raw: str
    given: CallerFields
    options: Options
    received_at: datetime
    speech: Speech | None = None
    fact: Fact | None = None

    text: CleanText | None = None
    redactions: tuple[RedactionCount, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    tag_prefixes: tuple[str, ...] = ()
    original_length: int | None = None
    hash: str = ""
    vector: NDArray[np.float32] | None = None
    change: ChangeOf | None = None
    embedding_status: EmbeddingStatus = EmbeddingStatus.QUEUED
    seen: tuple[Neighbour, ...] = ()
    expired_duplicate_possible: bool = True
    decision: Decision | None = None
    merged: MergedText | None = None
    context: TurnContext | None = None
    annotation: Annotation | None = None
    importance: Importance | None = None
    temporal: TemporalDetails | None = None
    categories: tuple[str, ...] = ()
    kind: Classification | None = None
    term_weights: Mapping[int, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def timestamp(self) -> datetime:
        """When the statement was made: the turn's time, the caller's, or now."""
        spoken = self.speech.timestamp if self.speech else None
        return spoken or self.given.timestamp or self.received_at

    @property
    def start(self) -> datetime:
        """When the statement begins to hold."""
        return begins(self.timestamp, self.given.t_valid, self.given.t_invalid)

    @property
    def clean(self) -> CleanText:
        """The text after redaction; only for stages after PII."""
        assert self.text is not None, "the PII stage has not run"
        return self.text

    @property
    def final_hash(self) -> str:
        """The hash of the text that is stored."""
        return self.merged.hash if self.merged else self.hash

    @property
    def claim(self) -> Claim:
        """The text as it is judged."""
        given, correction = self.given, self.fact is not None and self.fact.correction
        times = (self.timestamp, given.t_valid, given.t_invalid)
        return Claim(self.clean, *times, correction, self.change, self.received_at)

    @property
    def is_duplicate(self) -> bool:
        """Whether a known memory that is not newer says it, so that no further stage is needed."""
        edit = self.decision.edits[0] if self.decision else None
        return edit is not None and edit.action is Action.NONE and not edit.earlier

    @property
    def evidence(self) -> Evidence | None:
        """The evidence for its decision; None if there is nothing to store."""
        return None if self.decision is None or self.decision.evidence is UNJUDGED else self.decision.evidence

    def finish(self, new_id: UUID, conversation_id: UUID | None = None, turn_index: int | None = None) -> NewMemory:
        """The complete memory; `new_id` unless the caller chose one. Every stage of the profile must have run."""
        assert self.kind is not None, "the pipeline is not through"
        assert self.importance is not None, "the pipeline is not through"
        assert self.temporal is not None, "the pipeline is not through"
        stored = self.merged
        return NewMemory(
            self.given.id or new_id,
            self,
            stored.text if stored else self.clean,
            stored.hash if stored else self.hash,
            stored.vector if stored else self.vector,
            self.kind,
            self.importance,
            self.temporal,
            conversation_id,
            turn_index,
        )


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A draft with everything for a row. `conversation_id`, `turn_index`: its place, if it is a turn or a fact.
    `history_id`: of the ADD, so that a decision can refer to it."""

    id: UUID
    draft: Draft
    text: CleanText
    hash: str
    vector: NDArray[np.float32] | None
    kind: Classification
    importance: Importance
    temporal: TemporalDetails
    conversation_id: UUID | None = None
    turn_index: int | None = None
    history_id: UUID = field(default_factory=uuid7)

    @property
    def embedding_status(self) -> EmbeddingStatus:
        return EmbeddingStatus.QUEUED if self.vector is None else self.draft.embedding_status

    @property
    def term_weights(self) -> Mapping[int, float]:
        """BM25 by term id."""
        return self.draft.merged.term_weights if self.draft.merged else self.draft.term_weights

    @property
    def fact_confidence(self) -> float | None:
        return self.draft.fact.confidence if self.draft.fact else None

    @property
    def expired_duplicate_possible(self) -> bool:
        """Whether an expired row may still have this hash in uq_memory_dedup; it is looked up by the draft's own."""
        draft = self.draft
        return draft.options.dedup and (draft.expired_duplicate_possible or draft.merged is not None)

    @property
    def neighbours(self) -> tuple[tuple[UUID, float], ...] | None:
        """The nearest memories with their similarity; None: not searched. Empty if the search found none; a caller's
        filter may have hidden some."""
        draft = self.draft
        looked = draft.options.dedup and not draft.options.record and draft.given.dedup_filter is None
        if draft.merged or not (draft.seen or (looked and draft.embedding_status is EmbeddingStatus.STORED)):
            return None
        return tuple((neighbour.id, neighbour.similarity) for neighbour in draft.seen)
