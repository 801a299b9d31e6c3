"""Changes one memory by hand: some fields (PATCH) or the text (PUT).

A new text is redacted like the first one, and everything derived from the text is computed again: hash, words, times,
categories, and the type unless a caller chose it. The vector is computed in the request (PUT) or by a job (PATCH);
until then the memory is found by its words, never by a vector of the old text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from service.domain.draft import CallerFields, Draft, EmbeddingStatus, Options
from service.domain.errors import Conflict, InvalidInput, NotFound
from service.domain.kinds import ClassificationSource
from service.domain.memory import Memory, Revision
from service.domain.request import Call
from service.domain.sizes import check_merged
from service.domain.text import content_hash
from service.language import kinds
from service.memories import reading, writing
from service.memories.pipeline import UNCOMPARED, run
from service.memories.statements import history, memories, updates
from service.memories.writing import ChangeContext
from service.queue.statements import queue
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import Write, check_share, write_transaction


async def revise(workspace_id: UUID, memory_id: UUID, revision: Revision, res: Resources, call: Call) -> Memory:
    """The memory as it is afterwards. Raises NotFound, PreconditionFailed, PiiRejected, or Conflict when another memory
    of the scope has the new text already. Values equal to the present ones are no change."""
    memory = await reading.get(workspace_id, memory_id, res)
    check_share(memory.scope, call)  # before anything is embedded
    refuse_past(memory)
    draft = await _prepare(memory, revision, res)
    async with write_transaction(memory.scope, res, call) as write:
        session = write.session
        await history.lock(session, [memory_id])
        old = await memories.get(session, memory_id, alive_at=res.clock())
        if old is None:
            raise NotFound.of("memory")
        write.check_version(old.version)
        values = changes(old, revision, draft)
        revised = old
        if values or "last_accessed" in revision.columns:
            text = values.get("content")
            entry = await writing.append_change(ChangeContext(write, old.scope), memory_id, text)
            await _write(write, old, revision, draft, values)
            await writing.withdraw_text(session, old, text or old.text, entry)
            await write.audit("update", old.scope, [memory_id], fields=sorted(values))
            revised = await memories.get(session, memory_id) or old
        return await write.answer(revised)


async def _prepare(memory: Memory, revision: Revision, res: Resources) -> Draft:
    """The changes to write, redacted; for a new text also everything derived from it."""
    settings = res.settings
    chosen = revision.type or (memory.kind.type if memory.kind.source is ClassificationSource.EXPLICIT else None)
    record = memory.role is not None
    draft = Draft(
        scope=memory.scope,
        raw=revision.text or "",
        given=CallerFields(
            type=chosen,
            type_confidence=memory.kind.confidence if revision.type is None else revision.type_confidence,
            tags=revision.tags or (),
            metadata=revision.metadata or {},
            # a message keeps its date; a correction by hand refers to today
            timestamp=memory.timestamp if record else None,
            timezone=settings.memories.timezone,
        ),
        options=Options(use_llm=False, record=record, embed_later=not revision.embed_now),
        received_at=res.clock(),
    )
    return await run(UNCOMPARED if revision.text is not None else (pii.redact,), draft, res)


def changes(old: Memory, revision: Revision, draft: Draft) -> dict[str, Any]:
    """The columns that change, by name; raises InvalidInput when a memory would end before it begins."""
    values: dict[str, Any] = {}
    if revision.text is not None and content_hash(draft.clean) != old.hash:
        assert draft.kind is not None, "the pipeline is not through"
        assert draft.temporal is not None, "the pipeline is not through"
        values |= updates.text_columns(draft.clean, draft.term_weights) | memories.kind_and_times(
            draft.kind, draft.temporal
        )
        values |= {"categories": list(draft.categories), "embedding_status": str(draft.embedding_status)}
        if old.t_invalid == old.temporal.valid_until:  # no end, or one that the old text named itself
            since = old.t_valid if old.t_invalid is None else None
            values |= {"t_valid": draft.given.t_valid or since, "t_invalid": draft.given.t_invalid}
    if revision.type is not None:
        kind = kinds.explicit(revision.type, revision.type_confidence)
        values |= {"type": str(kind.type), "type_confidence": kind.confidence, "classification_source": kind.source}
    elif revision.type_confidence is not None:
        values["type_confidence"] = revision.type_confidence
    if revision.importance is not None:
        values |= {"importance": revision.importance.value, "importance_level": revision.importance.level}
    if revision.tags is not None:  # both columns in one UPDATE
        values |= {"tags": list(draft.tags), "tag_prefixes": list(draft.tag_prefixes)}
    if revision.metadata is None:
        values["metadata"] = {}
    elif revision.metadata:
        merged = {**old.metadata, **draft.metadata}
        values["metadata"] = {key: value for key, value in merged.items() if draft.metadata.get(key, key) is not None}
        check_merged("metadata", values["metadata"])
    values |= {name: value for name, value in revision.columns.items() if name != "last_accessed"}
    since, until = values.get("t_valid", old.t_valid), values.get("t_invalid", old.t_invalid)
    if since is not None and until is not None and since >= until:
        raise InvalidInput("t_valid: must be before t_invalid.", field="t_valid")
    current = _as_it_is(old, ("t_valid", "t_invalid", *revision.columns))
    return {name: value for name, value in values.items() if name not in current or current[name] != value}


def _as_it_is(old: Memory, names: Sequence[str]) -> dict[str, Any]:
    """The columns that a caller may change, as they are. `names`: those that change as they were sent."""
    return {
        "type": str(old.kind.type),
        "type_confidence": old.kind.confidence,
        "classification_source": old.kind.source,
        "importance": old.importance.value,
        "importance_level": old.importance.level,
        "tags": list(old.tags),
        "tag_prefixes": list(old.tag_prefixes),
        "metadata": dict(old.metadata),
        **{name: getattr(old, name) for name in names},
    }


def refuse_past(memory: Memory) -> None:
    if memory.version_of is not None:
        raise Conflict(f"This is a past version of memory {memory.version_of}; change that one instead.", field="id")


async def _write(write: Write, old: Memory, revision: Revision, draft: Draft, values: dict[str, Any]) -> None:
    session, res = write.session, write.res
    now = res.clock()
    if "content" in values:
        await memories.release_expired(session, [values["hash"]], now=now)
    await updates.set_columns(session, [old.id], values, now=now)
    stat: dict[str, Any] = {}
    if "last_accessed" in revision.columns:
        stat["last_accessed"] = revision.columns["last_accessed"]
    if "fact_confidence" in values:  # what a person has set does not decay
        stat |= {"base_confidence": None, "confidence": None}
    if "importance" in values:
        stat |= dict.fromkeys(("base_salience", "salience"), values["importance"])
    if stat:
        await updates.set_stat(session, old.id, stat)
    if "content" in values:
        kind = "placeholder" if draft.embedding_status is EmbeddingStatus.PLACEHOLDER else "text"
        vectors = {} if draft.vector is None else {kind: draft.vector}
        await updates.replace_vectors(session, old.scope, old.id, vectors, generation=res.generation)
        embed = draft.embedding_status is not EmbeddingStatus.STORED
        await queue.enqueue(session, writing.follow_up(old.id, embed=embed))
        await writing.rewrite_contexts(session, old)
