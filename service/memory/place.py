"""One edit of a decision in place: an update keeps the id, a delete archives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from uuid_utils.compat import uuid7

from service.db.direct import InsertBatch
from service.db.engine import Session
from service.db.episodes.turns import StoredTurn
from service.db.search import deduplication
from service.db.writes import PlacedMemory
from service.domain.decision import Action, Edit, Neighbour
from service.domain.draft import Dedup, DedupAction, Draft
from service.domain.memory import Outcome
from service.memory import write
from service.resources import Resources

ACTION = {
    Action.ADD: DedupAction.STORED_NEW,
    Action.UPDATE: DedupAction.UPDATED_EXISTING,
    Action.NONE: DedupAction.DUPLICATE_EXACT,
}


@dataclass(frozen=True, slots=True)
class Hand:
    """What all edits of one decision share. `alone`: it is the first that is written, and has one edit: under
    the lock it was just seen that no equal text is there. `waiting`: where new rows may wait for what follows."""

    session: Session
    place: StoredTurn
    res: Resources
    ruling_id: UUID | None
    alone: bool = False
    waiting: InsertBatch | None = None


async def in_place(hand: Hand, draft: Draft, edit: Edit) -> Outcome:
    """Carries out one edit; an update of nothing that was shown is none."""
    session, res, target = hand.session, hand.res, edit.target
    if edit.action is Action.NONE or (target is None and edit.action is not Action.ADD):
        await write.decided(session, draft.scope, target.id if target else None, draft.evidence)
        return outcome(draft, Action.NONE, edit, hand.place, text=target.text if target else None)
    if edit.action is Action.DELETE:
        assert target is not None
        await write.retire(session, draft.scope, target.id, draft.evidence, res, ruling_id=hand.ruling_id)
        return outcome(draft, Action.DELETE, edit, hand.place, text=None, old=target.text)
    covering = await covered_by(hand, draft, target)
    if covering is not None:
        return covering
    if target is None:
        return await put(hand, draft, edit)
    new = draft.finish(uuid7())
    old = await write.update(session, target.id, new, res, ruling_id=hand.ruling_id)
    return outcome(draft, Action.UPDATE, edit, hand.place, text=new.text, old=old)


async def covered_by(hand: Hand, draft: Draft, target: Neighbour | None = None) -> Outcome | None:
    """A text that equals another memory: that one covers it already."""
    if not draft.options.dedup or (hand.alone and draft.merged is None):
        return None
    final = draft.merged.hash if draft.merged else draft.hash
    there = await deduplication.with_hash(hand.session, draft.scope, final, now=draft.received_at)
    if there is None or (target is not None and there.id == target.id):
        return None
    await write.decided(hand.session, draft.scope, there.id, draft.evidence)
    covered = Edit(Action.NONE, there)
    return outcome(replace(draft, dedup=dedup(covered)), Action.NONE, covered, hand.place, text=there.text)


async def put(hand: Hand, draft: Draft, edit: Edit) -> Outcome:
    """Adds the draft's final text as a new memory."""
    new = draft.finish(uuid7())
    placed = [PlacedMemory(new, hand.place.conversation_id)]
    await write.add(hand.session, placed, hand.res, ruling_id=hand.ruling_id, waiting=hand.waiting)
    return replace(outcome(draft, Action.ADD, edit, hand.place, text=new.text), memory_id=new.id)


def dedup(edit: Edit) -> Dedup:
    """What the edit means to a caller who thinks in duplicates."""
    target = edit.target
    action = ACTION.get(edit.action, DedupAction.UPDATED_EXISTING)
    return Dedup(action, target.id if target else None, target.similarity if target else None)


def outcome(
    draft: Draft, event: Action, edit: Edit, place: StoredTurn, *, text: str | None, old: str | None = None
) -> Outcome:
    """What became of the draft; `memory_id` is the edit's target. A new row is new, also where it replaces one."""
    target = edit.target.id if edit.target else None
    nearest = max((each.similarity for each in draft.seen), default=None)
    seen = Dedup(DedupAction.STORED_NEW, None, nearest) if event is Action.ADD else dedup(edit)
    return Outcome(draft, event, seen, target, text, old, place.conversation_id)
