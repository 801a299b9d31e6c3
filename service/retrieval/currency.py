"""What is current comes before what it took the place of, or may have. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from service.retrieval.fusion import Ranked

LOOKAHEAD: Final = 10
"""Hits that are ranked beyond the wanted ones: what is current may rank a little below what it took the place of."""

FACTOR: Final = "currency"


def current_first(ranked: Sequence[Ranked], newer: Mapping[Hashable, Collection[Hashable]]) -> list[Ranked]:
    """Returns the hits, each right after those of `newer` (by key, those that are more current than it) that are hits,
    too. It takes their score by a factor, so a score stays the product of its terms and factors."""
    scores = {hit.key: hit.score for hit in ranked}
    after = {hit.key: [each for each in newer.get(hit.key, ()) if each in scores] for hit in ranked}
    steps = dict.fromkeys(scores, 0)
    marked = [key for key in scores if after[key]]
    for _ in marked:  # a chain has no more links
        for key in marked:
            scores[key] = min(scores[key], *(scores[each] for each in after[key]))
            steps[key] = min(len(marked), 1 + max(steps[each] for each in after[key]))
    moved = [_scored(hit, scores[hit.key]) for hit in ranked]
    return sorted(moved, key=lambda hit: (-hit.score, steps[hit.key])) if marked else list(ranked)


def _scored(hit: Ranked, score: float) -> Ranked:
    if score == hit.score:
        return hit
    return replace(hit, score=score, factors={**hit.factors, FACTOR: score / hit.score})
