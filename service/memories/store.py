"""Storing one text as a memory.

Everything that waits for a network or needs much CPU happens first, with no lock and no connection held. Then one
transaction: the scope lock, the idempotency key, the neighbours checked again, and the rows. When the neighbours have
changed, the decision is made again; the fourth time the rules decide inside the lock, so no writer retries for ever.
"""

from __future__ import annotations

import time
from dataclasses import replace
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.decision import Action, Decision, Edit, Neighbour
from service.domain.draft import Dedup, DedupAction, Draft, EmbeddingStatus
from service.domain.errors import Conflict
from service.domain.memory import ACTION_OF, Outcome, StoreResult
from service.domain.request import WriteContext
from service.kit.rule_threads import LONG_CHARS
from service.memories import edits, late, write
from service.memories.stages import dedup
from service.memories.stages.stages import ANNOTATED, DECIDED_AGAIN, UNDECIDED, run, timed
from service.memories.statements import history, memories, promotable, versions
from service.memories.statements.deduplication import Neighbours
from service.postgres.direct import InsertBatch
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.statements.writes import PlacedMemory
from service.runtime.transactions import Stale, store_answer, write_transaction
from service.understanding.judge import judge

DECISIONS = 3


async def store(draft: Draft, res: Resources, request: WriteContext) -> Outcome:
    """One text through the pipeline and into the database; a dry run stops before the database."""
    draft = await run(UNDECIDED, draft, res)
    if _may_decide_inside(draft, res):
        outcome = await _store_new(draft, res, request)
        if outcome is not None:
            return outcome
    return await settle(await run(DECIDED_AGAIN, draft, res), res, request)


def _may_decide_inside(draft: Draft, res: Resources) -> bool:
    """Whether the rules alone decide about it, and soon enough for the scope lock."""
    options, asks = draft.options, res.llm is not None and draft.options.use_llm
    vector = draft.embedding_status is EmbeddingStatus.STORED
    return vector and not (asks or options.dry_run or draft.given.id) and len(draft.clean) <= LONG_CHARS


async def _store_new(draft: Draft, res: Resources, request: WriteContext) -> Outcome | None:
    """Stores a text that is simply new, as most are: its neighbours are looked up once, under the lock. None when it is
    not, or has long neighbours; then nothing was written."""
    draft = await run(ANNOTATED, draft, res)
    try:
        async with write_transaction(draft.scope, res, request) as session:
            draft = await _decided_as_new(session, draft, res)
            placed, rows = PlacedMemory(draft.finish(uuid7())), InsertBatch(session)
            outcome = outcome_of(draft, placed.memory.id, placed.memory.text)
            await write.add(session, [placed], res, batch=rows)
            rows.add(write.audit_rows(draft.scope, [outcome], request, res))
            await rows.flush()
            await store_answer(session, draft.scope.workspace_id, StoreResult((outcome,)), request)
    except _NotNew:
        return None
    return outcome


async def _decided_as_new(session: Session, draft: Draft, res: Resources) -> Draft:
    """The draft with the decision to add it, made under the lock; raises _NotNew."""
    if not draft.options.dedup:
        return replace(draft, dedup=dedup.NEW)
    began = time.perf_counter()
    found = await dedup.find_neighbours(session, draft, res)
    compared = time.perf_counter()
    if len(draft.clean) + sum(len(each.text) for each in found.neighbours) > LONG_CHARS:
        raise _NotNew
    draft = dedup.decide_by_rules(draft, found.neighbours, res.settings)
    if not is_simply_new(draft):
        raise _NotNew
    spent_ms = {"dedup": (compared - began) * 1000, "decide": (time.perf_counter() - compared) * 1000}
    return timed(replace(draft, expired_duplicate_possible=found.expired_duplicate_possible), spent_ms)


def is_simply_new(draft: Draft) -> bool:
    """Whether it was decided to add it, and nothing else."""
    if draft.dedup is None or draft.dedup.action is not DedupAction.STORED_NEW:
        return False
    decision = draft.decision
    return decision is None or not _changes_more(decision)


class _NotNew(Exception):
    """The text repeats, changes or may outdate something: that is decided outside the lock."""


async def settle(draft: Draft, res: Resources, request: WriteContext) -> Outcome:
    """The draft that passed all stages, written; decided again where its neighbours changed meanwhile."""
    if draft.options.dry_run:
        return outcome_of(draft, None, None)
    for _ in range(DECISIONS):
        try:
            return await _write(await _ready(draft, res), res, request)
        except (Stale, write.Gone):
            draft = await run(DECIDED_AGAIN, replace(draft, dedup=None, evidence=None, decision=None, merged=None), res)
    if draft.is_duplicate:  # then the pipeline stopped early, but the memory it equals may have been deleted since
        draft = await run(ANNOTATED, replace(draft, dedup=None), res)
    return await _write(draft, res, request, decide_inside=True)


async def _ready(draft: Draft, res: Resources) -> Draft:
    """The draft as far as its decision needs it: what a known text said before it is known to have held is written."""
    if not draft.is_duplicate or draft.kind is not None or not _becomes_history(draft):
        return draft
    return replace(await run(ANNOTATED, replace(draft, dedup=None), res), dedup=draft.dedup)


async def decide_among_others(session: Session, draft: Draft, res: Resources) -> Draft | None:
    """The draft with a decision that holds under the lock, which others made before it in the same transaction; None
    where that takes a rule process or the embedder. `draft.dedup`: None if it must be decided anew."""
    found = await dedup.find_neighbours(session, draft, res)
    try:
        if draft.dedup is None:
            raise Stale
        decided = still_holds(draft, found, res)
    except Stale:
        if len(draft.clean) + sum(len(each.text) for each in found.neighbours) > LONG_CHARS:
            return None
        decided = dedup.decide_by_rules(draft, found.neighbours, res.settings)
    return decided if _can_be_written(decided) else None


def _can_be_written(draft: Draft) -> bool:
    """Whether nothing is left to find out before it is written: no merged text, no annotation."""
    if draft.is_duplicate:
        return draft.kind is not None or not _becomes_history(draft)
    text = draft.decision.edits[0].text if draft.decision else None
    return draft.kind is not None and text in (None, draft.clean)


def _becomes_history(draft: Draft) -> bool:
    unchanged = _what_stays(draft)
    return unchanged is not None and late.is_older(draft, unchanged)


async def _write(draft: Draft, res: Resources, request: WriteContext, *, decide_inside: bool = False) -> Outcome:
    async with write_transaction(draft.scope, res, request) as session:
        if decide_inside:
            draft = await _decide_inside_lock(session, draft, res)
        else:
            draft = await _confirm(session, draft, res)
        outcome = await apply(session, await _with_chosen_id(session, draft), res)
        await write.audit(session, draft.scope, [outcome], request, res)
        await store_answer(session, draft.scope.workspace_id, StoreResult((outcome,)), request)
    return outcome


async def _confirm(session: Session, draft: Draft, res: Resources) -> Draft:
    """The draft, if its decision still holds under the scope lock, or a duplicate of an equal row that came meanwhile.

    Raises Stale when a neighbour that the decision saw has changed or is gone, or a new one is near enough to matter to
    it, or about the same thing.
    """
    if not draft.options.dedup:
        return draft
    return still_holds(draft, await dedup.find_neighbours(session, draft, res), res)


def still_holds(draft: Draft, found: Neighbours, res: Resources) -> Draft:
    """The same, next to the neighbours that were found under the lock."""
    seen = {each.state for each in draft.seen}
    there = found.neighbours
    equal = next((each for each in there if each.hash == draft.hash), None)
    if equal is not None:
        return replace(draft, seen=there, merged=None, dedup=Dedup(DedupAction.DUPLICATE_EXACT, equal.id, 1.0))
    targets = _targets(draft)
    if targets - {each.id for each in there}:
        raise Stale
    for each in there:
        if each.state in seen:
            continue
        if each.id in targets or each.similarity >= res.settings.dedup_near or _bears_on(draft, each):
            raise Stale
    return replace(draft, expired_duplicate_possible=found.expired_duplicate_possible)


def may_change(draft: Draft) -> set[UUID]:
    """The memories that writing the draft may change: those of its decision, all that it saw where it has none yet."""
    return _targets(draft) if draft.dedup else {each.id for each in draft.seen}


def _targets(draft: Draft) -> set[UUID]:
    """The memories that its decision touches, or ties to what is added."""
    decided = {draft.dedup.existing_id} if draft.dedup and draft.dedup.existing_id else set[UUID]()
    if draft.decision is None:
        return decided
    return decided | {edit.target.id for edit in draft.decision.edits if edit.target} | draft.decision.marked


def _bears_on(draft: Draft, newcomer: Neighbour) -> bool:
    """Whether the rules would decide otherwise because of a memory that was not there, or another one, before."""
    return _changes_more(judge(draft.statement, (newcomer,)))


def _changes_more(decision: Decision) -> bool:
    """Whether a decision does anything but add its text."""
    return decision.touches_older or any(each.action is not Action.ADD for each in decision.edits)


async def _decide_inside_lock(session: Session, draft: Draft, res: Resources) -> Draft:
    """The draft as the rules decide it from the neighbours of now, under the scope lock."""
    if not draft.options.dedup:
        return draft
    return dedup.decide_by_rules(draft, (await dedup.find_neighbours(session, draft, res)).neighbours, res.settings)


async def _with_chosen_id(session: Session, draft: Draft) -> Draft:
    """An id that exists already makes the write an update of that memory; in another scope it is a Conflict."""
    chosen = draft.given.id
    if chosen is None or draft.is_duplicate:
        return draft
    there = await memories.get(session, draft.scope.workspace_id, chosen)
    if there is None:
        return draft
    if there.scope != draft.scope:
        raise Conflict("A memory with this id exists in another scope.", field="id")
    return replace(draft, dedup=Dedup(DedupAction.UPDATED_EXISTING, chosen, None), merged=None)


async def apply(session: Session, draft: Draft, res: Resources) -> Outcome:
    """Writes what was decided, in the caller's transaction, but no audit. Raises Gone."""
    assert draft.dedup is not None
    target = draft.dedup.existing_id
    unchanged = _what_stays(draft)
    if unchanged is not None and late.is_older(draft, unchanged) and draft.kind is not None:
        return await _keep_as_history(session, draft, unchanged, res)
    if draft.dedup.action is DedupAction.DUPLICATE_EXACT:
        assert target is not None, "a duplicate names the memory it equals"
        await write.keep_evidence(session, draft.scope, target, draft.evidence)
        await write.prolong(session, draft.scope, target, draft.given.expires_at, res)
        if draft.given.session_id is not None:
            await promotable.note_session(session, draft.scope.workspace_id, target, draft.given.session_id)
        if unchanged is not None and late.is_said_again(draft, unchanged):
            await versions.say_again(session, draft.scope.workspace_id, target, draft.timestamp)
        text = next((each.text for each in draft.seen if each.id == target), None)
        return outcome_of(_with_unused_fields(draft, target), target, text)
    new = draft.finish(uuid7())
    if target is not None and draft.options.dedup:
        equal = await write.equal_memory(session, draft, new.hash, besides=target)
        if equal is not None:
            known = replace(draft, dedup=Dedup(DedupAction.DUPLICATE_EXACT, equal.id, 1.0))
            return outcome_of(_with_unused_fields(known, equal.id), None, equal.text)
    ended = [edit.target for edit in draft.decision.edits if edit.action is Action.DELETE] if draft.decision else []
    ruling_id = uuid7() if ended else None
    if target is None:
        await write.add(session, [PlacedMemory(new)], res, ruling_id=ruling_id)
        if draft.decision is not None and draft.decision.touches_older:
            await write.mark_older(session, draft, draft.decision, new.id, res)
        return outcome_of(draft, new.id, new.text)
    if ended:
        await history.lock(session, draft.scope.workspace_id, _targets(draft))
    old = await write.update(session, target, new, res, ruling_id=ruling_id)
    for each in ended:
        assert each is not None, "a DELETE names what it ends"
        at, why = draft.start, draft.evidence
        await write.retire(session, draft.scope, each.id, why, res, at=at, ruling_id=ruling_id)
    return outcome_of(draft, target, new.text, old)


def _what_stays(draft: Draft) -> Edit | None:
    """The NONE that was decided, or that an equal text is; None when something changes or nothing is known."""
    assert draft.dedup is not None
    if draft.dedup.action is DedupAction.UPDATED_EXISTING:
        return None
    existing, decided = draft.dedup.existing_id, draft.decision.edits[0] if draft.decision else None
    stays = decided.target if decided is not None and decided.action is Action.NONE else None
    if stays is not None and existing in (None, stays.id):
        return decided
    known = next((each for each in draft.seen if each.id == existing), None)
    return Edit(Action.NONE, known) if known else None


async def _keep_as_history(session: Session, draft: Draft, edit: Edit, res: Resources) -> Outcome:
    """Older news about what is known: a past version of it, which stays as it is."""
    target = edit.target
    assert target is not None, "it is older than something"
    await write.keep_evidence(session, draft.scope, target.id, draft.evidence)
    draft, version = await late.keep_as_history(session, draft, edit, res)
    draft = replace(draft, dedup=edits.dedup_of(edit))
    if version is None:  # it only began earlier than was known
        return outcome_of(_with_unused_fields(draft, target.id), target.id, target.text)
    return replace(outcome_of(draft, target.id, target.text), kept_as=version)


def _with_unused_fields(draft: Draft, target: UUID) -> Draft:
    """The draft of a duplicate, with a warning about the fields that the existing memory does not take over."""
    sent = (
        ("id", draft.given.id not in (None, target)),
        ("tags", bool(draft.tags)),
        ("metadata", bool(draft.metadata)),
    )
    names = [name for name, given in sent if given]
    if not names:
        return draft
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    warning = (
        f"duplicate: memory {target} says this already and stays as it is; {listed} of this request were not used."
    )
    return replace(draft, warnings=(*draft.warnings, warning))


def outcome_of(draft: Draft, memory_id: UUID | None, text: str | None, old: str | None = None) -> Outcome:
    assert draft.dedup is not None
    event: Action = ACTION_OF[draft.dedup.action]
    if text is None:
        text = draft.merged.text if draft.merged else draft.clean
    return Outcome(draft, event, draft.dedup, memory_id or draft.dedup.existing_id, text, old)
