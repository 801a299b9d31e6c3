"""What does a search count? Labels are names of stages and techniques, never a workspace or a user (B29)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from prometheus_client import Counter, Histogram

from service.domain.query import TechniqueUse

QUICK = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)

STAGES = Histogram("search_stage_seconds", "Where the time of a search goes", ["stage"], buckets=QUICK)
TECHNIQUE_SECONDS = Histogram("search_technique_seconds", "What a technique took", ["technique"], buckets=QUICK)
TECHNIQUE_RESULTS = Histogram(
    "search_technique_results",
    "What a technique gave: candidates, texts or filters",
    ["technique"],
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500),
)
RERANKS = Counter("search_reranks_total", "Hits shown to a reranker, by how it ended", ["outcome"])


_stage = cache(STAGES.labels)
_seconds = cache(TECHNIQUE_SECONDS.labels)
_results = cache(TECHNIQUE_RESULTS.labels)


def note(used: Mapping[str, TechniqueUse], stages_ms: Mapping[str, float]) -> None:
    """Counts one search (R7.23)."""
    for stage, ms in stages_ms.items():
        _stage(stage).observe(ms / 1000)
    for name, each in used.items():
        _seconds(name).observe(each.ms / 1000)
        _results(name).observe(each.count)
