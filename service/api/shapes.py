"""How do domain values become wire models, and requests drafts? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from service.api.memory_models import (
    DecisionEvidence,
    DedupOutcome,
    LlmUsage,
    MemoryFields,
    MemoryHistoryItem,
    MemoryResponse,
    MessageInput,
    PiiSummary,
    RedactionCount,
    StoreOutcome,
    TemporalDetails,
    TimeMention,
)
from service.domain.decision import Action, Evidence
from service.domain.draft import CallerFields, Draft, Speech
from service.domain.kinds import Importance, MemoryType
from service.domain.memory import HistoryEntry, Memory, Outcome
from service.domain.temporal import Mention, Temporal
from service.domain.text import is_blank
from service.errors import InvalidInput
from service.language import entities, importance, tags
from service.providers.budget import RequestUsage

ROLES = frozenset({"system", "user", "assistant", "tool", "developer", "function"})


def asked(body: MemoryFields, *, dimension: int, timezone: str, now: datetime) -> CallerFields:
    """What the caller set by hand; raises InvalidInput for a vector of the wrong length or an end in the past."""
    level, value = body.importance_level, body.importance
    return CallerFields(
        id=body.id,
        type=MemoryType(body.type) if body.type else None,
        type_confidence=body.confidence if body.type_confidence is None else body.type_confidence,
        importance=Importance.of_level(level) if level else None if value is None else Importance.of_value(value),
        tags=tags.normalise(body.tags),
        metadata=body.metadata,
        timestamp=body.timestamp,
        timezone=body.timezone or timezone,
        t_valid=body.t_valid,
        t_invalid=body.t_invalid,
        expires_at=ending(body.ttl_s, body.expires_at, now),
        embedding=vector(body.embedding, dimension),
        session_id=body.session_id,
        updated_at=body.updated_at,
        last_accessed=body.last_accessed,
    )


def ending(ttl_s: int | None, expires_at: datetime | None, now: datetime) -> datetime | None:
    """From when on it is gone, None for never; raises InvalidInput for a moment that is over."""
    if ttl_s is not None:
        return now + timedelta(seconds=ttl_s)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires_at: lies in the past.", field="expires_at")
    return expires_at


def vector(numbers: Sequence[float] | None, dimension: int) -> Any:
    """The caller's vector; raises InvalidInput for a wrong length, a zero or an infinite vector (C52)."""
    if numbers is None:
        return None
    if len(numbers) != dimension:
        raise InvalidInput(f"embedding: has {len(numbers)} numbers, this service keeps {dimension}.", field="embedding")
    with np.errstate(over="ignore"):  # beyond float32 it becomes infinite, and is refused for that
        found = np.asarray(numbers, dtype=np.float32)
        length = float(np.linalg.norm(found))
    if not np.isfinite(length) or length < 1e-6:
        raise InvalidInput("embedding: must have a finite length above zero.", field="embedding")
    return found


def speech(message: MessageInput, place: int) -> tuple[str | None, Speech, tuple[str, ...]]:
    """A message's text (None when it has none), who says it, and warnings about what was left out (D3)."""
    where = f"messages[{place}]"
    warnings: tuple[str, ...] = (
        () if message.role in ROLES else (f"{where}: role {message.role[:20]!r} is not a known one.",)
    )
    text = message.content
    if isinstance(text, list):
        parts = [part["text"] for part in text if isinstance(part, dict) and isinstance(part.get("text"), str)]
        if len(parts) < len(text):
            warnings += (f"{where}: {len(text) - len(parts)} parts without text were left out.",)
        text = "\n".join(parts)
    if not text or is_blank(text):
        return None, Speech(message.role), (*warnings, f"{where}: has no text and was left out.")
    return text, Speech(message.role, message.name, message.timestamp), warnings


def result(outcome: Outcome) -> StoreOutcome:
    """One outcome. A duplicate shows the memory there is; what was not found out about the new text is null."""
    draft = outcome.draft
    return StoreOutcome(
        event=outcome.event,
        id=outcome.memory_id,
        memory=outcome.memory,
        old_memory=outcome.old_memory,
        dedup=DedupOutcome(
            action=outcome.dedup.action, existing_id=outcome.dedup.existing_id, similarity=outcome.dedup.similarity
        ),
        decision=decision(draft.evidence) if draft.evidence else None,
        **_annotation(draft),
        tags=list(draft.tags),
        tag_prefixes=list(draft.tag_prefixes),
        pii=PiiSummary(redactions=[RedactionCount(label=each.label, count=each.count) for each in draft.redactions]),
        embedding=draft.embedding_status,
        enrichment="queued" if outcome.event is not Action.NONE and not draft.options.dry_run else "none",
        summarized=draft.original_length is not None,
        original_length=draft.original_length,
        summarized_length=len(draft.clean) if draft.original_length is not None else None,
        role=draft.speech.role if draft.speech else None,
        conversation_id=outcome.conversation_id,
        turn_index=outcome.turn_index,
        warnings=list(draft.warnings),
        timings_ms=dict(draft.timings_ms),
    )


def _annotation(draft: Draft) -> dict[str, Any]:
    rated, kind = draft.importance, draft.kind
    return {
        "importance": rated.value if rated else None,
        "importance_level": rated.level if rated else None,
        "importance_band": importance.band(rated.value) if rated else None,
        "temporal": temporal(draft.temporal) if draft.temporal else None,
        "categories": list(draft.categories),
        "type": kind.type if kind else None,
        "type_confidence": kind.confidence if kind else None,
        "classification_source": kind.source if kind else None,
    }


def decision(judged: Evidence) -> DecisionEvidence:
    return DecisionEvidence(
        source=judged.source,
        model=judged.model,
        verdict=judged.verdict,
        reason=judged.reason,
        rejected=judged.rejected,
    )


def temporal(found: Temporal) -> TemporalDetails:
    return TemporalDetails(
        type=found.type,
        valid_until=found.valid_until,
        tag=found.tag,
        mentions=[mention(each) for each in found.mentions],
    )


def mention(found: Mention) -> TimeMention:
    return TimeMention(
        text=found.text,
        start=found.start,
        end=found.end,
        kind=found.kind,
        begins_at=found.begins_at,
        ends_at=found.ends_at,
    )


def memory(found: Memory) -> MemoryResponse:
    return MemoryResponse(**fields(found))


def fields(found: Memory) -> dict[str, Any]:
    """The fields of a memory; the four enrichment values are also seen inside metadata (R1.03)."""
    pairs = [entities.EntitySpan(name, kind, 0, 0) for kind, names in found.entities.items() for name in names]
    named = entities.grouped(pairs)
    seen = dict(found.metadata)
    if found.enriched_at is not None:
        seen |= {
            "enriched_at": found.enriched_at.isoformat(),
            "enrichment_attempts": found.enrichment_attempts,
            "summary": found.summary,
            "entities": named,
        }
    return {
        "id": found.id,
        "memory": found.text,
        "hash": found.hash,
        "type": found.kind.type,
        "type_confidence": found.kind.confidence,
        "classification_source": found.kind.source,
        "fact_confidence": found.fact_confidence,
        "importance": found.importance.value,
        "importance_level": found.importance.level,
        "importance_band": importance.band(found.importance.value),
        "tags": list(found.tags),
        "tag_prefixes": list(found.tag_prefixes),
        "categories": list(found.categories),
        "metadata": seen,
        "temporal": temporal(found.temporal),
        "entities": named,
        "summary": found.summary,
        "enriched": found.enriched_at is not None,
        "enriched_at": found.enriched_at,
        "enrichment_attempts": found.enrichment_attempts,
        "lifecycle_state": found.lifecycle_state,
        "archived": found.archived,
        "embedding": found.embedding_status,
        "user_id": found.scope.user_id,
        "agent_id": found.scope.agent_id,
        "run_id": found.scope.run_id,
        "channel": found.scope.channel,
        "session_id": found.session_id,
        "role": found.role,
        "speaker": found.speaker,
        "conversation_id": found.conversation_id,
        "turn_index": found.turn_index,
        "timestamp": found.timestamp,
        "t_valid": found.t_valid,
        "t_invalid": found.t_invalid,
        "relevance": found.relevance,
        "salience": found.salience,
        "access_count": found.access_count,
        "last_accessed": found.last_accessed,
        "version": found.version,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "expires_at": found.expires_at,
    }


def entry(found: HistoryEntry) -> MemoryHistoryItem:
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


def usage(spent: RequestUsage) -> LlmUsage:
    return LlmUsage(**spent.as_dict())


def stages(drafts: Sequence[Draft]) -> dict[str, float]:
    """Milliseconds per stage: of the slowest text, because the texts of a request pass a stage together."""
    found: dict[str, float] = {}
    for draft in drafts:
        for stage, spent in draft.timings_ms.items():
            found[stage] = max(found.get(stage, 0.0), spent)
    return found
