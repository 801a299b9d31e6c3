"""What becomes of a memory that a new fact contradicts? The workspace decides (R3.20, R3.21, C33).

in_place: it is changed or archived under its id. supersede: both stay, the old one is valid until now and tied to the
new one. prefer_old: the new one is not stored. flag_review: the new one waits for a person's word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from service.curator.operations import Operation, Verb
from service.db.memories import reviews
from service.domain.draft import Dedup, DedupAction, Draft
from service.domain.memory import Event, Outcome
from service.memory import place, write
from service.memory.place import Hand
from service.settings import Settings

CONTRADICTS = frozenset({Verb.UPDATE, Verb.DELETE})

Policy = Literal["in_place", "supersede", "prefer_old", "flag_review"]
Pair = tuple[Operation, Draft]

KEPT_OLD = "contradiction_policy: what is known was preferred, the new fact was not stored."
FLAGGED = "contradiction_policy: flagged, it counts once POST /v1/reviews/{id}/accept says so."


def policy(draft: Draft, operations: Sequence[Operation], settings: Settings) -> Policy:
    """What is to become of the memories that this ruling contradicts; a correction is always taken (R3.20, R3.21)."""
    if not any(each.verb in CONTRADICTS and each.target for each in operations):
        return "in_place"
    correction = draft.fact is not None and draft.fact.correction
    wanted = settings.contradiction_policy
    return "supersede" if correction and wanted != "in_place" else wanted


async def supersede(hand: Hand, ready: Sequence[Pair]) -> list[Outcome]:
    """What takes a place is a new memory; what it contradicts stays, is valid until now, and is tied to it."""
    outcomes, retired = [], []
    for operation, draft in ready:
        if operation.target is not None and operation.verb in CONTRADICTS:
            retired.append((operation.target, draft))
        if operation.verb is Verb.DELETE:
            continue
        if operation.verb is Verb.NONE:
            outcomes.append(await place.in_place(hand, draft, operation))
            continue
        fresh = replace(draft, dedup=Dedup(DedupAction.STORED_NEW))
        covered = await place.covered_by(hand, fresh)
        outcomes.append(covered or await place.put(hand, fresh, replace(operation, target=None)))
    by = next((each.memory_id for each in outcomes if each.memory_id), None)
    for target, draft in retired:
        if by is None or by == target.id:  # nothing took its place, or it is what it was
            continue
        await write.supersede(
            hand.session, draft.scope, target.id, by, draft.judgement, hand.res, ruling_id=hand.ruling_id
        )
        gone = Operation(Verb.DELETE, target)
        outcomes.append(place.outcome(draft, Event.DELETE, gone, hand.place, text=None, old=target.text))
    return outcomes


async def refuse(hand: Hand, draft: Draft, operations: Sequence[Operation]) -> list[Outcome]:
    """What is known stays and the new fact is not stored; the verdict is. No id: the turn is no source of the old."""
    outcomes = []
    for operation in operations:
        target = operation.target
        if target is None or operation.verb not in CONTRADICTS:
            continue
        await write.decided(hand.session, draft.scope, target.id, draft.judgement)
        kept = replace(draft, dedup=place.dedup(operation), warnings=(*draft.warnings, KEPT_OLD))
        outcome = place.outcome(kept, Event.NONE, Operation(Verb.NONE, target), hand.place, text=target.text)
        outcomes.append(replace(outcome, memory_id=None))
    return outcomes


async def flag(hand: Hand, ready: Sequence[Pair]) -> list[Outcome]:
    """What contradicts is stored out of sight until a person accepts it; what it contradicts stays as it is."""
    removed = [
        reviews.Change("DELETE", each.target.id) for each, _ in ready if each.verb is Verb.DELETE and each.target
    ]
    outcomes = []
    for operation, draft in ready:
        if operation.verb is Verb.NONE:
            outcomes.append(await place.in_place(hand, draft, operation))
        if operation.verb not in (Verb.ADD, Verb.UPDATE):
            continue
        changes = [reviews.Change("UPDATE", operation.target.id)] if operation.target else []
        changes, removed = [*changes, *removed], []
        if not changes:
            outcomes.append(await place.in_place(hand, draft, operation))
            continue
        outcomes.append(await _pending(hand, draft, operation, changes))
    return outcomes


async def _pending(hand: Hand, draft: Draft, operation: Operation, changes: Sequence[reviews.Change]) -> Outcome:
    fresh = replace(draft, dedup=Dedup(DedupAction.STORED_NEW), warnings=(*draft.warnings, FLAGGED))
    final = draft.merged.hash if draft.merged else draft.hash
    waiting = await reviews.waiting_with(hand.session, draft.scope, final)
    if waiting is not None:
        await write.decided(hand.session, draft.scope, waiting, draft.judgement)
        again = replace(fresh, dedup=Dedup(DedupAction.DUPLICATE_EXACT, waiting, 1.0))
        outcome = place.outcome(again, Event.NONE, Operation(Verb.NONE), hand.place, text=operation.text)
        return replace(outcome, memory_id=waiting)
    covered = await place.covered_by(hand, draft, operation.target)
    if covered is not None:
        return covered
    outcome = await place.put(hand, fresh, replace(operation, target=None))
    assert outcome.memory_id is not None, "an added memory has an id"
    await reviews.flag(hand.session, draft.scope.workspace_id, outcome.memory_id, changes)
    return outcome


def rewrite(draft: Draft, operations: Sequence[Operation], settings: Settings) -> list[Pair]:
    """The operations as the policy would carry them out, each with its draft; for a dry run."""
    chosen = policy(draft, operations, settings)
    kept = replace(draft, warnings=(*draft.warnings, KEPT_OLD))
    flagged = replace(draft, warnings=(*draft.warnings, FLAGGED))
    if chosen == "prefer_old":
        return [(Operation(Verb.NONE, each.target), kept) for each in operations if each.verb in CONTRADICTS]
    if chosen == "flag_review":
        placed = [each for each in operations if each.verb in (Verb.ADD, Verb.UPDATE)]
        return [(Operation(Verb.ADD, None, each.text), flagged) for each in placed]
    if chosen == "supersede":
        return [(each, draft) for operation in operations for each in _split(operation)]
    return [(each, draft) for each in operations]


def _split(operation: Operation) -> tuple[Operation, ...]:
    if operation.verb is Verb.UPDATE:
        return Operation(Verb.ADD, None, operation.text), Operation(Verb.DELETE, operation.target)
    return (operation,)
