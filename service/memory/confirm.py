"""Is the world still as it was when the decision was made? Asked under the scope lock, before anything is written."""

from __future__ import annotations

from dataclasses import replace

from service.db.engine import Session
from service.db.search import deduplication
from service.db.search.deduplication import Beside
from service.domain.draft import Dedup, DedupAction, Draft
from service.pipeline import dedup
from service.resources import Resources


class Stale(Exception):
    """Something that matters to the decision changed since it was made: decide again."""


async def confirm(session: Session, draft: Draft, res: Resources) -> Draft:
    """The draft, or a duplicate of an equal row that came meanwhile: that needs no second decision. Raises Stale when
    a shown row changed or went, or an unseen one is near enough to be decided about."""
    if not draft.options.dedup:
        return draft
    seen = {each.id: each.version for each in draft.seen}
    beside = await _beside(session, draft, res)
    there = beside.neighbours
    equal = next((each for each in there if each.hash == draft.hash), None)
    if equal is not None:
        return replace(draft, seen=there, merged=None, dedup=Dedup(DedupAction.DUPLICATE_EXACT, equal.id, 1.0))
    target = draft.dedup.existing_id if draft.dedup else None
    if target is not None and target not in {each.id for each in there}:
        raise Stale
    for each in there:
        if each.similarity >= res.settings.dedup_near and seen.get(each.id) != each.version:
            raise Stale
    return replace(draft, blocked=beside.blocked)


async def decide_inside_lock(session: Session, draft: Draft, res: Resources) -> Draft:
    """The draft as the rules decide it by what is there now, inside the lock: so every writer ends."""
    if not draft.options.dedup:
        return draft
    return dedup.decide_by_rules(draft, (await _beside(session, draft, res)).neighbours, res.settings)


async def _beside(session: Session, draft: Draft, res: Resources) -> Beside:
    return await deduplication.of_draft(
        session,
        draft,
        generation=res.generation,
        similarity=res.embedder.similarity,
        limit=res.settings.dedup_candidates,
        exact_rows=res.settings.exact_scope_rows,
    )
