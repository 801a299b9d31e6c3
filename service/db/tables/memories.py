"""Memories, their statistics, vectors and edges, and term counts."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    SmallInteger,
    String,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    TERM_DIMENSIONS,
    Table,
    Terms,
    channel_name,
    child_of,
    empty_object,
    empty_words,
    part_of_key,
    set_now,
    switched_off,
)
from service.db.vectors import Half
from service.domain.relation import RelationType


class MemoryRow(Table):
    """A memory. Confidences and importance are 0..1, `importance_level` 1..10; `timestamp` is when it was said or
    happened, the last time if it was said several times: `said_at` has them all. `hash` is the MD5 of the text;
    `dedup_key` the same while the row takes part in deduplication. `version_of`: the row is a past version of that
    memory, and archived."""

    __tablename__ = "memory"
    __table_args__ = (
        child_of("memory", "version_of", name="fk_memory_version_of"),
        CheckConstraint("char_length(content) >= 1", "content"),
        CheckConstraint(
            "type = ANY (ARRAY['Decision'::text, 'Pattern'::text, 'Preference'::text, 'Style'::text, "
            "'Habit'::text, 'Insight'::text, 'Context'::text])",
            "type",
        ),
        CheckConstraint("type_confidence >= 0 AND type_confidence <= 1", "type_confidence"),
        CheckConstraint("fact_confidence >= 0 AND fact_confidence <= 1", "fact_confidence"),
        CheckConstraint("importance >= 0 AND importance <= 1", "importance"),
        CheckConstraint("importance_level >= 1 AND importance_level <= 10", "importance_level"),
        CheckConstraint("t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid", "validity"),
        CheckConstraint("temporal_type IN ('persistent', 'temporal')", "temporal_type"),
        CheckConstraint("temporal_tag IN ('current', 'past', 'future')", "temporal_tag"),
        CheckConstraint("embedding_status IN ('stored', 'queued', 'placeholder')", "embedding_status"),
        CheckConstraint("enrichment_attempts >= 0 AND enrichment_attempts <= 3", "enrichment_attempts"),
        CheckConstraint("review_status IN ('flagged')", "review_status"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    session_id: Mapped[str | None]

    content: Mapped[str]
    hash: Mapped[str] = mapped_column(String(32))
    dedup_key: Mapped[str | None] = mapped_column(String(32))
    terms: Mapped[list[int]] = mapped_column(Terms, server_default=text("'{}'::integer[]"))
    bm25: Mapped[Any | None] = mapped_column(SPARSEVEC(TERM_DIMENSIONS))
    context_terms: Mapped[list[int]] = mapped_column(Terms, server_default=text("'{}'::integer[]"))
    context_bm25: Mapped[Any | None] = mapped_column(SPARSEVEC(TERM_DIMENSIONS))

    type: Mapped[str]
    type_confidence: Mapped[float]
    classification_source: Mapped[str]
    fact_confidence: Mapped[float | None]
    importance: Mapped[float]
    importance_level: Mapped[int] = mapped_column(SmallInteger)
    tags: Mapped[list[str]] = empty_words()
    tag_prefixes: Mapped[list[str]] = empty_words()
    categories: Mapped[list[str]] = empty_words()
    # "metadata" is taken on declarative classes, so the attribute has a name of its own
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))

    timestamp: Mapped[datetime]
    t_valid: Mapped[datetime | None]
    t_invalid: Mapped[datetime | None]
    temporal_type: Mapped[str | None]
    valid_until: Mapped[datetime | None]
    temporal_tag: Mapped[str | None]
    mentions: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))

    role: Mapped[str | None] = mapped_column(String(20))
    speaker: Mapped[str | None] = mapped_column(String(200))
    conversation_id: Mapped[UUID | None]
    turn_index: Mapped[int | None]

    summary: Mapped[str | None] = mapped_column(String(240))
    enriched_at: Mapped[datetime | None]
    enrichment_attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    embedding_status: Mapped[str]
    archived: Mapped[bool] = switched_off()
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    review_status: Mapped[str | None] = mapped_column(String(16))
    version_of: Mapped[UUID | None]
    said_at: Mapped[list[datetime] | None] = mapped_column(ARRAY(DateTime(timezone=True)))


class MemoryStatRow(Table):
    """What reads and jobs change. Narrow, with room in its pages and no index but the key, so that updates stay HOT.
    Relevance, salience and confidence 0..1."""

    __tablename__ = "memory_stat"
    __table_args__ = (child_of("memory", "memory_id"),)

    workspace_id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID] = part_of_key()
    relevance: Mapped[float] = mapped_column(server_default=text("1"))
    salience: Mapped[float] = mapped_column(server_default=text("0.5"))
    access_count: Mapped[int] = mapped_column(server_default=text("0"))
    last_accessed: Mapped[datetime]
    base_relevance: Mapped[float] = mapped_column(server_default=text("1"))
    base_salience: Mapped[float] = mapped_column(server_default=text("0.5"))
    base_confidence: Mapped[float | None]
    stale_at: Mapped[datetime | None]
    promoted_at: Mapped[datetime | None]
    seen_in: Mapped[list[str] | None]
    confidence: Mapped[float | None]
    confirmed_at: Mapped[datetime | None]


class TermStatRow(Table):
    """In how many texts and contexts of a workspace a term occurs, as last counted. Term 0: the number of texts."""

    __tablename__ = "term_stat"
    __table_args__ = (CheckConstraint("term >= 0 AND texts >= 0 AND contexts >= 0", "counts"),)

    workspace_id: Mapped[UUID] = part_of_key()
    term: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    texts: Mapped[int]
    contexts: Mapped[int]
    created_at: Mapped[datetime] = set_now()


class MemoryEdgeRow(Table):
    """A relation from one memory to another, valid in [t_valid, t_invalid). `strength` 0..1."""

    __tablename__ = "memory_edge"
    __table_args__ = (
        child_of("memory", "source_id", name="fk_memory_edge_source"),
        child_of("memory", "target_id", name="fk_memory_edge_target"),
        CheckConstraint(f"rel_type IN ({', '.join(repr(str(each)) for each in RelationType)})", "rel_type"),
        CheckConstraint("strength >= 0 AND strength <= 1", "strength"),
        CheckConstraint("t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid", "validity"),
        CheckConstraint("source_id <> target_id", "ends"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    source_id: Mapped[UUID] = part_of_key()
    rel_type: Mapped[str] = mapped_column(String(32), primary_key=True)
    target_id: Mapped[UUID] = part_of_key()
    strength: Mapped[float] = mapped_column(server_default=text("1"))
    properties: Mapped[dict[str, Any]] = empty_object()
    t_valid: Mapped[datetime | None]
    t_invalid: Mapped[datetime | None]
    created_at: Mapped[datetime] = set_now()


class EmbeddingGenerationRow(Table):
    """One embedding generation, for all workspaces: the model that made its vectors, and their length."""

    __tablename__ = "embedding_generation"
    __table_args__ = (CheckConstraint("state IN ('active', 'building', 'retired', 'dropped')", "state"),)

    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    model: Mapped[str]
    dimension: Mapped[int]
    calibration: Mapped[dict[str, Any]] = empty_object()
    state: Mapped[str]
    created_at: Mapped[datetime] = set_now()
    activated_at: Mapped[datetime | None]


class MemoryVectorRow(Table):
    """Vectors of a memory by generation and kind, apart from the row so that scans stay narrow, with the columns a
    search filters by. Postgres fills `binary_embedding` by itself: one bit per component, read from the btrees of a
    scope."""

    __tablename__ = "memory_vector"
    __table_args__ = (
        child_of("memory", "memory_id"),
        CheckConstraint("kind IN ('text', 'context', 'placeholder')", "kind"),
        {"postgresql_partition_by": "HASH (workspace_id)"},
    )

    workspace_id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID] = part_of_key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = set_now()
