"""Why was this memory found, or not? (D9)

The rules of visibility are read one by one; a memory that passes them all is measured like a candidate, so that its
place among the others and the terms of its score can be told.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from service.db.conditions import Condition
from service.db.engine import Session
from service.db.search import exclusions, features, visibility
from service.db.search.exact import Ask, Where
from service.db.search.exclusions import Standing
from service.db.search.features import Measures
from service.domain.query import EVER, Explanation, Query
from service.retrieval import fusion, signals
from service.retrieval.signals import Scene


async def why(
    session: Session, where: Where, ask: Ask, scene: Scene, found: Measures, columns: frozenset[str]
) -> Explanation:
    """Of the memory `scene.query.explain_id`, seen from the candidates of this search, of which these columns were
    measured. An id of another scope is unknown."""
    query, wanted = scene.query, scene.query.explain_id
    assert wanted is not None
    narrow = visibility.narrowed("m", replace(query.narrow, valid_at=None), EVER, Condition("true"))
    standing = await exclusions.look(session, where.scope, where.rows, narrow, wanted)
    if standing is None:
        return Explanation(wanted, found=False, place=None, reasons=("unknown",))
    if not standing.passes:
        return Explanation(wanted, found=False, place=None, reasons=_kept_out(standing, query, scene.now))
    reasons = () if standing.embedding_status == "stored" else ("no_vector_yet",)
    if wanted not in found.ids:
        reasons = (*reasons, "not_a_candidate")
        ids = [*found.ids, wanted]
        found = await features.read(session, where, ids, ask, columns, own=scene.own, near=scene.near)
    ranked = fusion.fuse(
        signals.of(found, scene), signals.asked(scene), signals.weights(scene.ranking), scene.ranking.fusion
    )
    place = next((at for at, each in enumerate(ranked, 1) if each.key == wanted), None)
    if place is None:  # it went away meanwhile
        return Explanation(wanted, found=False, place=None, reasons=("unknown",))
    hit = ranked[place - 1]
    if hit.score < query.min_score:
        reasons = (*reasons, "below_min_score")
    if place > query.limit:
        reasons = (*reasons, "below_limit")
    return Explanation(wanted, False, place, reasons, hit.score, hit.terms, hit.factors)


def _kept_out(standing: Standing, query: Query, now: datetime) -> tuple[str, ...]:
    """Every rule that the memory does not pass, as a code."""
    at, window = query.narrow.valid_at or now, query.window
    judged = query.narrow.valid_at is not None or (window.is_open and query.validity != "ignore")
    ends = query.narrow.valid_at is not None or query.validity == "exclude"
    found = {
        "archived": standing.archived and not query.include_archived,
        "expired": standing.expires_at is not None and standing.expires_at <= now,
        "awaits_review": standing.review_status is not None,
        "not_yet_valid": judged and standing.t_valid is not None and standing.t_valid > at,
        "no_longer_valid": judged and ends and standing.t_invalid is not None and standing.t_invalid <= at,
        "before_window": window.start is not None and standing.timestamp < window.start,
        "after_window": window.end is not None and standing.timestamp >= window.end,
        "filtered_out": not standing.wanted,
    }
    return tuple(name for name, holds in found.items() if holds)
