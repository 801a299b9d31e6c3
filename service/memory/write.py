"""What is written when memories change? Rows, vectors, history, audit, decision and jobs, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from service.db import direct, writes
from service.db.direct import InsertBatch, NewRows
from service.db.engine import Session
from service.db.episodes import contexts
from service.db.graph import edges
from service.db.jobs import queue
from service.db.memories import history, updates
from service.db.writes import NewDecision, PlacedMemory
from service.domain.audit import Operation
from service.domain.decision import Action, Evidence
from service.domain.draft import EmbeddingStatus, NewMemory
from service.domain.job import NewJob
from service.domain.memory import Outcome
from service.domain.relation import Relation, RelationType
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.errors import Conflict
from service.resources import Resources

OPERATION: Mapping[Action, Operation] = {
    Action.ADD: "store",
    Action.NONE: "store",
    Action.UPDATE: "update",
    Action.DELETE: "delete",
}

EMBED_FIRST = 10
"""Priority of jobs that make a memory findable over those that embellish it."""


class Gone(Conflict):
    """The memory that was to change was erased meanwhile: a bulk delete takes no scope lock. Who can, decides again."""


async def add(
    session: Session,
    placed: Sequence[PlacedMemory],
    res: Resources,
    *,
    ruling_id: UUID | None = None,
    waiting: InsertBatch | None = None,
) -> None:
    """New memories with everything that belongs to them but the audit, which the verbs write per request. With
    `waiting` they are written when it is: by who reads nothing of them before."""
    if not placed:
        return
    news, now = [each.memory for each in placed], res.clock()
    workspace_id = news[0].scope.workspace_id
    decided = [
        NewDecision(each.memory.id, each.memory.evidence, each.memory.scope, Action.ADD, each.history_id, ruling_id)
        for each in placed
        if each.memory.evidence
    ]
    if hashes := [new.hash for new in news if new.blocked and new.takes_part_in_dedup]:
        await writes.release_expired(session, workspace_id, hashes, now=now)
    filled = (
        *writes.memory_rows(placed, generation=res.generation, now=now),
        writes.decision_rows(workspace_id, decided),
        writes.job_rows(workspace_id, [job for new in news for job in jobs(new, new.id, res)]),
    )
    again = [_added(each) for each in placed if each.may_have_history]
    if waiting is not None and not again:
        waiting.add(*filled)
        return
    await direct.insert(session, *filled)
    if again:
        await history.append(session, workspace_id, again)


async def update(
    session: Session, target: UUID, new: NewMemory, res: Resources, *, ruling_id: UUID | None = None
) -> str:
    """The target gets the text of `new`; returns its old text."""
    workspace_id = new.scope.workspace_id
    was = await history.snapshot(session, workspace_id, target, generation=res.generation)
    if was is None:
        raise Gone("The memory that was to be updated is gone.")
    old = await updates.replace_text(session, target, new, generation=res.generation, now=res.clock())
    if old.turn_index is not None:  # the text of a turn also stands in the context of those after it
        places = await contexts.places(session, workspace_id, [target])
        await contexts.rewrite(session, workspace_id, await contexts.holders(session, workspace_id, places))
    change = history.Change(
        target, Action.UPDATE, old.scope, old.text, new.text, was.before, was.vector, was.generation
    )
    await history.append(session, workspace_id, [change])
    if new.evidence:
        cause = NewDecision(target, new.evidence, new.scope, Action.UPDATE, change.id, ruling_id)
        await writes.append_decisions(session, workspace_id, [cause])
    await queue.enqueue(session, workspace_id, jobs(new, target, res))
    return old.text


async def prolong(session: Session, scope: Scope, target: UUID, until: datetime | None, res: Resources) -> None:
    """Whoever repeats a text wants it kept as long as he says: a shorter life of the memory there is ends later now."""
    if not await updates.expires_before(session, scope.workspace_id, target, until):
        return
    was = await history.snapshot(session, scope.workspace_id, target, generation=res.generation)
    if was is not None:
        await updates.set_columns(session, scope.workspace_id, target, {"expires_at": until}, now=res.clock())
        text = str(was.before["content"])
        change = history.Change(target, Action.UPDATE, scope, text, text, was.before, was.vector, was.generation)
        await history.append(session, scope.workspace_id, [change])


async def retire(
    session: Session,
    scope: Scope,
    target: UUID,
    evidence: Evidence | None,
    res: Resources,
    *,
    ruling_id: UUID | None = None,
) -> None:
    """Archives a memory that is no longer true: a curator may retire, never erase. History says DELETE (A10)."""
    was = await history.snapshot(session, scope.workspace_id, target, generation=res.generation)
    if was is None:
        raise Gone("The memory that was to be retired is gone.")
    await updates.archive(session, scope.workspace_id, target, now=res.clock())
    text = str(was.before["content"])
    change = history.Change(target, Action.DELETE, scope, text, None, was.before, was.vector, was.generation)
    await history.append(session, scope.workspace_id, [change])
    if evidence is not None:
        cause = NewDecision(target, evidence, scope, Action.DELETE, change.id, ruling_id)
        await writes.append_decisions(session, scope.workspace_id, [cause])


async def supersede(
    session: Session,
    scope: Scope,
    target: UUID,
    by: UUID,
    evidence: Evidence | None,
    res: Resources,
    *,
    ruling_id: UUID | None = None,
) -> None:
    """Ends the validity of a memory now and ties the one that took its place to it: by SUPERSEDES target (C33).

    It also leaves deduplication, or the same fact could never become true again.
    """
    was = await history.snapshot(session, scope.workspace_id, target, generation=res.generation)
    if was is None:
        raise Gone("The memory that was to be superseded is gone.")
    now = res.clock()
    await updates.end_validity(session, scope.workspace_id, target, now=now)
    text = str(was.before["content"])
    change = history.Change(target, Action.UPDATE, scope, text, text, was.before, was.vector, was.generation)
    await history.append(session, scope.workspace_id, [change])
    await edges.put(session, scope.workspace_id, Relation(by, RelationType.SUPERSEDES, target, t_valid=now))
    if evidence is not None:
        cause = NewDecision(target, evidence, scope, Action.UPDATE, change.id, ruling_id)
        await writes.append_decisions(session, scope.workspace_id, [cause])


async def decided(session: Session, scope: Scope, memory_id: UUID | None, evidence: Evidence | None) -> None:
    """Keeps the evidence of a decision that leaves the memory as it is."""
    if evidence is not None:
        await writes.append_decisions(
            session, scope.workspace_id, [NewDecision(memory_id, evidence, scope, Action.NONE)]
        )


def jobs(new: NewMemory, memory_id: UUID, res: Resources) -> list[NewJob]:
    """What follows a write: the vector if it is missing, then enrichment."""
    attempts = res.settings.job_max_attempts
    found = [NewJob("enrich", memory_id=memory_id, max_attempts=attempts, payload=_seen(new))]
    if new.embedding_status is not EmbeddingStatus.STORED:
        found.append(NewJob("embed", memory_id=memory_id, max_attempts=attempts, priority=-EMBED_FIRST))
    return found


def _seen(new: NewMemory) -> dict[str, object]:
    """What the write found out already and enrichment need not look for: the nearest memories, where they were looked
    for, and what a model read in the text."""
    found: dict[str, object] = {}
    if new.near is not None:
        found |= {"hash": new.hash, "near": [[str(each), similarity] for each, similarity in new.near]}
    if new.fact is not None and (new.fact.entities or new.fact.relations):
        found["entities"] = [[each.name, each.type] for each in new.fact.entities]
        found["relations"] = [[each.source, each.relation, each.target] for each in new.fact.relations]
    return found


async def note(
    session: Session, scope: Scope, outcomes: Sequence[Outcome], request: WriteContext, res: Resources
) -> None:
    """One audit entry per outcome, unless the workspace wants none (R13.06)."""
    await direct.insert(session, noted(scope, outcomes, request, res))


def noted(scope: Scope, outcomes: Sequence[Outcome], request: WriteContext, res: Resources) -> NewRows:
    """The same as rows, to travel with others."""
    settings = res.settings
    if settings.audit_level == "off":
        return writes.audit_rows([])
    thresholds = writes.thresholds(settings)
    entries = [
        writes.AuditEntry(
            operation=OPERATION[outcome.event],
            memory_type="episodic" if outcome.draft.options.record else "semantic",
            scope=scope,
            affected_ids=(outcome.memory_id,) if outcome.memory_id else (),
            request_id=request.request_id,
            api_key_id=request.api_key_id,
            session_id=outcome.draft.given.session_id or request.session_id,
            conversation_id=outcome.conversation_id,
            config_snapshot=thresholds,
            metadata={"event": str(outcome.event), "action": str(outcome.dedup.action)},
        )
        for outcome in outcomes
    ]
    return writes.audit_rows(entries)


def _added(placed: PlacedMemory) -> history.Change:
    new = placed.memory
    return history.Change(new.id, Action.ADD, new.scope, None, new.text, id=placed.history_id)
