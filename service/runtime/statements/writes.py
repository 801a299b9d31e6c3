"""The rows that a write adds, each kind with its INSERT: memories, history, decisions, audit entries and jobs.

A verb collects the rows and writes them together, in one round trip (direct.insert), under the lock of the scope. They
wait for nothing else but an equal row of another transaction (uq_memory_dedup, pk_memory).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector
from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import DateTime, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from service.domain.bm25 import AVERAGE_CONTEXT_LENGTH
from service.domain.decision import Action, Evidence
from service.domain.draft import EmbeddingStatus, NewMemory
from service.domain.job import NewJob
from service.domain.request import Operation, Subject
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.temporal import Mention
from service.kit.settings import Settings
from service.language import lexemes
from service.postgres import direct
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.tables import TERM_DIMENSIONS
from service.postgres.vectors import Half

INSERT_MEMORY = text("""
    INSERT INTO memory (
        workspace_id, id, user_id, agent_id, run_id, channel, session_id,
        content, hash, dedup_key, terms, bm25, context_terms, context_bm25,
        type, type_confidence, classification_source, fact_confidence, importance, importance_level,
        tags, tag_prefixes, categories, metadata,
        "timestamp", t_valid, t_invalid, expires_at, temporal_type, valid_until, temporal_tag, mentions,
        role, speaker, conversation_id, turn_index, embedding_status, created_at, updated_at)
    VALUES (
        :workspace_id, :id, :user_id, :agent_id, :run_id, :channel, :session_id,
        :content, :hash, :dedup_key, :terms, :bm25, :context_terms, :context_bm25,
        :type, :type_confidence, :classification_source, :fact_confidence, :importance, :importance_level,
        :tags, :tag_prefixes, :categories, :metadata,
        :timestamp, :t_valid, :t_invalid, :expires_at, :temporal_type, :valid_until, :temporal_tag, :mentions,
        :role, :speaker, :conversation_id, :turn_index, :embedding_status, :created_at, :updated_at)
""").bindparams(
    bindparam("bm25", type_=SPARSEVEC(TERM_DIMENSIONS)),
    bindparam("context_bm25", type_=SPARSEVEC(TERM_DIMENSIONS)),
    bindparam("metadata", type_=JSONB()),
    bindparam("mentions", type_=JSONB()),
)

INSERT_STAT = text("""
    INSERT INTO memory_stat (workspace_id, memory_id, salience, base_confidence, base_salience, last_accessed)
    VALUES (:workspace_id, :id, :importance, :fact_confidence, :importance, :last_accessed)
""")

# `kind`: text, placeholder (while the embedder is unavailable), or context (a turn with the turns before it)
INSERT_VECTOR = text("""
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel, embedding)
    VALUES (:workspace_id, :id, :generation, :kind, :user_id, :agent_id, :run_id, :channel, :embedding)
""").bindparams(bindparam("embedding", type_=Half()))

# The ADD of a new id, which has no earlier entry to close; every other change is written by history.append.
INSERT_ADDED = text("""
    INSERT INTO memory_history (workspace_id, id, memory_id, event, new_memory, user_id, agent_id, run_id)
    VALUES (:workspace_id, :history_id, :id, 'ADD', :content, :user_id, :agent_id, :run_id)
""")

INSERT_DECISION = text("""
    INSERT INTO decision (
        workspace_id, id, memory_id, source, model, prompt_sha256, candidates, reply, verdict, state,
        user_id, agent_id, run_id, event, history_id, ruling_id)
    VALUES (
        :workspace_id, :id, :memory_id, :source, :model, :prompt_sha256, :candidates, :reply, :verdict, :state,
        :user_id, :agent_id, :run_id, :event, :history_id, :ruling_id)
""").bindparams(bindparam("candidates", type_=JSONB()), bindparam("verdict", type_=JSONB()))

INSERT_AUDIT = text("""
    INSERT INTO audit_log (
        workspace_id, id, operation, memory_type, affected_ids, request_id, api_key_id, user_id, session_id,
        conversation_id, source_channel, target_channels, query_text, result_count, latency_ms,
        promoted_from_channel, promotion_confidence, promotion_access_count, promotion_conversation_count,
        config_snapshot, metadata)
    VALUES (
        :workspace_id, :id, :operation, :memory_type, :affected_ids, :request_id, :api_key_id, :user_id, :session_id,
        :conversation_id, :source_channel, :target_channels, :query_text, :result_count, :latency_ms,
        :promoted_from_channel, :promotion_confidence, :promotion_access_count, :promotion_conversation_count,
        :config_snapshot, :metadata)
""").bindparams(bindparam("config_snapshot", type_=JSONB()), bindparam("metadata", type_=JSONB()))

INSERT_JOB = text("""
    INSERT INTO job (workspace_id, id, kind, memory_id, payload, max_attempts, priority)
    VALUES (:workspace_id, :id, :kind, :memory_id, :payload, :max_attempts, :priority)
""").bindparams(bindparam("payload", type_=JSONB()))

# A row that has expired stays in uq_memory_dedup until the upkeep deletes it. Uses ix_memory_hash.
RELEASE_EXPIRED = text("""
    UPDATE memory SET dedup_key = NULL
    WHERE workspace_id = :workspace AND hash = ANY (CAST(:hashes AS text[])) AND dedup_key IS NOT NULL
      AND expires_at <= :now
""").bindparams(bindparam("now", type_=DateTime(timezone=True)))


@dataclass(frozen=True, slots=True)
class PlacedMemory:
    """A new memory with the place of its turn in a conversation, if it is one. `history_id`: of the ADD, so that a
    decision can name it."""

    memory: NewMemory
    conversation_id: UUID | None = None
    turn_index: int | None = None
    history_id: UUID = field(default_factory=uuid7)

    @property
    def may_have_history(self) -> bool:
        """Whether the caller chose the id, which may have been in use before: then entries of its history may
        still be open (`recorded_to` is NULL), and `history.append` ends them when it writes the ADD."""
        return self.memory.given.id is not None


@dataclass(frozen=True, slots=True)
class NewDecision:
    """An action on one memory with its evidence. `history_id`: the entry of history it caused, None when it changed
    nothing. `ruling_id`: shared by the actions that are undone together."""

    memory_id: UUID | None
    evidence: Evidence
    scope: Scope
    event: Action
    history_id: UUID | None = None
    ruling_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """Why a memory was promoted to `_global`: its figures at that moment."""

    from_channel: str
    confidence: float
    access_count: int
    conversation_count: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One operation. `metadata` holds ids, counts and thresholds, never memory text. The last four: reads only;
    `query_text` is redacted."""

    operation: Operation
    memory_type: Subject
    scope: Scope
    affected_ids: tuple[UUID, ...] = ()
    request_id: str | None = None
    api_key_id: UUID | None = None
    session_id: str | None = None
    conversation_id: UUID | None = None
    config_snapshot: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    promotion: Promotion | None = None
    target_channels: tuple[str, ...] = ()
    query_text: str | None = None
    result_count: int | None = None
    latency_ms: float | None = None


async def release_expired(session: Session, workspace_id: UUID, hashes: Sequence[str], *, now: datetime) -> None:
    """Takes expired rows with these texts out of the unique index on texts."""
    values = {"workspace": workspace_id, "hashes": list(hashes), "now": now}
    await direct.fetch(session, RELEASE_EXPIRED, values)


def memory_rows(placed: Sequence[PlacedMemory], *, generation: int, now: datetime) -> tuple[NewRows, ...]:
    """The rows of new memories. Writing them raises Conflict for an id that another scope has taken (scopes do not
    wait for each other), or for an equal live row, which the scope lock makes rare."""
    memories = [(each, memory_values(each, now)) for each in placed]
    vectors = [
        {**values, "generation": generation, "kind": kind, "embedding": vector}
        for each, values in memories
        for kind, vector in vectors_of(each.memory).items()
    ]
    history = [{**values, "history_id": each.history_id} for each, values in memories if not each.may_have_history]
    rows = [values for _, values in memories]
    return (
        NewRows(INSERT_MEMORY, rows),
        NewRows(INSERT_STAT, rows),
        NewRows(INSERT_VECTOR, vectors),
        NewRows(INSERT_ADDED, history),
    )


def vectors_of(new: NewMemory) -> dict[str, NDArray[np.float32]]:
    """The vectors there are, by `kind`: of the text, and of the context if it is a turn."""
    kind = "placeholder" if new.embedding_status is EmbeddingStatus.PLACEHOLDER else "text"
    vectors = {kind: new.vector, "context": new.context.vector if new.context else None}
    return {kind: vector for kind, vector in vectors.items() if vector is not None}


def memory_values(placed: PlacedMemory, now: datetime) -> dict[str, Any]:
    """The values of INSERT_MEMORY and INSERT_STAT."""
    new = placed.memory
    scope, given, speech = new.scope, new.given, new.speech
    return {
        "workspace_id": scope.workspace_id,
        "id": new.id,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "run_id": scope.run_id,
        "channel": scope.channel,
        "session_id": given.session_id,
        **text_values(new),
        "tags": list(new.tags),
        "tag_prefixes": list(new.tag_prefixes),
        "categories": list(new.categories),
        "metadata": dict(new.metadata),
        "timestamp": new.timestamp,
        "t_valid": given.t_valid,
        "t_invalid": given.t_invalid,
        "expires_at": given.expires_at,
        "role": speech.role if speech else None,
        "speaker": speech.speaker if speech else None,
        "conversation_id": placed.conversation_id,
        "turn_index": placed.turn_index,
        "last_accessed": given.last_accessed or now,
        "created_at": now,
        "updated_at": given.updated_at or now,
    }


def text_values(new: NewMemory) -> dict[str, Any]:
    """The values that follow from the text, and what was found out about it."""
    temporal, kind = new.temporal, new.kind
    weights = lexemes.weights(new.text) if new.weights is None else new.weights
    context = lexemes.weights(new.context.text, average_length=AVERAGE_CONTEXT_LENGTH) if new.context else {}
    return {
        "content": new.text,
        "hash": new.hash,
        "dedup_key": new.hash if new.takes_part_in_dedup else None,
        "terms": sorted(weights),
        "bm25": SparseVector(dict(weights), TERM_DIMENSIONS) if weights else None,
        "context_terms": sorted(context),
        "context_bm25": SparseVector(context, TERM_DIMENSIONS) if context else None,
        "type": str(kind.type),
        "type_confidence": kind.confidence,
        "classification_source": str(kind.source),
        "fact_confidence": new.fact_confidence,
        "importance": new.importance.value,
        "importance_level": new.importance.level,
        "temporal_type": str(temporal.type),
        "valid_until": temporal.valid_until,
        "temporal_tag": temporal.tag and str(temporal.tag),
        "mentions": [mention_json(mention) for mention in temporal.mentions],
        "embedding_status": str(new.embedding_status),
    }


def mention_json(mention: Mention) -> dict[str, Any]:
    """A temporal expression in stored form."""
    return {
        "text": mention.text,
        "start": mention.start,
        "end": mention.end,
        "kind": mention.kind,
        "begins_at": mention.begins_at and mention.begins_at.isoformat(),
        "ends_at": mention.ends_at and mention.ends_at.isoformat(),
    }


def decision_rows(workspace_id: UUID, decided: Sequence[NewDecision]) -> NewRows:
    return NewRows(INSERT_DECISION, [_decision(workspace_id, each) for each in decided])


async def append_decisions(session: Session, workspace_id: UUID, decided: Sequence[NewDecision]) -> None:
    await direct.insert(session, decision_rows(workspace_id, decided))


def _decision(workspace_id: UUID, decided: NewDecision) -> dict[str, Any]:
    evidence = decided.evidence
    return {
        "workspace_id": workspace_id,
        "id": uuid7(),
        "memory_id": decided.memory_id,
        "source": evidence.source,
        "model": evidence.model,
        "prompt_sha256": evidence.prompt_sha256,
        "candidates": [str(each) for each in evidence.shown],
        "reply": evidence.reply,
        "verdict": {"action": evidence.verdict, "reason": evidence.reason, "rejected": evidence.rejected},
        "state": "rejected" if evidence.rejected else "applied",
        "user_id": decided.scope.user_id,
        "agent_id": decided.scope.agent_id,
        "run_id": decided.scope.run_id,
        "event": str(decided.event),
        "history_id": decided.history_id,
        "ruling_id": decided.ruling_id,
    }


ALWAYS = frozenset({"audit_level", "contradiction_policy", "dedup_exact", "dedup_near"})
THRESHOLDS: Mapping[Operation, frozenset[str]] = {
    "archive": frozenset({"ageing"}),
    "delete_entity": frozenset({"ageing"}),
    "optimize": frozenset({"ageing"}),
    "promote": frozenset({"promoting"}),
    "retrieve": frozenset({"expired_factor", "search_factors", "search_techniques", "search_weights"}),
}
"""The settings of an operation, in addition to those in every entry."""


def thresholds(settings: Settings, operation: Operation | None = None) -> dict[str, Any]:
    """The settings in force, for `config_snapshot`."""
    more = THRESHOLDS.get(operation, frozenset()) if operation else frozenset()
    return settings.model_dump(mode="json", include=set(ALWAYS | more))


def audit_rows(entries: Sequence[AuditEntry]) -> NewRows:
    """Entries, to be written with the changes they report."""
    return NewRows(INSERT_AUDIT, [_audit(entry) for entry in entries])


async def append_audit(session: Session, entries: Sequence[AuditEntry]) -> None:
    await direct.insert(session, audit_rows(entries))


def _audit(entry: AuditEntry) -> dict[str, Any]:
    promoted = entry.promotion
    return {
        "workspace_id": entry.scope.workspace_id,
        "id": uuid7(),
        "operation": entry.operation,
        "memory_type": entry.memory_type,
        "affected_ids": list(entry.affected_ids),
        "request_id": entry.request_id,
        "api_key_id": entry.api_key_id,
        "user_id": entry.scope.user_id,
        "session_id": entry.session_id,
        "conversation_id": entry.conversation_id,
        "source_channel": entry.scope.channel,
        "target_channels": [GLOBAL_CHANNEL] if promoted else list(entry.target_channels),
        "query_text": entry.query_text,
        "result_count": entry.result_count,
        "latency_ms": entry.latency_ms,
        "promoted_from_channel": promoted.from_channel if promoted else None,
        "promotion_confidence": promoted.confidence if promoted else None,
        "promotion_access_count": promoted.access_count if promoted else None,
        "promotion_conversation_count": promoted.conversation_count if promoted else None,
        "config_snapshot": dict(entry.config_snapshot),
        "metadata": dict(entry.metadata),
    }


def job_rows(workspace_id: UUID, jobs: Sequence[NewJob]) -> NewRows:
    """The rows of jobs that are due at once, to be written with what causes them."""
    assert all(job.run_after is None for job in jobs), "a job for later is enqueued"
    rows = [
        {
            "workspace_id": workspace_id,
            "id": uuid7(),
            "kind": job.kind,
            "memory_id": job.memory_id,
            "payload": dict(job.payload),
            "max_attempts": job.max_attempts,
            "priority": job.priority,
        }
        for job in jobs
    ]
    return NewRows(INSERT_JOB, rows)


ANY_SHARED = text("""
    SELECT EXISTS (SELECT FROM memory m WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[]))
                   AND m.user_id IS NULL AND m.agent_id IS NULL AND m.run_id IS NULL)
""")


async def are_any_shared(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> bool:
    """Whether one of them belongs to the whole workspace."""
    return bool(await session.scalar(ANY_SHARED, {"workspace": workspace_id, "ids": list(ids)}))
