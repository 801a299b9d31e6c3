"""Reranks the first hits with the language model.

It reads query and text together, which vectors cannot, but takes many times as long as a search. So it sees only the
first hits; if it fails, the fused order stays, with a warning.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prometheus_client import Counter
from pydantic import BaseModel

from service.domain.errors import ProviderError, RerankError
from service.domain.moments import elapsed_ms
from service.domain.query import Query, TechniqueUse
from service.runtime.resources import Resources
from service.search import fusion, prompts
from service.search.fusion import Ranked
from service.understanding import model_calls

CANDIDATES = 20
"""Number of hits that the model is shown: it judges longer lists worse and slowly."""

TIMEOUT_S = 5.0
"""The longest time for it; after that the order of the search is kept."""

WEIGHT = 0.8
"""The reranker's share of the score."""

LLM_CHARS = 1_000

RERANKS = Counter("loxodon_search_reranks_total", "Hits shown to a reranker, by how it ended", ["outcome"])


class _Scores(BaseModel):
    scores: list[Any] = []


def count_shown(query: Query, res: Resources) -> int:
    """Returns how many hits a reranker is shown; 0 when none is configured, or the request refuses it."""
    return CANDIDATES if query.ranking.rerank is not False and _is_available(res) else 0


async def rerank(
    query: Query, ranked: Sequence[Ranked], texts: Mapping[Hashable, str], res: Resources
) -> tuple[list[Ranked], TechniqueUse, tuple[str, ...]]:
    """Returns the hits in their new order; in the old one, with a warning, when the reranker fails."""
    began = time.perf_counter()
    if not _is_available(res):
        RERANKS.labels("none").inc()
        warning = "rerank_unavailable: no reranker is configured, so the order is the search's."
        return list(ranked), TechniqueUse(0.0, 0, "skipped: no reranker is configured"), (warning,)
    shown = [hit for hit in ranked if hit.key in texts][:CANDIDATES]
    try:
        relevance = await _ask(query, shown, texts, res) if shown else {}
    except ProviderError as exc:
        RERANKS.labels("failed").inc()
        warning = "rerank_failed: the reranker did not answer, so the order is the search's."
        return list(ranked), TechniqueUse(elapsed_ms(began), 0, f"failed: {exc.code}"), (warning,)
    RERANKS.labels("done").inc()
    return (
        fusion.blend(ranked, relevance, WEIGHT),
        TechniqueUse(elapsed_ms(began), len(relevance), "by llm"),
        (),
    )


def _is_available(res: Resources) -> bool:
    return res.llm is not None and res.settings.search.rerank_provider == "llm"


async def _ask(
    query: Query, shown: Sequence[Ranked], texts: Mapping[Hashable, str], res: Resources
) -> dict[Hashable, float]:
    request = prompts.rerank(query.text, [texts[hit.key][:LLM_CHARS] for hit in shown])
    request = replace(request, deadline_s=min(request.deadline_s, TIMEOUT_S))
    reply, _ = await model_calls.complete_as(res, query.scope.workspace_id, request, _Scores)
    relevance: dict[Hashable, float] = {}
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
