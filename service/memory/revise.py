"""Changes of one memory by hand: in part (PATCH), with another text (PUT), or brought back from the archive.

A new text passes PII like the first one, and everything that follows from a text is made anew: hash, words, times,
categories, and the type unless somebody chose it. The vector is made in the request (PUT) or by a job (PATCH); until
then the memory is found by its words, never by a vector of the old text.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from service.db import writes
from service.db.engine import Session
from service.db.episodes import contexts
from service.db.jobs import queue
from service.db.memories import history, memories, updates
from service.db.memories.history import Change
from service.db.memories.updates import VectorKind
from service.domain.decision import Action
from service.domain.draft import CallerFields, Draft, EmbeddingStatus, Options
from service.domain.job import NewJob
from service.domain.kinds import ClassificationSource
from service.domain.memory import Memory
from service.domain.request import WriteContext
from service.domain.revision import Expected, Revision
from service.domain.text import content_hash
from service.errors import InvalidInput
from service.language import kinds
from service.memory.transactions import check, keep, missing, note, write_transaction
from service.memory.write import EMBED_FIRST
from service.pipeline import pii
from service.pipeline.profiles import REVISED, run
from service.resources import Resources


async def revise(
    workspace_id: UUID,
    memory_id: UUID,
    asked: Revision,
    res: Resources,
    request: WriteContext,
    *,
    expected: Expected | None = None,
) -> Memory:
    """The memory as it is afterwards. Raises NotFound, PreconditionFailed, PiiRejected, or Conflict when another memory
    of the scope has the new text already. What is equal to what was there is no change."""
    async with res.db.read(workspace_id) as session:
        there = await memories.get(session, workspace_id, memory_id, alive_at=res.clock())
    if there is None:
        raise missing()
    draft = await _prepared(there, asked, res)
    async with write_transaction(there.scope, res, request) as session:
        was = await history.snapshot(session, workspace_id, memory_id, generation=res.generation)
        old = await memories.get(session, workspace_id, memory_id, alive_at=res.clock()) if was else None
        if was is None or old is None:
            raise missing()
        check(old.version, expected)
        values = changes(old, asked, draft)
        found = old
        if values or "last_accessed" in asked.moments:
            await _write(session, old, asked, draft, values, res)
            text = values.get("content", old.text)
            change = Change(memory_id, Action.UPDATE, old.scope, old.text, text, was.before, was.vector, was.generation)
            await history.append(session, workspace_id, [change])
            await note(session, "update", old.scope, [memory_id], request, res, fields=sorted(values))
            found = await memories.get(session, workspace_id, memory_id) or old
        await keep(session, workspace_id, found, request)
    return found


async def restore(
    workspace_id: UUID, memory_id: UUID, res: Resources, request: WriteContext, *, expected: Expected | None = None
) -> Memory:
    """The memory, active; one that is not archived stays as it is. Raises NotFound, PreconditionFailed, or Conflict
    when the scope has a live memory with this text."""
    async with res.db.read(workspace_id) as session:
        there = await memories.get(session, workspace_id, memory_id, alive_at=res.clock())
    if there is None:
        raise missing()
    async with write_transaction(there.scope, res, request) as session:
        was = await history.snapshot(session, workspace_id, memory_id, generation=res.generation)
        found = await memories.get(session, workspace_id, memory_id, alive_at=res.clock())
        if was is None or found is None:
            raise missing()
        check(found.version, expected)
        if found.archived:
            now = res.clock()
            await writes.release_expired(session, workspace_id, [found.hash], now=now)
            await updates.set_columns(session, workspace_id, memory_id, {"archived": False}, now=now)
            # as fresh as a new one, or the next round of forgetting would take it away again
            await updates.set_stat(
                session, workspace_id, memory_id, {"relevance": 1.0, "last_accessed": now, "stale_at": None}
            )
            text = found.text
            change = Change(memory_id, Action.UPDATE, found.scope, text, text, was.before, was.vector, was.generation)
            await history.append(session, workspace_id, [change])
            await note(session, "restore", found.scope, [memory_id], request, res)
            found = await memories.get(session, workspace_id, memory_id) or found
        await keep(session, workspace_id, found, request)
    return found


async def _prepared(there: Memory, asked: Revision, res: Resources) -> Draft:
    """What is to be written, redacted; with a text, everything that follows from it."""
    settings = res.settings
    chosen = asked.type or (there.kind.type if there.kind.source is ClassificationSource.EXPLICIT else None)
    record = there.role is not None
    draft = Draft(
        scope=there.scope,
        raw=asked.text or "",
        given=CallerFields(
            type=chosen,
            type_confidence=there.kind.confidence if asked.type is None else asked.type_confidence,
            tags=asked.tags or (),
            metadata=asked.metadata or {},
            # what was said keeps its day; a correction by hand speaks of today
            timestamp=there.timestamp if record else None,
            timezone=settings.timezone,
        ),
        options=Options(
            use_llm=False,
            strict_size=settings.content_limits == "strict",
            record=record,
            embed_later=not asked.embed_now,
        ),
        received_at=res.clock(),
    )
    return await run(REVISED if asked.text is not None else (pii.redact,), draft, res)


def changes(old: Memory, asked: Revision, draft: Draft) -> dict[str, Any]:
    """The columns that become different, by name; raises InvalidInput when a memory would end before it begins."""
    values: dict[str, Any] = {}
    if asked.text is not None and content_hash(draft.clean) != old.hash:
        values |= updates.text_columns(
            draft.clean, draft.term_weights.weights if draft.term_weights else None
        ) | _reading(draft)
    if asked.type is not None:
        kind = kinds.explicit(asked.type, asked.type_confidence)
        values |= {"type": str(kind.type), "type_confidence": kind.confidence, "classification_source": kind.source}
    elif asked.type_confidence is not None:
        values["type_confidence"] = asked.type_confidence
    if asked.fact_confidence is not None:
        values["fact_confidence"] = asked.fact_confidence
    if asked.importance is not None:
        values |= {"importance": asked.importance.value, "importance_level": asked.importance.level}
    if asked.tags is not None:  # R5.04: both columns in one UPDATE
        values |= {"tags": list(draft.tags), "tag_prefixes": list(draft.tag_prefixes)}
    if asked.metadata is None:
        values["extra"] = {}
    elif asked.metadata:
        merged = {**old.metadata, **draft.metadata}
        values["extra"] = {key: value for key, value in merged.items() if draft.metadata.get(key, key) is not None}
    values |= {name: moment for name, moment in asked.moments.items() if name != "last_accessed"}
    _in_order(values.get("t_valid", old.t_valid), values.get("t_invalid", old.t_invalid))
    now = _now(old)
    return {name: value for name, value in values.items() if name not in now or now[name] != value}


def _reading(draft: Draft) -> dict[str, Any]:
    """What the stages found in the new text."""
    assert draft.kind is not None, "the pipeline is not through"
    assert draft.temporal is not None, "the pipeline is not through"
    return {
        "type": str(draft.kind.type),
        "type_confidence": draft.kind.confidence,
        "classification_source": draft.kind.source,
        "categories": list(draft.categories),
        "temporal_type": str(draft.temporal.type),
        "valid_until": draft.temporal.valid_until,
        "temporal_tag": draft.temporal.tag and str(draft.temporal.tag),
        "mentions": [writes.mention_json(each) for each in draft.temporal.mentions],
        "embedding_status": str(draft.embedding_status),
    }


def _now(old: Memory) -> dict[str, Any]:
    """The columns that a caller may change, as they are."""
    return {
        "type": str(old.kind.type),
        "type_confidence": old.kind.confidence,
        "classification_source": old.kind.source,
        "fact_confidence": old.fact_confidence,
        "importance": old.importance.value,
        "importance_level": old.importance.level,
        "tags": list(old.tags),
        "tag_prefixes": list(old.tag_prefixes),
        "extra": dict(old.metadata),
        "t_valid": old.t_valid,
        "t_invalid": old.t_invalid,
        "expires_at": old.expires_at,
        "timestamp": old.timestamp,
        "updated_at": old.updated_at,
    }


def _in_order(first: Any, last: Any) -> None:
    if first is not None and last is not None and first >= last:
        raise InvalidInput("t_valid: must lie before t_invalid.", field="t_valid")


async def _write(
    session: Session, old: Memory, asked: Revision, draft: Draft, values: dict[str, Any], res: Resources
) -> None:
    workspace_id, now = old.scope.workspace_id, res.clock()
    if "content" in values:
        await writes.release_expired(session, workspace_id, [values["hash"]], now=now)
    await updates.set_columns(session, workspace_id, old.id, values, now=now)
    if "last_accessed" in asked.moments:
        await updates.set_stat(session, workspace_id, old.id, {"last_accessed": asked.moments["last_accessed"]})
    if "content" in values:
        kind: VectorKind = "placeholder" if draft.embedding_status is EmbeddingStatus.PLACEHOLDER else "text"
        await updates.replace_vector(session, old.scope, old.id, draft.vector, kind=kind, generation=res.generation)
        await queue.enqueue(session, workspace_id, _jobs(old.id, draft, res))
        if old.turn_index is not None:
            places = await contexts.places(session, workspace_id, [old.id])
            await contexts.rewrite(session, workspace_id, await contexts.holders(session, workspace_id, places))


def _jobs(memory_id: UUID, draft: Draft, res: Resources) -> list[NewJob]:
    attempts = res.settings.job_max_attempts
    found = [NewJob("enrich", memory_id=memory_id, max_attempts=attempts)]
    if draft.embedding_status is not EmbeddingStatus.STORED:
        found.append(NewJob("embed", memory_id=memory_id, max_attempts=attempts, priority=-EMBED_FIRST))
    return found
