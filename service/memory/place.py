"""How is one operation of a ruling carried out? In place: an update keeps the id, a delete archives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from uuid_utils.compat import uuid7

from service.curator.operations import Operation, Verb
from service.db.engine import Session
from service.db.episodes.turns import StoredTurn
from service.db.memories.memories import Placed
from service.db.memories.rows import Waiting
from service.db.search import deduplication
from service.domain.draft import Dedup, DedupAction, Draft, Neighbour
from service.domain.memory import Event, Outcome
from service.memory import write
from service.resources import Resources

ACTION = {
    Verb.ADD: DedupAction.STORED_NEW,
    Verb.UPDATE: DedupAction.UPDATED_EXISTING,
    Verb.NONE: DedupAction.DUPLICATE_EXACT,
}


@dataclass(frozen=True, slots=True)
class Hand:
    """What all operations of one ruling share. `alone`: it is the first that is written, and has one operation: under
    the lock it was just seen that no equal text is there. `waiting`: where new rows may wait for what follows."""

    session: Session
    place: StoredTurn
    res: Resources
    ruling_id: UUID | None
    alone: bool = False
    waiting: Waiting | None = None


async def in_place(hand: Hand, draft: Draft, operation: Operation) -> Outcome:
    """Carries out one operation; an update of nothing that was shown is none."""
    session, res, target = hand.session, hand.res, operation.target
    if operation.verb is Verb.NONE or (target is None and operation.verb is not Verb.ADD):
        await write.decided(session, draft.scope, target.id if target else None, draft.judgement)
        return outcome(draft, Event.NONE, operation, hand.place, text=target.text if target else None)
    if operation.verb is Verb.DELETE:
        assert target is not None
        await write.retire(session, draft.scope, target.id, draft.judgement, res, ruling_id=hand.ruling_id)
        return outcome(draft, Event.DELETE, operation, hand.place, text=None, old=target.text)
    covering = await covered_by(hand, draft, target)
    if covering is not None:
        return covering
    if target is None:
        return await put(hand, draft, operation)
    new = draft.finish(uuid7())
    old = await write.update(session, target.id, new, res, ruling_id=hand.ruling_id)
    return outcome(draft, Event.UPDATE, operation, hand.place, text=new.text, old=old)


async def covered_by(hand: Hand, draft: Draft, target: Neighbour | None = None) -> Outcome | None:
    """A text that equals another memory: that one covers it already."""
    if not draft.options.dedup or (hand.alone and draft.merged is None):
        return None
    final = draft.merged.hash if draft.merged else draft.hash
    there = await deduplication.with_hash(hand.session, draft.scope, final, now=draft.received_at)
    if there is None or (target is not None and there.id == target.id):
        return None
    await write.decided(hand.session, draft.scope, there.id, draft.judgement)
    covered = Operation(Verb.NONE, there)
    return outcome(replace(draft, dedup=dedup(covered)), Event.NONE, covered, hand.place, text=there.text)


async def put(hand: Hand, draft: Draft, operation: Operation) -> Outcome:
    """Adds the draft's final text as a new memory."""
    new = draft.finish(uuid7())
    placed = [Placed(new, hand.place.conversation_id)]
    await write.add(hand.session, placed, hand.res, ruling_id=hand.ruling_id, waiting=hand.waiting)
    return replace(outcome(draft, Event.ADD, operation, hand.place, text=new.text), memory_id=new.id)


def dedup(operation: Operation) -> Dedup:
    """What the operation means to a caller who thinks in duplicates."""
    target = operation.target
    action = ACTION.get(operation.verb, DedupAction.UPDATED_EXISTING)
    return Dedup(action, target.id if target else None, target.similarity if target else None)


def outcome(
    draft: Draft, event: Event, operation: Operation, place: StoredTurn, *, text: str | None, old: str | None = None
) -> Outcome:
    """What became of the draft; `memory_id` is the operation's target. A new row is new, also where it replaces one."""
    target = operation.target.id if operation.target else None
    nearest = max((each.similarity for each in draft.seen), default=None)
    seen = Dedup(DedupAction.STORED_NEW, None, nearest) if event is Event.ADD else dedup(operation)
    return Outcome(draft, event, seen, target, text, old, place.conversation_id)
