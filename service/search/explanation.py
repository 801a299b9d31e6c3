"""Why one memory was found or not.

The rules of visibility are checked one by one; a memory that meets them all is measured like a candidate, so its place
among the others and the terms of its score are known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from service.domain.memory import Hit
from service.domain.query import EVER, Explanation, Query
from service.memories.statements import visibility
from service.memories.statements.visibility import RuleCheck
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.search import signals
from service.search.signals import QueryContext
from service.search.statements import features
from service.search.statements.features import Features
from service.search.statements.search_plan import SearchPlan


async def explain(
    session: Session,
    memory_id: UUID,
    plan: SearchPlan,
    context: QueryContext,
    measured: Features,
    wanted: frozenset[str],
) -> Explanation:
    """Explains the memory among the candidates of this search, whose features are given. An id of another scope is
    unknown."""
    query = context.query
    narrow = visibility.filter_rows("m", replace(query.narrow, valid_at=None), EVER, Condition("true"))
    rules = await visibility.check(session, plan.scope, plan.conditions, narrow, memory_id)
    if rules is None:
        return Explanation(memory_id, found=False, place=None, reasons=("unknown",))
    if not rules.is_visible:
        return Explanation(memory_id, found=False, place=None, reasons=_list_exclusions(rules, query, context.now))
    reasons = () if rules.embedding_status == "stored" else ("no_vector_yet",)
    if memory_id not in measured.ids:
        reasons = (*reasons, "not_a_candidate")
        measured = features.join(await features.read(session, plan, [memory_id], context.idf, wanted), measured, wanted)
    ranked = signals.fuse(signals.columns(measured, context), context)
    place = next((at for at, each in enumerate(ranked, 1) if each.key == memory_id), None)
    if place is None:  # it has just been deleted
        return Explanation(memory_id, found=False, place=None, reasons=("unknown",))
    hit = ranked[place - 1]
    if hit.score < query.min_score:
        reasons = (*reasons, "below_min_score")
    if place > query.limit:
        reasons = (*reasons, "below_limit")
    return Explanation(memory_id, False, place, reasons, hit.score, hit.terms, hit.factors)


def place(known: Explanation, hits: Sequence[Hit], shown: Collection[Hit]) -> Explanation:
    """The explanation corrected by the final hits: diversity and a reranker change their order. `shown`: those with the
    requested probability."""
    at = next((at for at, hit in enumerate(hits, 1) if hit.memory.id == known.id), None)
    if at is None:
        return replace(known, reasons=known.reasons or ("moved_down",))
    hit = hits[at - 1]
    is_hit = hit in shown
    reasons = () if is_hit else ("below_min_probability",)
    return replace(
        known, found=is_hit, place=at, reasons=reasons, score=hit.score, terms=hit.terms, factors=hit.factors
    )


def _list_exclusions(rules: RuleCheck, query: Query, now: datetime) -> tuple[str, ...]:
    """Every rule that the memory does not meet, as a code."""
    at, window = query.narrow.valid_at or now, query.window
    checks_start = query.narrow.valid_at is not None or (window.is_open and query.validity != "ignore")
    checks_end = query.narrow.valid_at is not None or query.validity == "exclude"
    excluded = {
        "archived": rules.archived and not query.include_archived,
        "expired": rules.expires_at is not None and rules.expires_at <= now,
        "awaits_review": rules.review_status is not None,
        "not_yet_valid": checks_start and rules.t_valid is not None and rules.t_valid > at,
        "no_longer_valid": checks_start and checks_end and rules.t_invalid is not None and rules.t_invalid <= at,
        "before_window": window.start is not None and rules.timestamp < window.start,
        "after_window": window.end is not None and rules.timestamp >= window.end,
        "filtered_out": not rules.is_wanted,
    }
    return tuple(name for name, holds in excluded.items() if holds)
