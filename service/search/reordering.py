"""Changes the order of ranked hits: for diversity, by a reranker, and current memories before those they replaced.

The reranker is the language model. It reads query and text together, which vectors cannot, but takes many times as long
as a search. So it sees only the first hits; if it fails, the fused order stays, with a warning.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from typing import Any, Final
from uuid import UUID

import numpy as np
from prometheus_client import Counter
from pydantic import BaseModel

from service.domain.errors import ProviderError, RerankError
from service.domain.memory import LaterStatementItem, LeanMemory, SignalTerm
from service.domain.moments import elapsed_ms
from service.domain.query import Query, TechniqueMetrics
from service.domain.text import CleanText
from service.postgres import vectors
from service.providers.protocols import LlmRequest
from service.runtime.resources import Resources
from service.search import techniques
from service.search.fusion import Column, Ranked
from service.search.statements.features import Features
from service.understanding.prompts import MATERIAL, fence, schema_of

# -- diversity --------------------------------------------------------------------------------------------------------


def diversify(
    ranked: Sequence[Ranked], overlap: Callable[[int], Column], diversity: float, *, limit: int, one_by_one: int
) -> list[Ranked]:
    """Returns `limit` hits, each repeating the hits above it as little as its score allows; the first `one_by_one` are
    chosen one after the other. `overlap`: how much each of `ranked` has in common with the one at a place, 0..1.

    As maximal marginal relevance, but as a factor: 1 - diversity * the greatest overlap with a hit above. The score
    stays the product of its terms and factors, and the hits stay in its order.
    """
    scores = np.array([hit.score for hit in ranked], dtype=np.float64)
    left, factor = np.ones(len(ranked), dtype=bool), np.ones(len(ranked))
    chosen: list[int] = []
    while len(chosen) < min(limit, one_by_one, len(ranked)):
        best = int(np.argmax(np.where(left, scores * factor, -1.0)))
        left[best] = False
        chosen.append(best)
        factor[left] = np.minimum(factor, 1 - diversity * overlap(best))[left]
    rest = np.flatnonzero(left)
    chosen += rest[np.argsort(-(scores * factor)[rest], kind="stable")][: limit - len(chosen)].tolist()
    return [
        replace(hit, score=hit.score * lowered, factors={**hit.factors, "diversity": lowered})
        for hit, lowered in ((ranked[at], float(factor[at])) for at in chosen)
    ]


def text_overlap(texts: Sequence[Sequence[int]]) -> Callable[[int], Column]:
    """Returns a function of a place: which share of its terms each text has in common with the one there (Jaccard),
    0..1. Texts are lists of different term ids. Looked up by term: hundreds of texts are compared with hundreds, on the
    event loop."""
    sizes = np.array([len(terms) for terms in texts], dtype=np.int64)
    holders: dict[int, list[int]] = {}
    for at, terms in enumerate(texts):
        for term in terms:
            holders.setdefault(term, []).append(at)

    def overlap(at: int) -> Column:
        common = np.zeros(len(texts), dtype=np.int64)
        for term in texts[at]:
            common[holders[term]] += 1
        together = sizes + sizes[at] - common
        return np.where(together == 0, 1.0, common / np.maximum(together, 1))

    return overlap


# -- the reranker -----------------------------------------------------------------------------------------------------

RERANKED = 20
"""Number of hits that the model is shown: it judges longer lists worse and slowly."""

RERANK_WEIGHT = 0.8
"""The reranker's share of the score."""

MAX_RERANKED_CHARS = 1_000

RERANK = f"""You judge which notes help to answer a question. {MATERIAL} Notes are numbered.
Answer with one JSON object: {{"scores": [{{"id": n, "score": s}}]}}, one entry for each note, s from 0 (of no use) to
10 (answers it)."""

RERANKS = Counter("loxodon_search_reranks_total", "Hits shown to a reranker, by how it ended", ["outcome"])


class _Scores(BaseModel):
    scores: list[Any] = []


def count_shown(query: Query, res: Resources) -> int:
    """Returns how many hits a reranker is shown; 0 when none is configured, or the request refuses it."""
    return RERANKED if query.ranking.rerank is not False and _is_available(res) else 0


async def rerank(
    query: Query, ranked: Sequence[Ranked], texts: Mapping[UUID, str], res: Resources
) -> tuple[list[Ranked], TechniqueMetrics, tuple[str, ...]]:
    """Returns the hits in their new order; in the old one, with a warning, when the reranker fails."""
    began = time.perf_counter()
    if not _is_available(res):
        RERANKS.labels("none").inc()
        warning = "rerank_unavailable: no reranker is configured, so the order of the search was kept."
        return list(ranked), TechniqueMetrics(0.0, 0, "skipped: no reranker is configured"), (warning,)
    shown = [hit for hit in ranked if hit.key in texts][:RERANKED]
    try:
        relevance = await _ask_reranker(query, shown, texts, res) if shown else {}
    except ProviderError as exc:
        RERANKS.labels("failed").inc()
        warning = "rerank_failed: the reranker did not answer, so the order of the search was kept."
        return list(ranked), TechniqueMetrics(elapsed_ms(began), 0, f"failed: {exc.code}"), (warning,)
    RERANKS.labels("done").inc()
    return (
        blend(ranked, relevance, RERANK_WEIGHT),
        TechniqueMetrics(elapsed_ms(began), len(relevance), "by llm"),
        (),
    )


def blend(ranked: Sequence[Ranked], relevance: Mapping[UUID, float], weight: float) -> list[Ranked]:
    """Returns the hits ranked with the relevance from a reranker (0..1 by key; 0 for what it was not shown), which gets
    the share `weight` (0..1) of the score."""

    def judged(hit: Ranked) -> Ranked:
        value = relevance.get(hit.key)
        total = hit.total * (1 - weight) + (value or 0.0) * weight
        terms = {name: replace(term, weight=term.weight * (1 - weight)) for name, term in hit.terms.items()}
        if terms:
            terms["rerank"] = SignalTerm(value, value or 0.0, weight)
        return replace(hit, score=total * math.prod(hit.factors.values()), total=total, terms=terms)

    return sorted(map(judged, ranked), key=lambda hit: -hit.score)


def rerank_request(query: CleanText, notes: Sequence[str]) -> LlmRequest:
    """The notes are numbered from 1."""
    listed = "\n".join(f"{number}. {fence(text)}" for number, text in enumerate(notes, 1))
    entry = schema_of(id={"type": "integer"}, score={"type": "number"})
    return LlmRequest(
        "rerank",
        RERANK,
        f"Question:\n{fence(query)}\n\nNotes:\n{listed}",
        schema_of(scores={"type": "array", "items": entry}),
        0,
        20 * len(notes) + 100,
    )


def _is_available(res: Resources) -> bool:
    return res.llm is not None and res.settings.search.rerank_provider == "llm"


async def _ask_reranker(
    query: Query, shown: Sequence[Ranked], texts: Mapping[UUID, str], res: Resources
) -> dict[UUID, float]:
    request = rerank_request(query.text, [texts[hit.key][:MAX_RERANKED_CHARS] for hit in shown])
    reply = await techniques.complete(query, request, _Scores, res)
    relevance: dict[UUID, float] = {}
    for entry in reply.scores:
        number = entry.get("id") if isinstance(entry, dict) else None
        score = _score(entry)
        if score is not None and isinstance(number, int) and 1 <= number <= len(shown):
            relevance[shown[number - 1].key] = score / 10
    if not relevance:
        raise RerankError("The language model's scores could not be read.")
    return relevance


def _score(entry: Any) -> float | None:
    value = entry.get("score") if isinstance(entry, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10:
        return None
    return float(value)


# -- current memories -------------------------------------------------------------------------------------------------

LOOKAHEAD: Final = 10
"""The number of hits that are ranked beyond the wanted ones: a current memory may rank a little below the one it
replaced."""

CURRENCY: Final = "currency"

SAME_THING: Final = 0.40
"""Similarity of two statements from which they are about the same thing. Of 110 outdated statements 98 name what was
said later, or are marked; 94 at 0.48, where a quarter fewer of the others name something."""

MOST_COMPARED: Final = 50
"""Candidates that are compared with the hits, nearest first: as many as the arm of vectors returns at least."""

MOST_LATER: Final = 3
"""Statements named with a hit, latest first."""

LATEST_FIRST: Final = 3
"""Of this many hits, a later one about the same thing comes first: where a statement and its successor are both found,
both are mostly among them. Ordering five of them already costs .005 of the MRR of LoCoMo."""

LEAST_SHARE: Final = 0.5
"""A later hit with less than this share of the earlier one's score is not moved: it hardly answers the query."""


@lru_cache(maxsize=8)
def same_thing_cosine(similarity: Callable[[float], float]) -> float:
    """The cosine at which an embedder's `similarity`, which grows with it, reaches SAME_THING."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if similarity(middle) >= SAME_THING else (middle, high)
    return high


def later_statements(
    features: Features, hits: Collection[UUID], turns: Collection[UUID], least_cosine: float
) -> dict[UUID, tuple[LaterStatementItem, ...]]:
    """At most MOST_LATER memories about the same thing as each hit and said after it, latest first, by the id of the
    hit. `features`: of all candidates, hits and `turns` among them."""
    ids, times = features.ids, features.timestamp
    nearest = np.argsort(-np.fmax(features.text_vector, -1.0), kind="stable").tolist()
    known = {ids[at]: at for at in nearest if features.vectors[at] is not None}
    of_hits = [known[key] for key in hits if key in known]
    places = [at for at in dict.fromkeys((*of_hits, *known.values())) if ids[at] not in turns]
    places = places[: MOST_COMPARED + len(of_hits)]
    if not of_hits or not places:
        return {}
    places.sort(key=lambda at: ids[at])
    places.sort(key=lambda at: times[at], reverse=True)
    units = vectors.read_many([features.vectors[at] or b"" for at in (*of_hits, *places)])
    near = units[: len(of_hits)] @ units[len(of_hits) :].T >= least_cosine
    later = {}
    for hit, row in zip(of_hits, near, strict=True):
        after = [at for at in compress(places, row.tolist()) if times[at] > times[hit]]
        if after:
            later[ids[hit]] = tuple(LaterStatementItem(ids[at], times[at]) for at in after[:MOST_LATER])
    return later


def find_newer(memories: Mapping[UUID, LeanMemory]) -> dict[UUID, Collection[UUID]]:
    """Returns for each memory those of the others that replaced it, or may have, as an edge says."""
    return {key: (*row.may_be_outdated_by, *row.superseded_by) for key, row in memories.items()}


def current_first(ranked: Sequence[Ranked], newer: Mapping[UUID, Collection[UUID]]) -> list[Ranked]:
    """Returns the hits, with those hits right before each that `newer` (by key) has as more current. If their score is
    lower, a factor raises it to that of the older one, so a score stays the product of its terms and factors."""
    scores = {hit.key: hit.score for hit in ranked}
    pairs = [(key, each) for key in scores for each in newer.get(key, ()) if each in scores]
    if not pairs:
        return list(ranked)
    steps = dict.fromkeys(scores, 0)
    for _ in dict(pairs):  # a chain has no more links
        for key, current in pairs:
            scores[current] = max(scores[current], scores[key])
            steps[key] = min(len(pairs), max(steps[key], 1 + steps[current]))
    moved = [_rescore(hit, scores[hit.key]) for hit in ranked]
    return sorted(moved, key=lambda hit: (-hit.score, steps[hit.key]))


def latest_first(ranked: Sequence[Ranked], later: Mapping[UUID, Sequence[LaterStatementItem]]) -> list[Ranked]:
    """Returns the hits, with the latest first of those LATEST_FIRST best ones about the same thing. `later`: of
    `later_statements`."""
    best = {hit.key: hit.score for hit in ranked[:LATEST_FIRST]}
    newer: dict[UUID, Collection[UUID]] = {
        key: [one.id for one in later.get(key, ()) if best.get(one.id, 0.0) >= LEAST_SHARE * score]
        for key, score in best.items()
    }
    return [*current_first(ranked[:LATEST_FIRST], newer), *ranked[LATEST_FIRST:]]


def _rescore(hit: Ranked, score: float) -> Ranked:
    if score == hit.score or not hit.score:
        return hit
    return replace(hit, score=score, factors={**hit.factors, CURRENCY: score / hit.score})
