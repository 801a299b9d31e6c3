"""Removes exactly what a plan names, memories and sentences of turns, in one transaction.

A memory that changed since the plan was made stays, and the answer says so. A purge removes the words for good: a
sentence is cut out of its turn and of the log, and a turn without words left is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from uuid_utils.compat import uuid7

from service.conversations.statements import contexts, withdrawn
from service.domain.conversation import WithdrawnSpan
from service.domain.request import Call
from service.domain.scope import Extent
from service.domain.text import CleanText, content_hash
from service.erasure.purge import receipt_of
from service.erasure.statements import purge, targets
from service.erasure.values import ForgetPlan, ForgetTarget, ForgottenSentenceItem, PurgeReceiptResponse
from service.language import withdrawal
from service.language.withdrawal import Span
from service.memories import writing
from service.memories.lifecycle import in_batches
from service.memories.statements import deletion, near_memories, sources, updates
from service.memories.writing import ChangeContext
from service.postgres.engine import Session
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import Write, write_transaction

CHANGED = "changed: memory {id} has changed since it was chosen, so it was kept."


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The plan as it was carried out: everything that it still names was removed, unless it was a dry run. `receipt`:
    of a purge."""

    plan: ForgetPlan
    receipt: PurgeReceiptResponse | None = None
    warnings: tuple[str, ...] = ()
    dry_run: bool = False


async def remove(wanted: Extent, plan: ForgetPlan, res: Resources, call: Call, *, for_good: bool = False) -> Forgotten:
    """Deletes what the plan names (`for_good`: purges it). An empty plan removes nothing."""
    scope = wanted.scope
    async with write_transaction(scope, res, call) as write:
        plan, warnings = await drop_changed(write.session, plan)
        receipt = None
        if for_good and not plan.is_empty:
            receipt = await _purge(write, wanted, plan)
        elif not plan.is_empty:
            await delete(write, wanted, plan)
        forgotten = await write.answer(Forgotten(plan, receipt, warnings))
    if receipt is not None:
        res.embedder.forget(scope.workspace_id)
    return forgotten


async def delete(write: Write, wanted: Extent, plan: ForgetPlan) -> None:
    """Deletes the memories of the plan and withdraws its sentences, in the caller's transaction."""
    session = write.session
    context = ChangeContext(write, wanted.scope)
    struck = {
        each.id
        for each in plan.memories
        if each.remaining and await writing.remove_sentence(context, each.id, CleanText(each.remaining), at=None)
    }
    ids = sorted(target.id for target in plan.memories if target.version and target.id not in struck)
    for part in in_batches(ids):
        await deletion.delete_memories(session, part, generation=write.res.generation)
    alone = [
        WithdrawnSpan(sentence.turn_id, sentence.start, sentence.end, "deleted")
        for sentence in plan.sentences
        if sentence.memory_id is None
    ]
    await withdrawn.add_to_present(session, alone)
    await withdrawn.refresh(session, {span.turn_id for span in alone})
    turns = len({sentence.turn_id for sentence in plan.sentences})
    touched = sorted({*ids, *struck})
    await write.audit("delete", wanted.scope, touched, by="forget", turns=turns)


async def _keep_rest(write: Write, wanted: Extent, target: ForgetTarget) -> None:
    """Keeps the rest of a purged memory as a new memory, unless another one already says it."""
    session, now = write.session, write.res.clock()
    text, new_id = CleanText(target.remaining), uuid7()
    digest = content_hash(text)
    if await near_memories.with_hash(session, wanted.scope, digest, now=now) is not None:
        return
    await updates.copy_with_text(session, target.id, new_id, text, now=now)
    await sources.copy(session, target.id, new_id)
    await queue.enqueue(session, writing.follow_up(new_id, embed=True))


async def drop_changed(session: Session, plan: ForgetPlan) -> tuple[ForgetPlan, tuple[str, ...]]:
    """The plan without memories changed or deleted since it was made, and the sentences of these alone."""
    versions = {target.id: target.version for target in plan.memories if target.version}
    same = set(await targets.lock_unchanged(session, versions))
    lost = [target.id for target in plan.memories if target.version and target.id not in same]
    if not lost:
        return plan, ()
    memories = tuple(target for target in plan.memories if target.id not in lost)
    sentences = tuple(sentence for sentence in plan.sentences if sentence.memory_id not in lost)
    warnings = tuple(CHANGED.format(id=each) for each in lost)
    return replace(plan, memories=memories, sentences=sentences), warnings


async def _purge(write: Write, wanted: Extent, plan: ForgetPlan) -> PurgeReceiptResponse:
    session = write.session
    ids = sorted(target.id for target in plan.memories)
    touched = {sentence.turn_id for sentence in plan.sentences}
    touched |= {span.turn_id for span in await targets.spans(session, ids)}
    for target in plan.memories:
        if target.remaining:
            await _keep_rest(write, wanted, target)
    kept = await _cut_out(session, touched, plan.sentences)
    conversations = [each for one in ids for each in await contexts.conversations_of(session, one)]
    counts = await purge.purge_memories(session, ids, turns=sorted(touched - kept), keep_turns=sorted(kept))
    await withdrawn.refresh(session, kept, rewritten=True)
    await contexts.enqueue_conversations(session, sorted(set(conversations)))
    counts["turn_rewritten"] = len(kept)
    named = ("memories", *map(str, ids), *map(str, sorted(touched)))
    return await receipt_of(write, named, counts)


async def _cut_out(session: Session, turn_ids: set[UUID], sentences: Sequence[ForgottenSentenceItem]) -> set[UUID]:
    """Cuts the sentences out of turns that say more; returns these turns."""
    spans: dict[UUID, list[Span]] = {}
    for sentence in sentences:
        spans.setdefault(sentence.turn_id, []).append((sentence.start, sentence.end))
    kept = set()
    for turn_id, turn in (await targets.turns_by_id(session, turn_ids)).items():
        removed = withdrawal.subtract(spans.get(turn_id, []), [])
        if withdrawal.hide(turn.text, removed):
            kept.add(turn_id)
            if removed:
                await targets.cut_out(session, turn, removed)
    return kept
