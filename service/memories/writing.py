"""Everything that changes with a memory: row, vectors, history, evidence, audit and jobs, in the caller's transaction.

The caller holds the scope lock; one that changes several memories has locked them all (history.lock). A memory that is
to change is locked and goes to its history with all that belongs to it, before the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.conversations.statements import contexts, withdrawn
from service.conversations.statements.withdrawn import Withdrawal
from service.domain.decision import Action, Evidence
from service.domain.draft import EmbeddingStatus, NewMemory
from service.domain.errors import Conflict
from service.domain.job import NOTHING, NewJob, Payload
from service.domain.memory import Memory, Outcome
from service.domain.relation import Relation, RelationType
from service.domain.request import Operation
from service.domain.scope import Scope
from service.domain.text import CleanText, content_hash
from service.domain.version import begins
from service.graph.statements import edges
from service.language import lexemes, withdrawal
from service.memories.statements import decisions, history, memories, near_memories, updates, versions
from service.memories.statements.decisions import NewDecision
from service.memories.statements.history import Change
from service.postgres.direct import InsertBatch, NewRows
from service.postgres.engine import Session
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.statements import audit
from service.runtime.statements.audit import AuditEntry
from service.runtime.transactions import Write

OPERATION: Mapping[Action, Operation] = {
    Action.ADD: "store",
    Action.NONE: "store",
    Action.UPDATE: "update",
    Action.DELETE: "delete",
}

EMBED_PRIORITY = -10
"""The priority of a job "embed"; lower runs sooner: a memory is embedded, and so found by its meaning, before it is
enriched."""


class MemoryBatch(InsertBatch):
    """New memories of one transaction that are written together. `outdated`: pairs of a newer memory and an older one,
    which is marked afterwards, unless it has been erased by then. `changed`: the memories that were added or changed so
    far; what was decided about them before must be decided again. `written`: the hashes of the texts so far."""

    def __init__(self, write: Write) -> None:
        super().__init__(write.session)
        self.write = write
        self.outdated: list[tuple[UUID, UUID]] = []
        self.changed: set[UUID] = set()
        self.written: set[str] = set()

    async def flush(self) -> None:
        await super().flush()
        pairs, self.outdated = self.outdated, []
        if pairs:
            await edges.mark_may_outdate(self.session, pairs)


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """What all changes of memories that one decision causes share. With `ruling_id` they are undone together."""

    write: Write
    scope: Scope
    evidence: Evidence | None = None
    ruling_id: UUID | None = None

    @property
    def session(self) -> Session:
        return self.write.session

    @property
    def res(self) -> Resources:
        return self.write.res

    async def lock(self, memory_id: UUID) -> None:
        """Locks the memory until the transaction ends. Raises Gone."""
        if not await history.lock(self.session, [memory_id]):
            raise Gone("The memory that was to be changed no longer exists.")

    async def keep_evidence(
        self, memory_id: UUID | None, event: Action = Action.NONE, history_id: UUID | None = None
    ) -> None:
        """Keeps the evidence with a memory: what happened to it, and the entry of its history, if it has changed."""
        if self.evidence is not None:
            ruling_id = self.ruling_id if history_id else None
            decided = NewDecision(memory_id, self.evidence, self.scope, event, history_id, ruling_id)
            await decisions.append(self.session, [decided])


class Gone(Conflict):
    """The memory to change was erased in the meantime: bulk deletes take no scope lock. Callers may decide again."""


async def add(
    batch: MemoryBatch, new_memories: Sequence[NewMemory], *, ruling_id: UUID | None = None, enrich: bool = True
) -> None:
    """New memories with everything that belongs to them but the audit, which verbs write once per request. Their rows
    join the batch: the caller flushes it before it reads any of them.

    `ruling_id` groups the edits of one decision, which are undone together. `enrich`: past versions need no enrichment.
    """
    if not new_memories:
        return
    session, res = batch.session, batch.write.res
    now = res.clock()
    decided = [
        NewDecision(memory.id, memory.draft.evidence, memory.draft.scope, Action.ADD, memory.history_id, ruling_id)
        for memory in new_memories
        if memory.draft.evidence
    ]
    jobs = [job for memory in new_memories for job in _jobs_of(memory, memory.id, enrich=enrich)]
    if hashes := [new.hash for new in new_memories if new.expired_duplicate_possible]:
        await memories.release_expired(session, hashes, now=now)
    batch.add(
        *memories.new_rows(new_memories, generation=res.generation, now=now),
        decisions.new_rows(decided),
        queue.new_rows(session.workspace_id, jobs),
    )
    reused = [
        Change(memory.id, Action.ADD, id=memory.history_id)
        for memory in new_memories
        if memory.draft.given.id is not None  # in use before, perhaps: entries of its history may still be open
    ]
    if reused:
        await batch.flush()
        await history.append(session, reused, generation=res.generation)


async def update(context: ChangeContext, target: UUID, new: NewMemory) -> str:
    """Gives the target the text and the times of `new`; what it said before is kept as a past version. Returns its old
    text. Raises Gone."""
    session, res = context.session, context.res
    await context.lock(target)
    old = await memories.get(session, target)
    assert old is not None, "it is locked"
    change_id, start = uuid7(), begins(new.draft.timestamp, new.draft.given.t_valid, new.draft.given.t_invalid)
    kept = old.hash != new.hash and await _keep_past(context, target, change_id, start)
    await append_change(context, target, new.text, entry=change_id)
    since = new.draft.given.t_valid
    if since is None and (kept or old.t_valid is not None):
        since = holds_since(start, new.draft.given.t_invalid, res)
    await updates.replace_text(session, old, new, t_valid=since, generation=res.generation, now=res.clock())
    fades_from = {"base_confidence": new.fact_confidence, "confidence": None, "confirmed_at": new.draft.timestamp}
    await updates.set_stat(session, target, fades_from)
    await withdraw_text(session, old, new.text, change_id)
    await rewrite_contexts(session, old)
    await queue.enqueue(session, _jobs_of(new, target))
    return old.text


async def remove_sentence(context: ChangeContext, target: UUID, rest: CleanText, *, at: datetime | None) -> bool:
    """Takes a sentence that is no longer true out of a memory, which keeps its id and times, and the `rest` of its
    text. The old text becomes a past version that was valid until `at`, and its vector stays until a job makes the new
    one, so that what is said next is compared with it. None: no version and no vector, because it is to be forgotten.
    Returns False and changes nothing if the memory was deleted, or another memory already has the rest."""
    session, scope, res = context.session, context.scope, context.res
    await history.lock(session, [target])
    old, digest = await memories.get(session, target), content_hash(rest)
    if old is None or await near_memories.with_hash(session, scope, digest, now=res.clock()) is not None:
        return False
    change_id = uuid7()
    if at is not None:
        await _keep_past(context, target, change_id, at)
    await append_change(context, target, rest, entry=change_id)
    columns = updates.text_columns(rest, lexemes.weights(rest))
    await updates.set_columns(session, [target], columns, now=res.clock())
    if at is None:
        await updates.replace_vectors(session, scope, target, {}, generation=res.generation)
    await rewrite_contexts(session, old)
    await queue.enqueue(session, follow_up(target, embed=True))
    return True


async def _keep_past(context: ChangeContext, target: UUID, change_id: UUID, until: datetime) -> bool:
    """Keeps what a memory says, before it changes, as a past version that held until then; False when it never held.

    Its id is that of the entry of history that ends it, so that undoing the change finds it. That entry comes after it:
    at no moment does history have neither.
    """
    session, now = context.session, context.res.clock()
    return await versions.keep(session, target, change_id, version_of=target, history_id=uuid7(), until=until, now=now)


def holds_since(start: datetime, until: datetime | None, res: Resources) -> datetime | None:
    """The `t_valid` of a statement that follows another one without saying since when it holds. None for one about the
    future, which counts now, and for one about a time that was past when it was said."""
    return start if start <= res.clock() and (until is None or start < until) else None


async def set_columns(context: ChangeContext, target: UUID, values: Mapping[str, Any]) -> UUID:
    """Sets columns other than the text of a memory; returns the id of the history entry. Raises Gone, or Conflict when
    another live memory has its text."""
    await context.lock(target)
    entry = await append_change(context, target)
    await updates.set_columns(context.session, [target], values, now=context.res.clock())
    return entry


async def extend_expiry(write: Write, scope: Scope, target: UUID, until: datetime | None) -> None:
    """Moves the end of a memory to `until` (None: it never ends) if it would end sooner: its text was stored again."""
    if await updates.expires_before(write.session, target, until):
        await set_columns(ChangeContext(write, scope), target, {"expires_at": until})


async def retire(context: ChangeContext, target: UUID, *, at: datetime) -> None:
    """Archives a memory that is no longer true since `at`; its history says DELETE. Raises Gone.

    A curator never erases: docs/decisions/019-contradiction-policy.md.
    """
    await context.lock(target)
    change_id = uuid7()
    await _keep_past(context, target, change_id, at)
    await append_change(context, target, action=Action.DELETE, entry=change_id)
    ended = {"archived": True, "t_invalid": updates.end_at(at)}
    await updates.set_columns(context.session, [target], ended, now=context.res.clock())
    await _withdraw(context.session, target, Withdrawal("superseded", change_id))


async def archive(context: ChangeContext, targets: Sequence[UUID]) -> list[UUID]:
    """Archives memories that are still true, so that searches skip them; returns those that were not archived yet."""
    session, res = context.session, context.res
    await history.lock(session, targets)
    known = await memories.get_many(session, targets)
    changes = {key: Change(key, Action.UPDATE) for key, memory in known.items() if not memory.archived}
    await history.append(session, list(changes.values()), generation=res.generation)
    for key, change in changes.items():
        await context.keep_evidence(key, change.event, change.id)
    await updates.set_columns(session, list(changes), {"archived": True}, now=res.clock())
    return list(changes)


async def end_validity(context: ChangeContext, target: UUID, by: UUID, *, at: datetime) -> None:
    """Ends the validity of a memory at a moment, and adds the edge "by SUPERSEDES target" from its replacement. Raises
    Gone.

    The memory no longer takes part in deduplication, so that the same fact can become true again.
    """
    session = context.session
    entry = await set_columns(context, target, updates.ended(at))
    await _withdraw(session, target, Withdrawal("superseded", entry, by))
    supersedes = Relation(by, RelationType.SUPERSEDES, target, t_valid=context.res.clock())
    await edges.put(session, supersedes)


async def withdraw_text(session: Session, old: Memory, new_text: str, entry: UUID) -> None:
    """Withdraws the sentences of a text that was changed by this entry of history, unless the new one only adds to
    it."""
    if not withdrawal.still_said(old.text, new_text):
        why = Withdrawal("updated", entry, old.id)
        await _withdraw(session, old.id, why, old_text=old.text)


async def withdraw_older(session: Session, outcomes: Sequence[Outcome]) -> None:
    """Withdraws the sentences of a statement that was out of date when it was said. Call it once its sources are
    linked."""
    for outcome in outcomes:
        if outcome.kept_as is not None:
            why = Withdrawal("superseded", None, outcome.memory_id)
            await _withdraw(session, outcome.kept_as, why)


async def _withdraw(session: Session, target: UUID, why: Withdrawal, *, old_text: str | None = None) -> None:
    turns = await withdrawn.withdraw(session, [target], why, old_text=old_text)
    await withdrawn.refresh(session, turns)


async def append_change(
    context: ChangeContext,
    memory_id: UUID,
    content: str | None = None,
    *,
    action: Action = Action.UPDATE,
    entry: UUID | None = None,
) -> UUID:
    """Appends a change that is about to be made to history, and the evidence of the decision that caused it; returns
    the id of the entry, which is `entry` where one is given. `content`: the new text; None: it stays."""
    change = Change(memory_id, action, content, entry or uuid7())
    await history.append(context.session, [change], generation=context.res.generation)
    await context.keep_evidence(memory_id, action, change.id)
    return change.id


async def rewrite_contexts(session: Session, changed: Memory) -> None:
    """Rewrites the contexts of the turns after a changed turn, because they include its text."""
    if changed.turn_index is not None:
        positions = await contexts.positions(session, [changed.id])
        await contexts.rebuild(session, await contexts.dependents(session, positions))


def follow_up(memory_id: UUID, *, embed: bool, enrich: bool = True, payload: Payload = NOTHING) -> list[NewJob]:
    """The jobs after a write: enrichment, with `payload`, and the vector if it is missing."""
    jobs = [NewJob("enrich", memory_id=memory_id, payload=payload)] if enrich else []
    if embed:
        jobs.append(NewJob("embed", memory_id=memory_id, priority=EMBED_PRIORITY))
    return jobs


def _jobs_of(new: NewMemory, memory_id: UUID, *, enrich: bool = True) -> list[NewJob]:
    """The jobs after writing `new`. They carry its nearest memories, and the entities and relations that a model found
    in it, so that enrichment need not look for them."""
    known: dict[str, object] = {}
    if new.neighbours is not None:
        known |= {"hash": new.hash, "neighbours": [[str(each), similarity] for each, similarity in new.neighbours]}
    fact = new.draft.fact
    if fact is not None and (fact.entities or fact.relations):
        known["entities"] = [[entity.name, entity.type, entity.description] for entity in fact.entities]
        known["relations"] = [[relation.source, relation.relation, relation.target] for relation in fact.relations]
    embed = new.embedding_status is not EmbeddingStatus.STORED
    return follow_up(memory_id, embed=embed, enrich=enrich, payload=known)


def audit_rows(write: Write, scope: Scope, outcomes: Sequence[Outcome]) -> NewRows:
    """One audit entry per outcome, none if the workspace wants no audit."""
    call, settings = write.call, write.res.settings
    if settings.history.audit_level == "off":
        return audit.new_rows([])
    thresholds = audit.thresholds(settings)
    entries = [
        AuditEntry(
            operation=OPERATION[outcome.event],
            memory_type="episodic" if outcome.draft.options.record else "semantic",
            scope=scope,
            affected_ids=(outcome.memory_id,) if outcome.memory_id else (),
            request_id=call.request_id,
            api_key_id=call.api_key_id,
            session_id=outcome.draft.given.session_id or call.session_id,
            conversation_id=outcome.conversation_id,
            config_snapshot=thresholds,
            metadata={"event": str(outcome.event), "action": str(outcome.dedup.action)},
        )
        for outcome in outcomes
    ]
    return audit.new_rows(entries)
