"""Reports what could be cleaned up in a workspace and why, with one bounded walk and a short read per section, and
applies findings that a person has confirmed, all in one transaction or none.

Under the locks of the scopes and rows concerned, each change is checked again: it must still be a finding and unchanged
since the report. Changes of memories are one ruling and can be undone like any other (undo.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.decision import Evidence
from service.domain.errors import Conflict
from service.domain.memory import Memory
from service.domain.request import Call
from service.domain.scope import Scope
from service.domain.version import begins
from service.graph.statements import entities
from service.http import cursors
from service.memories import writing
from service.memories.statements import decisions, history, memories, sources, updates, versions
from service.memories.writing import ChangeContext
from service.postgres.engine import Session
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import scopes_transaction
from service.understanding import compare
from service.understanding.compare import LinkKind
from service.upkeep.statements import findings
from service.upkeep.statements.findings import Candidate, Walked
from service.upkeep.values import (
    ApplyOptimizationResponse,
    GainUnit,
    OptimizationChangeItem,
    OptimizationFinding,
    OptimizationSection,
    Section,
    WalkCursor,
)

SHOWN_CHARS = 240
COMPARED_AT_ONCE = 200
"""The most pairs of a page of duplicates whose texts are compared."""
COMPARED_CHARS = 300_000
"""The most characters of these pairs: some 0.6 s of CPU."""

CONTRADICTED: Final[Mapping[str, str]] = {
    "MAY_OUTDATE": "A newer memory may say what holds instead; both were kept in doubt.",
    "CONTRADICTS": "It is linked as contradicting a memory that began later.",
    "REVIEW": "A fact that contradicts it waits for a review: accept or reject that.",
}

CHANGED = "{id} has changed since the report, or is no longer a finding. Nothing was done: read the report again."
OVER = "{id} cannot be decided here: {reason}"


async def report(
    workspace_id: UUID, section: Section, res: Resources, *, after: WalkCursor, limit: int
) -> OptimizationSection:
    """The findings of a section after a place, in the order of their ids. Duplicates that share a memory with an
    earlier finding of the page are left out, because joining that one changes them."""
    most = COMPARED_AT_ONCE if section == "duplicates" else limit
    async with res.db.read(workspace_id) as session:
        walked = await findings.walk(session, section, after=after, limit=most, now=res.clock())
        by_id = await _memories_of(session, walked.candidates)
    if section == "duplicates":
        return await _duplicates(walked, by_id, res, limit)
    shown = [finding for _, finding in _describe(walked.candidates, by_id)]
    rest = walked.candidates[-1].cursor if walked.total > len(walked.candidates) else walked.last
    return _section(section, shown, walked.total, rest, is_exact=walked.last is None)


def _section(
    section: Section, shown: list[OptimizationFinding], total: int, rest: WalkCursor | None, *, is_exact: bool
) -> OptimizationSection:
    cursor = cursors.pack(*rest) if rest else None
    return OptimizationSection(section=section, findings=shown, total=total, is_exact=is_exact, next_cursor=cursor)


async def _find_chosen(
    workspace_id: UUID, section: Section, changes: Iterable[OptimizationChangeItem], res: Resources
) -> Mapping[OptimizationChangeItem, OptimizationFinding]:
    """The findings of a section about the ids of these changes, by change."""
    ids = _ids_of(changes)
    async with res.db.read(workspace_id) as session:
        candidates = await findings.among(session, section, ids, now=res.clock())
        by_id = await _memories_of(session, candidates)
    if section == "duplicates":
        return dict((await _redundant(candidates, by_id, res)).values())
    return dict(_describe(candidates, by_id))


def _ids_of(changes: Iterable[OptimizationChangeItem]) -> list[UUID]:
    """The ids that they remove and keep, each once, ascending."""
    return sorted({each for change in changes for each in change.ids})


async def _memories_of(session: Session, candidates: Iterable[Candidate]) -> Mapping[UUID, Memory]:
    changes = [candidate.change for candidate in candidates if candidate.change.section != "orphan_entities"]
    return await memories.get_many(session, _ids_of(changes)) if changes else {}


async def _duplicates(walked: Walked, by_id: Mapping[UUID, Memory], res: Resources, limit: int) -> OptimizationSection:
    """The total is exact if all pairs were compared; otherwise it is the number of pairs left."""
    pairs = _affordable(walked.candidates, by_id)
    redundant = await _redundant(pairs, by_id, res)
    shown, used = list[OptimizationFinding](), set[UUID]()
    for index, pair in enumerate(pairs):
        if len(shown) == limit:
            pairs = pairs[:index]
            break
        if pair.cursor in redundant and used.isdisjoint(pair.change.ids):
            shown.append(redundant[pair.cursor][1])
            used.update(pair.change.ids)
    if len(pairs) < walked.total:
        return _section("duplicates", shown, walked.total, pairs[-1].cursor, is_exact=False)
    return _section("duplicates", shown, len(redundant), walked.last, is_exact=walked.last is None)


def _affordable(pairs: Sequence[Candidate], by_id: Mapping[UUID, Memory]) -> Sequence[Candidate]:
    """The first pairs that are compared within COMPARED_CHARS; at least one."""
    chars = 0
    for index, pair in enumerate(pairs):
        chars += sum(len(memory.text) for memory in _both(pair, by_id))
        if chars > COMPARED_CHARS and index:
            return pairs[:index]
    return pairs


def _both(pair: Candidate, by_id: Mapping[UUID, Memory]) -> list[Memory]:
    """The memories of a pair, the one valid earlier first; fewer than two if one is gone."""
    return sorted((by_id[each] for each in pair.change.ids if each in by_id), key=_began)


async def _redundant(
    pairs: Iterable[Candidate], by_id: Mapping[UUID, Memory], res: Resources
) -> Mapping[WalkCursor, tuple[OptimizationChangeItem, OptimizationFinding]]:
    """The pairs whose memories say the same, by place in the walk."""
    complete = [(pair, both[0], both[1]) for pair in pairs if len(both := _both(pair, by_id)) == 2]
    texts = [(newer.text, older.text, float(pair.detail["similarity"])) for pair, older, newer in complete]
    links = await res.rules.run(lambda: [compare.relate(*each) for each in texts]) if texts else []
    redundant = {}
    for (pair, older, newer), link in zip(complete, links, strict=True):
        if link is None or link.kind is not LinkKind.SAME:
            continue
        change = OptimizationChangeItem(
            section="duplicates", id=newer.id, version=newer.version, kept_id=older.id, kept_version=older.version
        )
        reason = f"It says the same; the two are {pair.detail['similarity']:.2f} similar."
        redundant[pair.cursor] = change, _finding(change, reason, _start(newer), kept=_start(older))
    return redundant


def _began(memory: Memory) -> tuple[datetime, datetime, UUID]:
    """Sort key: the one valid earlier comes first, then the one that arrived earlier."""
    return begins(memory.timestamp, memory.t_valid, memory.t_invalid), memory.created_at, memory.id


def _start(memory: Memory) -> str:
    return memory.text[:SHOWN_CHARS]


def _finding(
    change: OptimizationChangeItem,
    reason: str,
    about: str,
    *,
    gain: int = 1,
    gain_unit: GainUnit = "memories",
    kept: str | None = None,
    review_id: UUID | None = None,
) -> OptimizationFinding:
    return OptimizationFinding.of(
        change,
        change=change if review_id is None else None,
        reason=reason,
        gain=gain,
        gain_unit=gain_unit,
        about=about,
        kept=kept,
        review_id=review_id,
    )


def _describe(
    candidates: Iterable[Candidate], by_id: Mapping[UUID, Memory]
) -> Iterator[tuple[OptimizationChangeItem, OptimizationFinding]]:
    """The findings other than duplicates, without those whose memories have been deleted in the meantime."""
    for candidate in candidates:
        change, detail = candidate.change, candidate.detail
        if change.section == "orphan_entities":
            reason = "No memory and no relation names it."
            yield change, _finding(change, reason, detail["about"], gain=detail["bytes"], gain_unit="bytes")
        elif set(change.ids) <= by_id.keys():
            yield change, _describe_memory(change, detail, by_id)


def _describe_memory(
    change: OptimizationChangeItem, detail: Mapping[str, Any], by_id: Mapping[UUID, Memory]
) -> OptimizationFinding:
    section, text = change.section, _start(by_id[change.id])
    if section == "missing_vectors":
        died = f" {detail['deaths']} died, the last of: {detail['last_error']}." if detail["deaths"] else ""
        return _finding(change, f"No job is going to make its vector.{died}", text, gain_unit="vectors")
    if section == "contradictions":
        review = UUID(detail["review_id"]) if detail["review_id"] else None
        kept = _start(by_id[change.kept_id]) if change.kept_id else None
        return _finding(change, CONTRADICTED[detail["type"]], text, kept=kept, review_id=review)
    if section == "low_value":
        reason = f"Importance {detail['importance_level']} of 10, relevance {detail['relevance']:.2f}: nobody uses it."
    elif detail["valid_until"]:
        reason = f"It held until {detail['valid_until'][:10]}."
    else:
        reason = f"It has not been used since {detail['last_accessed'][:10]}."
    return _finding(change, reason, text)


async def apply(
    workspace_id: UUID, changes: Sequence[OptimizationChangeItem], res: Resources, call: Call, *, dry_run: bool
) -> ApplyOptimizationResponse:
    """Applies the changes, or with `dry_run` only checks them. No change may remove what another one keeps or removes.
    Raises Conflict naming the first that is no longer as reported."""
    reasons = await _confirm(workspace_id, changes, res)
    if dry_run:
        return ApplyOptimizationResponse(dry_run=True, applied=0, decision_id=None)
    of_memories = _ids_of(change for change in changes if change.section != "orphan_entities")
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
        for change, reason in zip(changes, reasons, strict=True):
            if change.section != "orphan_entities":
                evidence = Evidence("review", "person", change.remedy, reason, tuple(sorted(change.ids)))
                context = ChangeContext(write, by_id[change.id].scope, evidence, ruling)
                await _carry_out(context, change, by_id)
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
        return await write.answer(ApplyOptimizationResponse(dry_run=False, applied=len(changes), decision_id=first))


async def _confirm(workspace_id: UUID, changes: Sequence[OptimizationChangeItem], res: Resources) -> list[str]:
    """The reasons of the findings that the changes name; raises Conflict."""
    known: dict[OptimizationChangeItem, OptimizationFinding] = {}
    for section, section_changes in _by_section(changes).items():
        known |= await _find_chosen(workspace_id, section, section_changes, res)
    for index, change in enumerate(changes):
        if change not in known:
            raise _conflict(index, change)
        if known[change].review_id is not None:
            raise Conflict(OVER.format(id=change.id, reason=known[change].reason), field=f"changes[{index}]")
    return [known[change].reason for change in changes]


async def _check(session: Session, changes: Sequence[OptimizationChangeItem], res: Resources) -> None:
    """Checks the changes under the locks. Texts are not compared again: an equal version has an equal text."""
    for section, chosen in _by_section(changes).items():
        candidates = await findings.among(session, section, _ids_of(chosen), now=res.clock())
        known = {_versions(candidate.change) for candidate in candidates}
        for change in chosen:
            if _versions(change) not in known:
                raise _conflict(changes.index(change), change)


def _versions(change: OptimizationChangeItem) -> frozenset[tuple[UUID | None, int | None]]:
    return frozenset({(change.id, change.version), (change.kept_id, change.kept_version)})


def _by_section(changes: Sequence[OptimizationChangeItem]) -> Mapping[Section, list[OptimizationChangeItem]]:
    by_section: dict[Section, list[OptimizationChangeItem]] = {}
    for change in changes:
        by_section.setdefault(change.section, []).append(change)
    return by_section


def _conflict(index: int, change: OptimizationChangeItem) -> Conflict:
    about = f"{change.id} (or {change.kept_id})" if change.kept_id else str(change.id)
    return Conflict(CHANGED.format(id=about), field=f"changes[{index}]")


async def _carry_out(context: ChangeContext, change: OptimizationChangeItem, by_id: Mapping[UUID, Memory]) -> None:
    old = by_id[change.id]
    match change.remedy:
        case "join":
            await _join(context, old, change.kept_id)
        case "retire":
            newer = by_id[change.kept_id] if change.kept_id else old
            at = begins(newer.timestamp, newer.t_valid, newer.t_invalid)
            await writing.retire(context, old.id, at=at)
        case "archive":
            await writing.archive(context, [old.id])
        case "queue_embedding":
            jobs = writing.follow_up(change.id, embed=True, enrich=False)
            await queue.enqueue(context.session, jobs)


async def _join(context: ChangeContext, removed: Memory, kept_id: UUID | None) -> None:
    """Archives a memory whose content another one has completely, and gives that one its tags, categories, metadata,
    sources, the greater importance and the later expiry."""
    assert kept_id is not None, "a pair has two"
    session, res = context.session, context.res
    kept = await memories.get(session, kept_id)  # it may have taken in another one just now
    assert kept is not None, "it is locked"
    older, newer = sorted((removed, kept), key=_began)
    values = updates.unite_columns(older, newer)
    if removed.importance.value > kept.importance.value:
        values |= {"importance": removed.importance.value, "importance_level": removed.importance.level}
    if kept.expires_at is not None and (removed.expires_at is None or removed.expires_at > kept.expires_at):
        values["expires_at"] = removed.expires_at
    await writing.append_change(replace(context, scope=kept.scope), kept.id)
    await updates.set_columns(session, [kept.id], values, now=res.clock())
    if removed.timestamp > kept.timestamp:
        await versions.note_repetition(session, kept.id, removed.timestamp)
    await sources.copy(session, removed.id, kept.id)
    await writing.archive(context, [removed.id])
