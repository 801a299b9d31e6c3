"""What one text changes about the memories: decided outside the lock, and checked again inside it.

A text that repeats a memory, verbatim or in the same words (docs/decisions/011-similarity.md), needs no judgement. Any
other is compared with the nearest live memories of exactly the same scope and channel: by the model where it may be
asked, else by the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.domain.decision import UNJUDGED, Action, Decision, Edit, Evidence, MergedText, Neighbour, Reason
from service.domain.draft import Draft
from service.domain.errors import EmbeddingError, PiiRejected
from service.domain.text import content_hash
from service.kit.settings import Settings
from service.language import lexemes
from service.memories.statements import near_memories
from service.memories.statements.near_memories import Neighbours
from service.postgres.engine import Session
from service.runtime.pii import clean
from service.runtime.resources import Resources
from service.runtime.transactions import DecisionOutdated
from service.understanding import model_or_rules
from service.understanding.compare import is_same
from service.understanding.judge import judge

CANDIDATES = 5
"""The nearest memories that a text is compared with: further ones are hardly ever about the same."""

MERGE_FAILED = "merge_failed: the merged text could not be stored, so the new text was added as it is."


async def compare(draft: Draft, res: Resources) -> Draft:
    """The draft with the memories near it, and with its decision if that needs no judgement."""
    if draft.options.dedup:
        async with res.db.read(draft.scope.workspace_id, generic_plans=True) as session:
            draft = replace(draft, seen=(await find_neighbours(session, draft, res)).neighbours)
    known = await res.rules.run_if_long(len(draft.clean), without_judgement, draft, res.settings)
    return replace(draft, decision=known)


async def decide(draft: Draft, res: Resources) -> Draft:
    """The draft with a decision; a model is asked only if the nearest memory is near (`dedup_near`)."""
    if draft.decision is not None:
        return draft
    ask = draft.options.use_llm and draft.seen[0].similarity >= res.settings.memories.dedup_near
    shown = model_or_rules.ShownClaim(draft.claim, draft.seen)
    [judged] = await model_or_rules.decide([shown], draft.scope.workspace_id, res, llm=ask, ask_always=True)
    decision = await with_texts(_for_single_text(judged, draft), draft, res)
    failed = tuple(warning for warning in decision.warnings if warning == MERGE_FAILED)
    return replace(draft, decision=decision, warnings=(*draft.warnings, *failed))


async def find_neighbours(session: Session, draft: Draft, res: Resources, *, limit: int | None = None) -> Neighbours:
    """An equal memory, else the `limit` nearest ones, CANDIDATES of them when None."""
    return await near_memories.find_neighbours(
        session,
        draft,
        generation=res.generation,
        similarity=res.embedder.similarity,
        limit=limit or CANDIDATES,
    )


def without_judgement(draft: Draft, limits: Settings) -> Decision | None:
    """The decision on a text that is always kept, is known already, or has no neighbours; None for any other text. A
    fact without neighbours is judged, so that its evidence says so."""
    if not draft.options.dedup:
        return _decide_unjudged(draft, Edit(Action.ADD, None, draft.clean), Reason.DEDUP_OFF)
    if equal := _equal(draft, draft.seen):
        return repeat_decision(draft, equal)
    if not draft.seen:
        return None if draft.fact else _decide_unjudged(draft, Edit(Action.ADD, None, draft.clean), Reason.NOTHING_NEAR)
    nearest = draft.seen[0]
    if nearest.similarity >= limits.memories.dedup_exact and is_same(draft.clean, nearest.text):
        edit = Edit(Action.NONE, nearest, renewed=draft.start > nearest.start)
        return _decide_unjudged(draft, edit, Reason.SAME_WORDS)
    return None


def _equal(draft: Draft, seen: Sequence[Neighbour]) -> Neighbour | None:
    return next((neighbour for neighbour in seen if neighbour.hash == draft.hash), None)


def repeat_decision(draft: Draft, equal: Neighbour) -> Decision:
    """The decision on a text that equals a memory's. It is history if it was said before that memory began."""
    earlier = draft.start < equal.start
    return _decide_unjudged(draft, Edit(Action.NONE, equal, earlier=earlier, renewed=not earlier), Reason.SAME_TEXT)


def _decide_unjudged(draft: Draft, edit: Edit, reason: Reason) -> Decision:
    shown = (edit.target.id,) if edit.target else ()
    return Decision((edit,), Evidence("rules", "hash", edit.action, reason, shown) if draft.fact else UNJUDGED)


def _for_single_text(decision: Decision, draft: Draft) -> Decision:
    """A single text is added or known: only its first edit counts, and after an update also those that retire
    others."""
    if draft.fact is not None:
        return decision
    first, *rest = decision.edits
    if first.target is None or first.action is Action.DELETE:
        return replace(decision, edits=(Edit(Action.ADD, None, first.text or draft.clean),))
    if first.action is Action.UPDATE and first.text != first.target.text:
        return replace(decision, edits=(first, *(edit for edit in rest if edit.action is Action.DELETE)))
    # an update that changes nothing would only make other writers decide again
    return replace(decision, edits=(replace(first, action=Action.NONE, text=None),))


def by_rules(draft: Draft, seen: tuple[Neighbour, ...], limits: Settings) -> Draft:
    """Decides about the draft by the rules, against its neighbours. Pure, so it also runs inside the scope lock."""
    draft = replace(draft, seen=seen)
    decision = without_judgement(draft, limits) or _for_single_text(judge(draft.claim, seen), draft)
    return replace(draft, decision=decision)


async def with_texts(decision: Decision, draft: Draft, res: Resources) -> Decision:
    """The decision with the texts that it wrote itself redacted and embedded. Where that fails, the draft is added as
    it is, with a warning."""
    own = {edit.text for edit in decision.edits if edit.text is not None and edit.text != draft.clean}
    if not own:
        return decision
    try:
        texts = {text: (await clean(text, "content", res))[0] for text in own}
        vectors = await res.embedder.embed(draft.scope.workspace_id, list(texts.values()))
    except (EmbeddingError, PiiRejected):
        alone = (Edit(Action.ADD, None, draft.clean),)
        return replace(decision, edits=alone, warnings=(*decision.warnings, MERGE_FAILED))
    merged = {
        written: MergedText(text, content_hash(text), vector, lexemes.weights(text))
        for (written, text), vector in zip(texts.items(), vectors, strict=True)
    }
    edits = tuple(replace(edit, merged=merged.get(edit.text)) if edit.text else edit for edit in decision.edits)
    return replace(decision, edits=edits)


async def confirm(session: Session, draft: Draft, res: Resources, *, last: bool = False) -> Draft:
    """The draft, if its decision still holds under the scope lock. If not, raises DecisionOutdated; with `last` the
    rules decide instead."""
    if not draft.options.dedup:
        return draft
    return confirm_against(await find_neighbours(session, draft, res), draft, res, last=last)


def confirm_against(neighbours: Neighbours, draft: Draft, res: Resources, *, last: bool) -> Draft:
    """Confirms the decision as `confirm` does, against neighbours that were read under the lock."""
    draft = replace(draft, expired_duplicate_possible=neighbours.expired_duplicate_possible)
    confirmed = _keep_decision(draft, neighbours.neighbours, res)
    if confirmed is None and not last:
        raise DecisionOutdated
    return confirmed or by_rules(draft, neighbours.neighbours, res.settings)


def _keep_decision(draft: Draft, neighbours: tuple[Neighbour, ...], res: Resources) -> Draft | None:
    """The draft, or the draft as a duplicate of an equal row that has been added since its decision.

    None without a decision, when a memory that the decision is about has changed or was deleted, or when a new one is
    near enough to affect it, or about the same thing.
    """
    decision = draft.decision
    if decision is None:
        return None
    if equal := _equal(draft, neighbours):
        decision = repeat_decision(draft, equal)
        if decision.edits[0].earlier and draft.kind is None:  # a statement that becomes history is annotated first
            return None
        return replace(draft, seen=neighbours, decision=decision)
    targets = decision.targets & {neighbour.id for neighbour in draft.seen}
    if targets - {neighbour.id for neighbour in neighbours}:
        return None
    seen, near = {neighbour.state for neighbour in draft.seen}, res.settings.memories.dedup_near
    for neighbour in neighbours:
        if neighbour.state not in seen and (
            neighbour.id in targets
            or neighbour.similarity >= near
            or not judge(draft.claim, (neighbour,)).leaves_others_untouched  # the rules would decide differently
        ):
            return None
    return draft
