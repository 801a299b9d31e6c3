"""What becomes of a memory that a new fact contradicts? The workspace decides (R3.20, R3.21, C33).

in_place: it is changed or archived under its id. supersede: both stay, the old one is valid until now and tied to the
new one. prefer_old: the new one is not stored. flag_review: the new one waits for a person's word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from service.db.memories import reviews
from service.domain.decision import Action, Edit
from service.domain.draft import Dedup, DedupAction, Draft
from service.domain.memory import Outcome
from service.memory import place, write
from service.memory.place import Hand
from service.settings import Settings

CONTRADICTS = frozenset({Action.UPDATE, Action.DELETE})

Policy = Literal["in_place", "supersede", "prefer_old", "flag_review"]
Pair = tuple[Edit, Draft]

KEPT_OLD = "contradiction_policy: what is known was preferred, the new fact was not stored."
FLAGGED = "contradiction_policy: flagged, it counts once POST /v1/reviews/{id}/accept says so."


def policy(draft: Draft, edits: Sequence[Edit], settings: Settings) -> Policy:
    """What is to become of the memories that this decision contradicts; a correction is always taken (R3.20, R3.21)."""
    if not any(each.action in CONTRADICTS and each.target for each in edits):
        return "in_place"
    correction = draft.fact is not None and draft.fact.correction
    wanted = settings.contradiction_policy
    return "supersede" if correction and wanted != "in_place" else wanted


async def supersede(hand: Hand, ready: Sequence[Pair]) -> list[Outcome]:
    """What takes a place is a new memory; what it contradicts stays, is valid until now, and is tied to it."""
    outcomes, retired = [], []
    for edit, draft in ready:
        if edit.target is not None and edit.action in CONTRADICTS:
            retired.append((edit.target, draft))
        if edit.action is Action.DELETE:
            continue
        if edit.action is Action.NONE:
            outcomes.append(await place.in_place(hand, draft, edit))
            continue
        fresh = replace(draft, dedup=Dedup(DedupAction.STORED_NEW))
        covered = await place.covered_by(hand, fresh)
        outcomes.append(covered or await place.put(hand, fresh, replace(edit, target=None)))
    by = next((each.memory_id for each in outcomes if each.memory_id), None)
    for target, draft in retired:
        if by is None or by == target.id:  # nothing took its place, or it is what it was
            continue
        await write.supersede(
            hand.session, draft.scope, target.id, by, draft.evidence, hand.res, ruling_id=hand.ruling_id
        )
        gone = Edit(Action.DELETE, target)
        outcomes.append(place.outcome(draft, Action.DELETE, gone, hand.place, text=None, old=target.text))
    return outcomes


async def refuse(hand: Hand, draft: Draft, edits: Sequence[Edit]) -> list[Outcome]:
    """What is known stays and the new fact is not stored; the evidence is. No id: the turn is no source of the old."""
    outcomes = []
    for edit in edits:
        target = edit.target
        if target is None or edit.action not in CONTRADICTS:
            continue
        await write.decided(hand.session, draft.scope, target.id, draft.evidence)
        kept = replace(draft, dedup=place.dedup(edit), warnings=(*draft.warnings, KEPT_OLD))
        outcome = place.outcome(kept, Action.NONE, Edit(Action.NONE, target), hand.place, text=target.text)
        outcomes.append(replace(outcome, memory_id=None))
    return outcomes


async def flag(hand: Hand, ready: Sequence[Pair]) -> list[Outcome]:
    """What contradicts is stored out of sight until a person accepts it; what it contradicts stays as it is."""
    removed = [
        reviews.Change("DELETE", each.target.id) for each, _ in ready if each.action is Action.DELETE and each.target
    ]
    outcomes = []
    for edit, draft in ready:
        if edit.action is Action.NONE:
            outcomes.append(await place.in_place(hand, draft, edit))
        if edit.action not in (Action.ADD, Action.UPDATE):
            continue
        changes = [reviews.Change("UPDATE", edit.target.id)] if edit.target else []
        changes, removed = [*changes, *removed], []
        if not changes:
            outcomes.append(await place.in_place(hand, draft, edit))
            continue
        outcomes.append(await _pending(hand, draft, edit, changes))
    return outcomes


async def _pending(hand: Hand, draft: Draft, edit: Edit, changes: Sequence[reviews.Change]) -> Outcome:
    fresh = replace(draft, dedup=Dedup(DedupAction.STORED_NEW), warnings=(*draft.warnings, FLAGGED))
    final = draft.merged.hash if draft.merged else draft.hash
    waiting = await reviews.waiting_with(hand.session, draft.scope, final)
    if waiting is not None:
        await write.decided(hand.session, draft.scope, waiting, draft.evidence)
        again = replace(fresh, dedup=Dedup(DedupAction.DUPLICATE_EXACT, waiting, 1.0))
        outcome = place.outcome(again, Action.NONE, Edit(Action.NONE), hand.place, text=edit.text)
        return replace(outcome, memory_id=waiting)
    covered = await place.covered_by(hand, draft, edit.target)
    if covered is not None:
        return covered
    outcome = await place.put(hand, fresh, replace(edit, target=None))
    assert outcome.memory_id is not None, "an added memory has an id"
    await reviews.flag(hand.session, draft.scope.workspace_id, outcome.memory_id, changes)
    return outcome


def rewrite(draft: Draft, edits: Sequence[Edit], settings: Settings) -> list[Pair]:
    """The edits as the policy would carry them out, each with its draft; for a dry run."""
    chosen = policy(draft, edits, settings)
    kept = replace(draft, warnings=(*draft.warnings, KEPT_OLD))
    flagged = replace(draft, warnings=(*draft.warnings, FLAGGED))
    if chosen == "prefer_old":
        return [(Edit(Action.NONE, each.target), kept) for each in edits if each.action in CONTRADICTS]
    if chosen == "flag_review":
        placed = [each for each in edits if each.action in (Action.ADD, Action.UPDATE)]
        return [(Edit(Action.ADD, None, each.text), flagged) for each in placed]
    if chosen == "supersede":
        return [(each, draft) for edit in edits for each in _split(edit)]
    return [(each, draft) for each in edits]


def _split(edit: Edit) -> tuple[Edit, ...]:
    if edit.action is Action.UPDATE:
        return Edit(Action.ADD, None, edit.text), Edit(Action.DELETE, edit.target)
    return (edit,)
