"""Is it known already?

An equal text is a duplicate without asking anybody. Otherwise the nearest live memories of exactly the same scope and
channel are compared: from 0.98 on a duplicate, from 0.70 on a matter for the decision, below new (R4.07-R4.09).
Two texts that differ in a number, a date, a negation or a name are never dropped by the short-cut: they go to the
decision, however near they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.db.search import deduplication
from service.domain.decision import Neighbour
from service.domain.draft import Dedup, DedupAction, Draft, EmbeddingStatus
from service.language import contrast
from service.resources import Resources

NEW = Dedup(DedupAction.STORED_NEW)


async def compare(draft: Draft, res: Resources) -> Draft:
    """The draft with the neighbours it saw; with a verdict where none of them needs a decision."""
    if not draft.options.dedup:
        return replace(draft, dedup=NEW)
    async with res.db.read(draft.scope.workspace_id, by_key=True) as session:
        beside = await deduplication.of_draft(
            session,
            draft,
            generation=res.generation,
            similarity=res.embedder.similarity,
            limit=res.settings.dedup_candidates,
            exact_rows=res.settings.exact_scope_rows,
        )
    seen = beside.neighbours
    settings = res.settings
    sorted_out = res.threads.run_if_long(draft.clean, sort_out, draft, seen, settings.dedup_exact, settings.dedup_near)
    return replace(draft, seen=seen, dedup=await sorted_out)


async def look_up(draft: Draft, res: Resources) -> Draft:
    """For records: only an equal text counts, and that is settled in the write itself, so nothing is read here."""
    return replace(draft, dedup=NEW)


def sort_out(draft: Draft, seen: Sequence[Neighbour], exact: float, near: float) -> Dedup | None:
    """The verdict, or None when the decision must be asked. `seen`: nearest first."""
    equal = next((each for each in seen if each.hash == draft.hash), None)
    if equal is not None:
        return Dedup(DedupAction.DUPLICATE_EXACT, equal.id, 1.0)
    if not seen or draft.embedding_status is not EmbeddingStatus.STORED or seen[0].similarity < near:
        return replace(NEW, similarity=seen[0].similarity if seen else None)
    first = seen[0]
    if first.similarity >= exact and is_same(draft.clean, first.text):
        return Dedup(DedupAction.DUPLICATE_EXACT, first.id, first.similarity)
    return None


def is_same(new: str, old: str) -> bool:
    """The guard on the short-cut (B9): no contrast, and the same set of stemmed content words."""
    return contrast.differs(new, old) is None and contrast.same_content_words(new, old)
