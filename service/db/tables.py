"""Which tables are there? Every column, key and constraint by name; indexes and partitions stand in migrations/.

Every tenant table starts its primary key with `workspace_id` and is under forced row-level security. No
relationships: nothing loads lazily, rows leave db/ as domain values.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from service.db.vectors import Half
from service.domain.relation import RelationType

TERM_DIMENSIONS = 1_000_000_000
"""Length of the sparse BM25 vectors: term ids are hashes below it (pgvector's maximum)."""

NAMING = {
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}

ChannelName = String(100)
Terms = ARRAY(Integer)
Words = ARRAY(Text)


class Table(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        UUID: Uuid(),
        datetime: DateTime(timezone=True),
        str: Text(),
        int: Integer(),
        float: Double(),
        bool: Boolean(),
        dict[str, Any]: JSONB(),
        list[Any]: JSONB(),
        list[str]: Words,
    }


def _key() -> Mapped[UUID]:
    return mapped_column(primary_key=True)


def _now() -> Mapped[datetime]:
    return mapped_column(server_default=text("now()"))


def _empty_object() -> Mapped[dict[str, Any]]:
    return mapped_column(server_default=text("'{}'::jsonb"))


def _empty_words() -> Mapped[list[str]]:
    return mapped_column(server_default=text("'{}'::text[]"))


def _channel() -> Mapped[str]:
    return mapped_column(ChannelName, server_default=text("'_global'::character varying"))


def _flag() -> Mapped[bool]:
    return mapped_column(server_default=text("false"))


def _parent(table: str, *columns: str, target: str = "id", name: str | None = None) -> ForeignKeyConstraint:
    """A foreign key inside the workspace that goes with its parent; `name` where two lead to the same table."""
    return ForeignKeyConstraint(
        ["workspace_id", *columns], [f"{table}.workspace_id", f"{table}.{target}"], name=name, ondelete="CASCADE"
    )


class SchemaVersion(Table):
    __tablename__ = "schema_version"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    description: Mapped[str]
    applied_at: Mapped[datetime] = _now()


# -- tenants ----------------------------------------------------------------------------------------------------


class Workspace(Table):
    __tablename__ = "workspace"

    workspace_id: Mapped[UUID] = _key()
    name: Mapped[str] = mapped_column(String(200))
    settings: Mapped[dict[str, Any]] = _empty_object()
    created_at: Mapped[datetime] = _now()


class ApiKey(Table):
    __tablename__ = "api_key"
    __table_args__ = (
        UniqueConstraint("key_hash"),
        ForeignKeyConstraint(["workspace_id"], ["workspace.workspace_id"], ondelete="CASCADE"),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    name: Mapped[str] = mapped_column(String(200))
    key_hash: Mapped[str] = mapped_column(String(64))
    hint: Mapped[str] = mapped_column(String(16))
    rights: Mapped[list[str]]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str | None] = mapped_column(ChannelName)
    created_at: Mapped[datetime] = _now()
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


# -- memories ---------------------------------------------------------------------------------------------------


class Memory(Table):
    __tablename__ = "memory"
    __table_args__ = (
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

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
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
    tags: Mapped[list[str]] = _empty_words()
    tag_prefixes: Mapped[list[str]] = _empty_words()
    categories: Mapped[list[str]] = _empty_words()
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
    archived: Mapped[bool] = _flag()
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    review_status: Mapped[str | None] = mapped_column(String(16))


class MemoryStat(Table):
    """Everything that reads and jobs change: narrow, fillfactor 70, no index but the key, so updates stay HOT (A3)."""

    __tablename__ = "memory_stat"
    __table_args__ = (_parent("memory", "memory_id"),)

    workspace_id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID] = _key()
    relevance: Mapped[float] = mapped_column(server_default=text("1"))
    salience: Mapped[float] = mapped_column(server_default=text("0.5"))
    access_count: Mapped[int] = mapped_column(server_default=text("0"))
    last_accessed: Mapped[datetime]
    base_relevance: Mapped[float] = mapped_column(server_default=text("1"))
    base_salience: Mapped[float] = mapped_column(server_default=text("0.5"))
    base_confidence: Mapped[float | None]
    stale_at: Mapped[datetime | None]


class TermStat(Table):
    """In how many texts and contexts of a workspace a term stands, as last counted; term 0 is the number of texts."""

    __tablename__ = "term_stat"
    __table_args__ = (CheckConstraint("term >= 0 AND texts >= 0 AND contexts >= 0", "counts"),)

    workspace_id: Mapped[UUID] = _key()
    term: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    texts: Mapped[int]
    contexts: Mapped[int]
    created_at: Mapped[datetime] = _now()


class MemoryEdge(Table):
    """What leads from one memory to another, with how much strength (0..1) and from when to when."""

    __tablename__ = "memory_edge"
    __table_args__ = (
        _parent("memory", "source_id", name="fk_memory_edge_source"),
        _parent("memory", "target_id", name="fk_memory_edge_target"),
        CheckConstraint(f"rel_type IN ({', '.join(repr(str(each)) for each in RelationType)})", "rel_type"),
        CheckConstraint("strength >= 0 AND strength <= 1", "strength"),
        CheckConstraint("t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid", "validity"),
        CheckConstraint("source_id <> target_id", "ends"),
    )

    workspace_id: Mapped[UUID] = _key()
    source_id: Mapped[UUID] = _key()
    rel_type: Mapped[str] = mapped_column(String(32), primary_key=True)
    target_id: Mapped[UUID] = _key()
    strength: Mapped[float] = mapped_column(server_default=text("1"))
    properties: Mapped[dict[str, Any]] = _empty_object()
    t_valid: Mapped[datetime | None]
    t_invalid: Mapped[datetime | None]
    created_at: Mapped[datetime] = _now()


class EmbeddingGeneration(Table):
    """Which embedder made the vectors. One row per generation, for all workspaces (A6)."""

    __tablename__ = "embedding_generation"
    __table_args__ = (CheckConstraint("state IN ('active', 'building', 'retired')", "state"),)

    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    model: Mapped[str]
    dimension: Mapped[int]
    calibration: Mapped[dict[str, Any]] = _empty_object()
    state: Mapped[str]
    created_at: Mapped[datetime] = _now()


class MemoryVector(Table):
    """Vectors apart from the row: narrow for exact scans, a length per generation, the columns a search filters by."""

    __tablename__ = "memory_vector"
    __table_args__ = (
        _parent("memory", "memory_id"),
        CheckConstraint("kind IN ('text', 'context', 'placeholder')", "kind"),
        {"postgresql_partition_by": "HASH (workspace_id)"},
    )

    workspace_id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID] = _key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = _now()


# -- what happened ------------------------------------------------------------------------------------------------


class MemoryHistory(Table):
    """A row per change; `before` is the memory as it was. Known in [recorded_at, recorded_to) (B6, B7)."""

    __tablename__ = "memory_history"
    __table_args__ = (
        CheckConstraint("event IN ('ADD', 'UPDATE', 'DELETE')", "event"),
        {"postgresql_partition_by": "RANGE (recorded_at)"},
    )

    workspace_id: Mapped[UUID] = _key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[UUID] = _key()
    seq: Mapped[int] = mapped_column(BigInteger, server_default=text("nextval('memory_history_seq'::regclass)"))
    memory_id: Mapped[UUID]
    event: Mapped[str] = mapped_column(String(8))
    old_memory: Mapped[str | None]
    new_memory: Mapped[str | None]
    before: Mapped[dict[str, Any] | None]
    before_embedding: Mapped[Any | None] = mapped_column(Half())
    before_generation: Mapped[int | None] = mapped_column(SmallInteger)
    is_deleted: Mapped[bool] = _flag()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    recorded_to: Mapped[datetime | None]


class AuditLog(Table):
    __tablename__ = "audit_log"
    __table_args__ = ({"postgresql_partition_by": "RANGE (recorded_at)"},)

    workspace_id: Mapped[UUID] = _key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[UUID] = _key()
    operation: Mapped[str] = mapped_column(String(50))
    memory_type: Mapped[str | None] = mapped_column(String(50))
    affected_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid()), server_default=text("'{}'::uuid[]"))
    request_id: Mapped[str | None] = mapped_column(String(100))
    api_key_id: Mapped[UUID | None]
    user_id: Mapped[str | None]
    session_id: Mapped[str | None]
    conversation_id: Mapped[UUID | None]
    source_channel: Mapped[str | None] = mapped_column(ChannelName)
    target_channels: Mapped[list[str]] = _empty_words()
    query_text: Mapped[str | None]
    result_count: Mapped[int | None]
    latency_ms: Mapped[float | None]
    success: Mapped[bool] = mapped_column(server_default=text("true"))
    error_message: Mapped[str | None]
    promoted_from_channel: Mapped[str | None] = mapped_column(ChannelName)
    promotion_confidence: Mapped[float | None]
    promotion_access_count: Mapped[int | None]
    promotion_conversation_count: Mapped[int | None]
    config_snapshot: Mapped[dict[str, Any]] = _empty_object()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))


class Decision(Table):
    """What was decided about a text next to what was known, by whom and on which evidence."""

    __tablename__ = "decision"
    __table_args__ = (
        CheckConstraint("state IN ('applied', 'rejected', 'undone')", "state"),
        CheckConstraint("event IN ('ADD', 'UPDATE', 'DELETE', 'NONE')", "event"),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID | None]
    source: Mapped[str] = mapped_column(String(16))
    model: Mapped[str]
    prompt_sha256: Mapped[str | None] = mapped_column(String(64))
    candidates: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    reply: Mapped[str | None]
    verdict: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = _now()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    event: Mapped[str | None] = mapped_column(String(8))
    ruling_id: Mapped[UUID | None]
    history_id: Mapped[UUID | None]
    undone_at: Mapped[datetime | None]
    undo_history_id: Mapped[UUID | None]


class Review(Table):
    """A memory that waits for a person's word, and what its acceptance would change."""

    __tablename__ = "review"
    __table_args__ = (CheckConstraint("state IN ('pending', 'accepted', 'rejected')", "state"),)

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID]
    changes: Mapped[list[Any]]
    state: Mapped[str] = mapped_column(String(8), server_default=text("'pending'::character varying"))
    created_at: Mapped[datetime] = _now()
    resolved_at: Mapped[datetime | None]


# -- conversations ------------------------------------------------------------------------------------------------


class Conversation(Table):
    __tablename__ = "conversation"
    __table_args__ = (
        UniqueConstraint("workspace_id", "user_id", "agent_id", "external_id", postgresql_nulls_not_distinct=True),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    external_id: Mapped[str]
    title: Mapped[str | None]
    started_at: Mapped[datetime]
    turn_count: Mapped[int] = mapped_column(server_default=text("0"))
    consolidated_at: Mapped[datetime | None]
    patterns_extracted: Mapped[bool] = _flag()
    archived: Mapped[bool] = _flag()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()


class Turn(Table):
    """What was said. It carries the scope of its conversation; `run_id` is the conversation's external id."""

    __tablename__ = "turn"
    __table_args__ = (
        UniqueConstraint("workspace_id", "conversation_id", "turn_index"),
        _parent("conversation", "conversation_id"),
        CheckConstraint("turn_index >= 0", "turn_index"),
        CheckConstraint("token_count >= 0", "token_count"),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    conversation_id: Mapped[UUID]
    turn_index: Mapped[int]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    role: Mapped[str] = mapped_column(String(20))
    speaker: Mapped[str | None] = mapped_column(String(200))
    content: Mapped[str]
    content_hash: Mapped[str] = mapped_column(String(64))
    token_count: Mapped[int | None]
    model: Mapped[str | None] = mapped_column(String(100))
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    terms: Mapped[list[int]] = mapped_column(Terms, server_default=text("'{}'::integer[]"))
    bm25: Mapped[Any | None] = mapped_column(SPARSEVEC(TERM_DIMENSIONS))
    timestamp: Mapped[datetime]
    archived: Mapped[bool] = _flag()
    created_at: Mapped[datetime] = _now()


class TurnVector(Table):
    """The vector of a turn's text, with the columns a search filters by; as for memories (A6)."""

    __tablename__ = "turn_vector"
    __table_args__ = (_parent("turn", "turn_id"), {"postgresql_partition_by": "HASH (workspace_id)"})

    workspace_id: Mapped[UUID] = _key()
    turn_id: Mapped[UUID] = _key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = _now()


class ConversationLog(Table):
    """Every turn as it came in, append-only; the vector is the turn's."""

    __tablename__ = "conversation_log"
    __table_args__ = ({"postgresql_partition_by": "RANGE (recorded_at)"},)

    workspace_id: Mapped[UUID] = _key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[UUID] = _key()
    conversation_id: Mapped[UUID]
    turn_id: Mapped[UUID]
    turn_index: Mapped[int]
    timestamp: Mapped[datetime]
    role: Mapped[str] = mapped_column(String(20))
    content: Mapped[str]
    content_hash: Mapped[str] = mapped_column(String(64))
    token_count: Mapped[int | None]
    model: Mapped[str | None] = mapped_column(String(100))
    channel: Mapped[str] = _channel()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]


class UserProfile(Table):
    """What is known of a user apart from memories: how to speak to them, what they know and like."""

    __tablename__ = "user_profile"
    __table_args__ = (
        CheckConstraint("jsonb_typeof(preferences) = 'object'", "preferences"),
        CheckConstraint("jsonb_typeof(expertise_areas) = 'array'", "expertise_areas"),
        CheckConstraint("jsonb_typeof(communication_style) = 'object'", "communication_style"),
        CheckConstraint("jsonb_typeof(metadata) = 'object'", "metadata"),
    )

    workspace_id: Mapped[UUID] = _key()
    user_id: Mapped[str] = mapped_column(primary_key=True)
    preferences: Mapped[dict[str, Any]] = _empty_object()
    expertise_areas: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    communication_style: Mapped[dict[str, Any]] = _empty_object()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()


class MemorySource(Table):
    """Which turn a memory came from; `start` and `end` are the half-open character span, where known."""

    __tablename__ = "memory_source"
    __table_args__ = (_parent("memory", "memory_id"), _parent("turn", "turn_id"))

    workspace_id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID] = _key()
    turn_id: Mapped[UUID] = _key()
    start: Mapped[int | None]
    end: Mapped[int | None]
    created_at: Mapped[datetime] = _now()


class WorkingItem(Table):
    """What an agent holds in mind for a while (service/domain/working.py). UNLOGGED: gone after a crash (B5)."""

    __tablename__ = "working_item"
    __table_args__ = (
        _parent("turn", "turn_id"),
        CheckConstraint("kind IN ('turn', 'item', 'thought', 'goal', 'session')", "kind"),
        {"prefixes": ["UNLOGGED"]},
    )

    workspace_id: Mapped[UUID] = _key()
    session_id: Mapped[UUID] = _key()
    kind: Mapped[str] = mapped_column(String(8), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    conversation_id: Mapped[str]
    turn_id: Mapped[UUID | None]
    value: Mapped[Any] = mapped_column(JSONB)
    seq: Mapped[int] = mapped_column(BigInteger, server_default=text("nextval('working_item_seq'::regclass)"))
    created_at: Mapped[datetime] = _now()
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime]


# -- goals --------------------------------------------------------------------------------------------------------


class Goal(Table):
    __tablename__ = "goal"
    __table_args__ = (
        CheckConstraint("status IN ('active', 'completed', 'abandoned', 'blocked')", "status"),
        CheckConstraint("(completed_at IS NOT NULL) = (status IN ('completed', 'abandoned'))", "completed_at"),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    description: Mapped[str]
    status: Mapped[str] = mapped_column(String(16), server_default=text("'active'::character varying"))
    priority: Mapped[int] = mapped_column(server_default=text("0"))
    deadline: Mapped[datetime | None]
    result: Mapped[str | None]
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime]
    completed_at: Mapped[datetime | None]


class GoalEdge(Table):
    """Read from source to target: SUBGOAL_OF its parent, BLOCKED_BY another."""

    __tablename__ = "goal_edge"
    __table_args__ = (
        _parent("goal", "source_id", name="fk_goal_edge_source"),
        _parent("goal", "target_id", name="fk_goal_edge_target"),
        CheckConstraint("rel_type IN ('SUBGOAL_OF', 'BLOCKED_BY')", "rel_type"),
        CheckConstraint("source_id <> target_id", "ends"),
    )

    workspace_id: Mapped[UUID] = _key()
    source_id: Mapped[UUID] = _key()
    rel_type: Mapped[str] = mapped_column(String(16), primary_key=True)
    target_id: Mapped[UUID] = _key()
    created_at: Mapped[datetime] = _now()


class GoalMemory(Table):
    __tablename__ = "goal_memory"
    __table_args__ = (_parent("goal", "goal_id"), _parent("memory", "memory_id"))

    workspace_id: Mapped[UUID] = _key()
    goal_id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID] = _key()
    created_at: Mapped[datetime] = _now()


class GoalHistory(Table):
    """A line per version of a goal; `changes`: by field, the value before and after."""

    __tablename__ = "goal_history"
    __table_args__ = (
        _parent("goal", "goal_id"),
        CheckConstraint("event IN ('ADD', 'UPDATE', 'COMPLETE', 'ABANDON', 'BLOCK', 'REOPEN')", "event"),
    )

    workspace_id: Mapped[UUID] = _key()
    goal_id: Mapped[UUID] = _key()
    version: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    event: Mapped[str] = mapped_column(String(16))
    changes: Mapped[dict[str, Any]]
    recorded_at: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    created_at: Mapped[datetime] = _now()


class GoalVector(Table):
    __tablename__ = "goal_vector"
    __table_args__ = (_parent("goal", "goal_id"),)

    workspace_id: Mapped[UUID] = _key()
    goal_id: Mapped[UUID] = _key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = _now()


# -- procedures ---------------------------------------------------------------------------------------------------


class Tool(Table):
    """The running total of a tool; `timed_count` uses have a latency, of which `avg_latency_ms` is the mean."""

    __tablename__ = "tool"
    __table_args__ = (CheckConstraint("success_count <= usage_count AND timed_count <= usage_count", "counts"),)

    workspace_id: Mapped[UUID] = _key()
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    usage_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    success_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    timed_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    avg_latency_ms: Mapped[float | None]
    last_used_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = _now()


class ToolInvocation(Table):
    __tablename__ = "tool_invocation"
    __table_args__ = (
        CheckConstraint("latency_ms >= 0", "latency_ms"),
        {"postgresql_partition_by": "RANGE (recorded_at)"},
    )

    workspace_id: Mapped[UUID] = _key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[int] = mapped_column(
        BigInteger,
        primary_key=True,
        autoincrement=False,
        server_default=text("nextval('tool_invocation_seq'::regclass)"),
    )
    conversation_id: Mapped[UUID | None]
    turn_id: Mapped[UUID | None]
    turn_index: Mapped[int | None]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    timestamp: Mapped[datetime] = _now()
    tool_name: Mapped[str] = mapped_column(String(100))
    task_type: Mapped[str | None] = mapped_column(String(100))
    tool_input: Mapped[Any] = mapped_column(JSONB)
    tool_output: Mapped[Any | None] = mapped_column(JSONB)
    success: Mapped[bool]
    latency_ms: Mapped[float | None]
    error_message: Mapped[str | None]


class Strategy(Table):
    __tablename__ = "strategy"
    __table_args__ = (CheckConstraint("success_count >= 0 AND failure_count >= 0", "counts"),)

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    description: Mapped[str]
    context_pattern: Mapped[str | None]
    task_type: Mapped[str | None] = mapped_column(String(100))
    tool_sequence: Mapped[list[str]] = _empty_words()
    success_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    failure_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = _now()
    last_used_at: Mapped[datetime | None]


class StrategyTool(Table):
    """USES_TOOL: the tools of a strategy in their order."""

    __tablename__ = "strategy_tool"
    __table_args__ = (_parent("strategy", "strategy_id"),)

    workspace_id: Mapped[UUID] = _key()
    strategy_id: Mapped[UUID] = _key()
    place: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    tool_name: Mapped[str] = mapped_column(String(100))
    created_at: Mapped[datetime] = _now()


class StrategyConversation(Table):
    """SUCCEEDED_IN, or did not: the conversations a strategy was used in."""

    __tablename__ = "strategy_conversation"
    __table_args__ = (_parent("strategy", "strategy_id"), _parent("conversation", "conversation_id"))

    workspace_id: Mapped[UUID] = _key()
    strategy_id: Mapped[UUID] = _key()
    conversation_id: Mapped[UUID] = _key()
    success: Mapped[bool]
    created_at: Mapped[datetime] = _now()


class StrategyVector(Table):
    __tablename__ = "strategy_vector"
    __table_args__ = (_parent("strategy", "strategy_id"),)

    workspace_id: Mapped[UUID] = _key()
    strategy_id: Mapped[UUID] = _key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = _now()


# -- entities -----------------------------------------------------------------------------------------------------


class Entity(Table):
    __tablename__ = "entity"
    __table_args__ = (
        UniqueConstraint("workspace_id", "user_id", "channel", "name_key", postgresql_nulls_not_distinct=True),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    user_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    name: Mapped[str]
    name_key: Mapped[str]
    type: Mapped[str]
    aliases: Mapped[list[str]] = _empty_words()
    description: Mapped[str | None]
    extracted_by: Mapped[str] = mapped_column(String(16))
    properties: Mapped[dict[str, Any]] = _empty_object()
    first_seen: Mapped[datetime] = _now()
    created_at: Mapped[datetime] = _now()
    salience: Mapped[float] = mapped_column(server_default=text("0.5"))
    access_count: Mapped[int] = mapped_column(server_default=text("0"))
    last_accessed: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    updated_at: Mapped[datetime] = _now()


class EntityAlias(Table):
    """Another name of an entity; the casefolded `alias_key` leads to one entity of its user and channel."""

    __tablename__ = "entity_alias"
    __table_args__ = (
        UniqueConstraint("workspace_id", "user_id", "channel", "alias_key", postgresql_nulls_not_distinct=True),
        _parent("entity", "entity_id"),
    )

    workspace_id: Mapped[UUID] = _key()
    entity_id: Mapped[UUID] = _key()
    alias_key: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str]
    user_id: Mapped[str | None]
    channel: Mapped[str] = _channel()
    created_at: Mapped[datetime] = _now()


class EntityVector(Table):
    __tablename__ = "entity_vector"
    __table_args__ = (_parent("entity", "entity_id"),)

    workspace_id: Mapped[UUID] = _key()
    entity_id: Mapped[UUID] = _key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = _now()


class MemoryEntity(Table):
    __tablename__ = "memory_entity"
    __table_args__ = (_parent("memory", "memory_id"), _parent("entity", "entity_id"))

    workspace_id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID] = _key()
    entity_id: Mapped[UUID] = _key()
    created_at: Mapped[datetime] = _now()
    extracted_by: Mapped[str] = mapped_column(String(16), server_default=text("'rules'::character varying"))


class EntityEdge(Table):
    """A relation between entities: its label as given, its type normalised, from when to when it holds (C31)."""

    __tablename__ = "entity_edge"
    __table_args__ = (
        UniqueConstraint("workspace_id", "source_id", "target_id", "rel_type"),
        _parent("entity", "source_id", name="fk_entity_edge_source"),
        _parent("entity", "target_id", name="fk_entity_edge_target"),
        CheckConstraint("strength >= 0 AND strength <= 1", "strength"),
        CheckConstraint("confidence >= 0 AND confidence <= 1", "confidence"),
        CheckConstraint("t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid", "validity"),
        CheckConstraint("source_id <> target_id", "ends"),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    source_id: Mapped[UUID]
    rel_type: Mapped[str] = mapped_column(String(64))
    label: Mapped[str] = mapped_column(String(200))
    target_id: Mapped[UUID]
    strength: Mapped[float] = mapped_column(server_default=text("1"))
    confidence: Mapped[float] = mapped_column(server_default=text("1"))
    properties: Mapped[dict[str, Any]] = _empty_object()
    t_valid: Mapped[datetime | None]
    t_invalid: Mapped[datetime | None]
    extracted_by: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()


class EntityEdgeSource(Table):
    """Which memories say that a relation holds. With the last of them the relation goes (trigger `unsaid`)."""

    __tablename__ = "entity_edge_source"
    __table_args__ = (_parent("entity_edge", "edge_id"), _parent("memory", "memory_id"))

    workspace_id: Mapped[UUID] = _key()
    edge_id: Mapped[UUID] = _key()
    memory_id: Mapped[UUID] = _key()
    extracted_by: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = _now()


class EntityMerge(Table):
    """An entity that became part of another, with all that undo needs."""

    __tablename__ = "entity_merge"
    __table_args__ = (_parent("entity", "entity_id"),)

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    entity_id: Mapped[UUID]
    absorbed_id: Mapped[UUID]
    absorbed: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = _now()
    undone_at: Mapped[datetime | None]


# -- work and answers ---------------------------------------------------------------------------------------------


class Job(Table):
    __tablename__ = "job"
    __table_args__ = (CheckConstraint("state IN ('ready', 'running', 'done', 'dead')", "state"),)

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    kind: Mapped[str] = mapped_column(String(50))
    memory_id: Mapped[UUID | None]
    payload: Mapped[dict[str, Any]] = _empty_object()
    state: Mapped[str] = mapped_column(String(8), server_default=text("'ready'::character varying"))
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    run_after: Mapped[datetime] = _now()
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    max_attempts: Mapped[int]
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    last_error: Mapped[str | None]
    created_at: Mapped[datetime] = _now()
    finished_at: Mapped[datetime | None]


class JobRun(Table):
    """A run of a recurring or requested job, under the job's id; system runs belong to the nil workspace (A4)."""

    __tablename__ = "job_run"
    __table_args__ = (
        CheckConstraint("reason IN ('schedule', 'request')", "reason"),
        CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", "state"),
    )

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    name: Mapped[str] = mapped_column(String(50))
    reason: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(8), server_default=text("'queued'::character varying"))
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    worker: Mapped[str | None]
    counts: Mapped[dict[str, Any] | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = _now()
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class Schedule(Table):
    """When a recurring job is due next; one row for all workspaces, locked by the worker that starts it."""

    __tablename__ = "schedule"
    __table_args__ = (CheckConstraint("interval_s > 0", "interval_s"),)

    name: Mapped[str] = mapped_column(String(50), primary_key=True)
    interval_s: Mapped[float]
    last_run: Mapped[datetime | None]
    next_run: Mapped[datetime] = _now()
    created_at: Mapped[datetime] = _now()


class Operation(Table):
    """A request that is answered later (B21)."""

    __tablename__ = "operation"
    __table_args__ = (CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", "state"),)

    workspace_id: Mapped[UUID] = _key()
    id: Mapped[UUID] = _key()
    kind: Mapped[str] = mapped_column(String(50))
    state: Mapped[str] = mapped_column(String(8))
    request: Mapped[dict[str, Any]] = _empty_object()
    progress: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime] = _now()
    finished_at: Mapped[datetime | None]


class Idempotency(Table):
    __tablename__ = "idempotency"

    workspace_id: Mapped[UUID] = _key()
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    status: Mapped[int | None] = mapped_column(SmallInteger)
    body: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime] = _now()
    expires_at: Mapped[datetime]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]


class LlmCache(Table):
    __tablename__ = "llm_cache"

    workspace_id: Mapped[UUID] = _key()
    prompt_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    task: Mapped[str] = mapped_column(String(50))
    model: Mapped[str]
    answer: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = _now()
    expires_at: Mapped[datetime]


class EmbeddingCache(Table):
    __tablename__ = "embedding_cache"

    workspace_id: Mapped[UUID] = _key()
    model: Mapped[str] = mapped_column(primary_key=True)
    text_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = _now()
