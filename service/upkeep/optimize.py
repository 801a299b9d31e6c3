"""Applies findings that a person has confirmed, all in one transaction or none.

Under the locks of the scopes and rows concerned, each change is checked again: it must still be a finding and unchanged
since the report. Changes of memories are one ruling and can be undone like any other (undo.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.decision import Evidence
from service.domain.errors import Conflict
from service.domain.memory import Memory
from service.domain.request import Call
from service.domain.scope import Scope
from service.domain.version import begins
from service.graph.statements import entities
from service.memories import writing
from service.memories.statements import decisions, history, memories, sources, updates, versions
from service.memories.writing import ChangeContext
from service.postgres.engine import Session
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import scopes_transaction
from service.upkeep.optimization_report import began, find_chosen, ids_of
from service.upkeep.statements import findings
from service.upkeep.values import CleanupChange, CleanupFinding, Section

CHANGED = "{id} has changed since the report, or is no longer a finding. Nothing was done: read the report again."
OVER = "{id} is not decided here: {reason}"


async def apply(
    workspace_id: UUID, changes: Sequence[CleanupChange], res: Resources, call: Call, *, dry_run: bool
) -> UUID | None:
    """Applies the changes, or with `dry_run` only checks them. Returns a decision with which all of it can be undone;
    None: nothing can. No change may remove what another one keeps or removes. Raises Conflict naming the first that is
    no longer as reported."""
    confirmed = await _find_confirmed(workspace_id, changes, res)
    if dry_run:
        return None
    of_memories = ids_of(change for change in changes if change.section != "orphan_entities")
    async with res.db.read(workspace_id) as session:
        scopes = {memory.scope for memory in (await memories.get_many(session, of_memories)).values()}
    async with scopes_transaction(workspace_id, scopes, res, call) as write:
        session = write.session
        await history.lock(session, of_memories)
        orphans = sorted(change.id for change in changes if change.section == "orphan_entities")
        await entities.lock(session, orphans)
        await _check(session, changes, res)
        by_id = await memories.get_many(session, of_memories)
        ruling = uuid7() if any(change.is_undoable for change in changes) else None
        for finding in confirmed:
            if finding.change.section != "orphan_entities":
                context = ChangeContext(write, by_id[finding.change.id].scope, _evidence(finding), ruling)
                await _carry_out(context, finding.change, by_id)
        await entities.remove(session, orphans)
        ids = [change.id for change in changes]
        await write.audit(
            "optimize",
            Scope(workspace_id),
            ids,
            sections=sorted({change.section for change in changes}),
            ruling_id=ruling and str(ruling),
        )
        first = await decisions.first_of_ruling(session, ruling) if ruling else None
        return await write.answer(first)


async def _find_confirmed(workspace_id: UUID, changes: Sequence[CleanupChange], res: Resources) -> list[CleanupFinding]:
    """The findings that the changes name; raises Conflict."""
    known: dict[CleanupChange, CleanupFinding] = {}
    for section, section_changes in _by_section(changes).items():
        known |= await find_chosen(workspace_id, section, section_changes, res)
    for index, change in enumerate(changes):
        if change not in known:
            raise _conflict(index, change)
        if known[change].review_id is not None:
            raise Conflict(OVER.format(id=change.id, reason=known[change].reason), field=f"changes[{index}]")
    return [known[change] for change in changes]


async def _check(session: Session, changes: Sequence[CleanupChange], res: Resources) -> None:
    """Checks the changes under the locks. Texts are not compared again: an equal version has an equal text."""
    for section, chosen in _by_section(changes).items():
        candidates = await findings.among(session, section, ids_of(chosen), now=res.clock())
        known = {_versions(candidate.change) for candidate in candidates}
        for change in chosen:
            if _versions(change) not in known:
                raise _conflict(changes.index(change), change)


def _versions(change: CleanupChange) -> frozenset[tuple[UUID | None, int | None]]:
    return frozenset({(change.id, change.version), (change.kept_id, change.kept_version)})


def _by_section(changes: Sequence[CleanupChange]) -> Mapping[Section, list[CleanupChange]]:
    by_section: dict[Section, list[CleanupChange]] = {}
    for change in changes:
        by_section.setdefault(change.section, []).append(change)
    return by_section


def _conflict(index: int, change: CleanupChange) -> Conflict:
    about = f"{change.id} (or {change.kept_id})" if change.kept_id else str(change.id)
    return Conflict(CHANGED.format(id=about), field=f"changes[{index}]")


def _evidence(finding: CleanupFinding) -> Evidence:
    return Evidence("review", "person", finding.change.remedy, finding.reason, tuple(sorted(finding.change.ids)))


async def _carry_out(context: ChangeContext, change: CleanupChange, by_id: Mapping[UUID, Memory]) -> None:
    old = by_id[change.id]
    match change.remedy:
        case "join":
            await _join(context, old, change.kept_id)
        case "retire":
            newer = by_id[change.kept_id] if change.kept_id else old
            at = begins(newer.timestamp, newer.t_valid, newer.t_invalid)
            await writing.retire(context, old.id, at=at)
        case "archive":
            await writing.archive(context, old.id)
        case "queue_embedding":
            jobs = writing.follow_up(change.id, embed=True, enrich=False)
            await queue.enqueue(context.session, jobs)


async def _join(context: ChangeContext, goes: Memory, stays_id: UUID | None) -> None:
    """Archives a memory whose content another one has completely, and gives that one its tags, categories, metadata,
    sources, the greater importance and the later expiry."""
    assert stays_id is not None, "a pair has two"
    session, res = context.session, context.res
    was = await history.snapshot(session, stays_id, generation=res.generation)
    stays = await memories.get(session, stays_id)  # it may have taken in another one just now
    assert was is not None, "it is locked"
    assert stays is not None, "it is locked"
    older, newer = sorted((goes, stays), key=began)
    values = updates.unite_columns(older, newer)
    if goes.importance.value > stays.importance.value:
        values |= {"importance": goes.importance.value, "importance_level": goes.importance.level}
    if stays.expires_at is not None and (goes.expires_at is None or goes.expires_at > stays.expires_at):
        values["expires_at"] = goes.expires_at
    await updates.set_columns(session, stays.id, values, now=res.clock())
    if goes.timestamp > stays.timestamp:
        await versions.note_repetition(session, stays.id, goes.timestamp)
    await sources.copy(session, goes.id, stays.id)
    await writing.append_change(replace(context, scope=stays.scope), stays.id, stays.text, stays.text, was)
    await writing.archive(context, goes.id)
