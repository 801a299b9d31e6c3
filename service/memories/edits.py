"""Carries out a decision under the scope lock: its edits in order, and the outcome of each.

PATCH and PUT of a memory are in revise.py. The facts of a conversation follow the workspace's policy for
contradictions; a single text changes the memory it is about in place. in_place: a memory is changed or archived under
its id. supersede: both stay, linked, and the old one is valid until the new one begins. prefer_old: the new one is not
stored. flag_review: the new one waits until a person accepts it. See docs/decisions/019-contradiction-policy.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.decision import Action, Edit, Neighbour
from service.domain.draft import DedupAction, DedupOutcome, Draft
from service.domain.memory import Outcome
from service.domain.text import content_hash
from service.memories import backdated, writing
from service.memories.statements import decisions, history, near_memories, promotable, versions
from service.memories.writing import ChangeContext, MemoryBatch

CONTRADICTS = frozenset({Action.UPDATE, Action.DELETE})
DEDUP_ACTION = {
    Action.ADD: DedupAction.STORED_NEW,
    Action.UPDATE: DedupAction.UPDATED_EXISTING,
    Action.DELETE: DedupAction.UPDATED_EXISTING,
    Action.NONE: DedupAction.DUPLICATE_EXACT,
}

Policy = Literal["in_place", "supersede", "prefer_old", "flag_review"]
Pair = tuple[Edit, Draft]

KEPT_OLD = "contradiction_policy: what is known was preferred, so the new fact was not stored."
FLAGGED = "contradiction_policy: flagged for review; POST /v1/reviews/{id}/accept lets it take effect."


@dataclass(frozen=True, slots=True, kw_only=True)
class EditContext(ChangeContext):
    """What the edits of one decision share. `conversation_id`: where a fact was said; None for a single text.

    `is_sole_edit`: the text was not written since the neighbours were read under the lock, and the decision has one
    edit, so no other equal text can exist. `new_id`: the id of the memory that is added.
    """

    batch: MemoryBatch
    conversation_id: UUID | None
    is_sole_edit: bool
    new_id: UUID | None


async def carry_out(
    batch: MemoryBatch, draft: Draft, *, conversation_id: UUID | None = None, new_id: UUID | None = None
) -> list[Outcome]:
    """Carries out the draft's decision; at least one outcome for a single text. Raises Gone.

    The evidence is kept with every memory that the edits change; edits of one decision are undone together. A row that
    is merely added joins the `batch`; any other edit reads, so the batch is written first.
    """
    decision = draft.decision
    assert decision is not None, "nothing was decided about it"
    is_repeated = draft.hash in batch.written
    if is_repeated:
        draft = replace(draft, expired_duplicate_possible=True)
    wanted: Policy = batch.write.res.settings.memories.contradiction_policy if conversation_id else "in_place"
    policy = _policy_of(draft, decision.edits, wanted)
    several = len(decision.edits) > 1 or policy == "supersede" or bool(decision.strikes)
    if is_repeated or several or decision.edits[0].action is not Action.ADD:
        await batch.flush()
    if conversation_id is None and several:
        await history.lock(batch.session, decision.targets)
    context = EditContext(
        batch.write,
        draft.scope,
        draft.evidence,
        uuid7() if several else None,
        batch=batch,
        conversation_id=conversation_id,
        is_sole_edit=not is_repeated and not several,
        new_id=new_id,
    )
    outcomes = await _by_policy(policy, context, draft, decision.edits)
    added = next((outcome.memory_id for outcome in outcomes if outcome.event is Action.ADD and outcome.memory_id), None)
    if added is not None:
        batch.outdated += ((added, older) for older in decision.outdates)
        for strike in decision.strikes:
            if strike.at is not None:  # the added text loses one
                alone = replace(context, ruling_id=None)
                await writing.remove_sentence(alone, added, strike.text, at=strike.at)
            elif await writing.remove_sentence(context, strike.memory.id, strike.text, at=draft.start):
                edit, old = Edit(Action.UPDATE, strike.memory), strike.memory.text
                outcomes.append(_outcome(context, draft, Action.UPDATE, edit, text=strike.text, old=old))
    batch.changed |= {
        outcome.memory_id for outcome in outcomes if outcome.event is not Action.NONE and outcome.memory_id
    }
    batch.written |= {draft.hash, *(edit.merged.hash for edit in decision.edits if edit.merged)}
    batch.written |= {content_hash(strike.text) for strike in decision.strikes}
    return outcomes if conversation_id else outcomes[:1]


async def _by_policy(policy: Policy, context: EditContext, draft: Draft, edits: Sequence[Edit]) -> list[Outcome]:
    if policy == "prefer_old":
        return await _prefer_old(context, draft, edits)
    ready = [(edit, replace(draft, merged=edit.merged)) for edit in edits]
    if policy == "flag_review":
        return await _store_flagged(context, ready)
    if policy == "supersede":
        return await _store_and_supersede(context, ready)
    return [await _change_in_place(context, merged, edit) for edit, merged in ready]


def _policy_of(draft: Draft, edits: Sequence[Edit], wanted: Policy) -> Policy:
    """The policy for the memories that these edits contradict; a correction is always accepted. A statement that begins
    in the future does not replace one that is valid until then."""
    if not any(edit.action in CONTRADICTS and edit.target for edit in edits):
        return "in_place"
    if draft.fact is not None and draft.fact.correction:
        return "supersede"
    since = draft.given.t_valid
    if wanted == "in_place" and since is not None and since > draft.received_at:
        return "supersede"
    return wanted


async def _change_in_place(context: EditContext, draft: Draft, edit: Edit) -> Outcome:
    """Carries out one edit on the memory it is about: an update keeps the id, a delete archives. An update without a
    known memory does nothing."""
    target = edit.target
    if target is not None and edit.action is Action.NONE:
        return await _keep(context, draft, edit, target)
    if target is None and edit.action is not Action.ADD:
        await context.keep_evidence(None)
        return _outcome(context, draft, Action.NONE, edit, text=None)
    if edit.action is Action.DELETE:
        assert target is not None
        await writing.retire(context, target.id, at=draft.start)
        return _outcome(context, draft, Action.DELETE, edit, text=None, old=target.text)
    known = await _if_known(context, draft, target)
    if known is not None:
        return known
    if target is None:
        return await _add(context, draft, edit)
    new = draft.finish(uuid7())
    old = await writing.update(context, target.id, new)
    return _outcome(context, draft, Action.UPDATE, edit, text=new.text, old=old)


async def _keep(context: EditContext, draft: Draft, edit: Edit, target: Neighbour) -> Outcome:
    """Keeps the known memory: the statement repeats it, or is older and becomes part of its history."""
    given, kept_as = draft.given, None
    await context.keep_evidence(target.id)
    if edit.earlier:
        draft, kept_as = await backdated.keep_as_history(context.write, draft, edit)
    elif context.conversation_id is None:
        await writing.extend_expiry(context.write, draft.scope, target.id, given.expires_at)
        if given.session_id is not None:
            await promotable.note_session(context.session, target.id, given.session_id)
    if edit.renewed:
        await versions.note_repetition(context.session, target.id, draft.timestamp)
    if context.conversation_id is None and kept_as is None:
        draft = _warn_of_unused_fields(draft, target.id)
    return replace(_outcome(context, draft, Action.NONE, edit, text=target.text), kept_as=kept_as)


def _warn_of_unused_fields(draft: Draft, target: UUID) -> Draft:
    """The draft of a duplicate, with a warning about the fields that the existing memory does not take over."""
    sent = (
        ("id", draft.given.id not in (None, target)),
        ("tags", bool(draft.tags)),
        ("metadata", bool(draft.metadata)),
    )
    names = [name for name, is_sent in sent if is_sent]
    if not names:
        return draft
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    warning = (
        f"duplicate: memory {target} says this already and stays as it is; {listed} of this request were not used."
    )
    return replace(draft, warnings=(*draft.warnings, warning))


async def _store_and_supersede(context: EditContext, ready: Sequence[Pair]) -> list[Outcome]:
    """Stores the text as a new memory. The memories that it contradicts stay, end now, and are linked to it."""
    outcomes, retired = [], []
    for edit, draft in ready:
        if edit.target is not None and edit.action in CONTRADICTS:
            retired.append((edit.target, draft))
        if edit.action is Action.DELETE:
            continue
        if edit.action is Action.NONE:
            outcomes.append(await _change_in_place(context, draft, edit))
            continue
        new = draft
        if draft.given.t_valid is None and any(old.start and draft.start > old.start for old, _ in retired):
            since = writing.holds_since(draft.start, draft.given.t_invalid, context.res)
            new = replace(draft, given=replace(draft.given, t_valid=since))
        known = await _if_known(context, new)
        outcomes.append(known or await _add(context, new, replace(edit, target=None)))
    by = next((outcome.memory_id for outcome in outcomes if outcome.memory_id), None)
    for target, draft in retired:
        if by is None or by == target.id:  # nothing replaced it, or it did not change
            continue
        await writing.end_validity(context, target.id, by, at=draft.start)
        outcomes.append(
            _outcome(context, draft, Action.DELETE, Edit(Action.DELETE, target), text=None, old=target.text)
        )
    return outcomes


async def _prefer_old(context: EditContext, draft: Draft, edits: Sequence[Edit]) -> list[Outcome]:
    """Keeps the known memory, with the new evidence, and drops the new fact. The outcome has no `memory_id`, because
    the turn is not a source of the known memory."""
    outcomes = []
    dropped = replace(draft, warnings=(*draft.warnings, KEPT_OLD))
    for target in (edit.target for edit in edits if edit.action in CONTRADICTS):
        if target is not None:
            await context.keep_evidence(target.id)
            outcome = _outcome(context, dropped, Action.NONE, Edit(Action.NONE, target), text=target.text)
            outcomes.append(replace(outcome, memory_id=None))
    return outcomes


async def _store_flagged(context: EditContext, ready: Sequence[Pair]) -> list[Outcome]:
    """Stores the contradicting text hidden until a person accepts it; the memory it contradicts stays as it is."""
    retired = [edit.target.id for edit, _ in ready if edit.action is Action.DELETE and edit.target]
    outcomes = []
    for edit, draft in ready:
        if edit.action is Action.NONE:
            outcomes.append(await _change_in_place(context, draft, edit))
        if edit.action not in (Action.ADD, Action.UPDATE):
            continue
        contradicts, retired = [*([edit.target.id] if edit.target else []), *retired], []
        if contradicts:
            outcomes.append(await _flag(context, draft, edit, contradicts))
        else:
            outcomes.append(await _change_in_place(context, draft, edit))
    return outcomes


async def _flag(context: EditContext, draft: Draft, edit: Edit, contradicts: Sequence[UUID]) -> Outcome:
    new = replace(draft, warnings=(*draft.warnings, FLAGGED))
    pending = await decisions.find_flagged(context.session, draft.scope, draft.final_hash)
    if pending is not None:
        await context.keep_evidence(pending)
        outcome = _outcome(context, new, Action.NONE, Edit(Action.NONE), text=edit.text)
        return replace(outcome, memory_id=pending)
    known = await _if_known(context, draft, edit.target)
    if known is not None:
        return known
    outcome = await _add(context, new, replace(edit, target=None))
    assert outcome.memory_id is not None, "an added memory has an id"
    await context.batch.flush()
    await decisions.flag(context.session, outcome.memory_id, contradicts)
    return outcome


async def _if_known(context: EditContext, draft: Draft, target: Neighbour | None = None) -> Outcome | None:
    """The outcome when a memory other than the target already has exactly this text."""
    if not draft.options.dedup or (context.is_sole_edit and draft.merged is None):
        return None
    session, digest = context.session, draft.final_hash
    equal = await near_memories.with_hash(session, draft.scope, digest, now=draft.received_at)
    if equal is None or (target is not None and equal.id == target.id):
        return None
    await context.keep_evidence(equal.id)
    if context.conversation_id is None:
        draft = _warn_of_unused_fields(draft, equal.id)
    return _outcome(context, draft, Action.NONE, Edit(Action.NONE, equal), text=equal.text)


async def _add(context: EditContext, draft: Draft, edit: Edit) -> Outcome:
    """Adds the draft's final text as a new memory."""
    new = draft.finish(context.new_id or uuid7(), context.conversation_id)
    await writing.add(context.batch, [new], ruling_id=context.ruling_id)
    if not context.is_sole_edit:
        await context.batch.flush()
    return replace(_outcome(context, draft, Action.ADD, edit, text=new.text), memory_id=new.id)


def _outcome(
    context: EditContext, draft: Draft, event: Action, edit: Edit, *, text: str | None, old: str | None = None
) -> Outcome:
    """The outcome of an edit. `memory_id` is the edit's target. A new row counts as new, also where it replaces one."""
    target = edit.target
    target_id, similarity = (target.id, target.similarity) if target else (None, None)
    dedup = DedupOutcome(DEDUP_ACTION[edit.action], target_id, similarity)
    if event is Action.ADD:
        dedup = DedupOutcome(
            DedupAction.STORED_NEW, None, max((memory.similarity for memory in draft.seen), default=None)
        )
    return Outcome(draft, event, dedup, target_id, text, old, context.conversation_id)
