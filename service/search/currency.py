"""Puts current memories before those they replaced, or may have replaced, and finds what was said after a hit. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from typing import Final
from uuid import UUID

import numpy as np

from service.domain.memory import LaterStatement, LeanMemory
from service.postgres import vectors
from service.search.fusion import Ranked
from service.search.statements.features import Features

LOOKAHEAD: Final = 10
"""The number of hits that are ranked beyond the wanted ones: a current memory may rank a little below the one it
replaced."""

FACTOR: Final = "currency"

SAME_THING: Final = 0.48
"""Similarity of two statements from which they are about the same thing: of the pairs of an outdated statement and its
successor nine in ten are above, of other statements of the same user one in ten."""

MOST_COMPARED: Final = 50
"""Candidates that are compared with the hits, nearest first: as many as the arm of vectors returns at least."""

MOST_LATER: Final = 3
"""Statements named with a hit, latest first."""


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
) -> dict[UUID, tuple[LaterStatement, ...]]:
    """At most MOST_LATER memories about the same thing as each hit and said after it, latest first, by the id of the
    hit. `features`: of all candidates, hits and `turns` among them."""
    ids, times = features.ids, features.timestamp
    nearest = np.argsort(-np.fmax(features.text_vector, -1.0), kind="stable").tolist()
    known = {ids[at]: at for at in nearest if features.vectors[at] is not None}
    of_hits = [known[key] for key in hits if key in known]
    said = [at for at in dict.fromkeys((*of_hits, *known.values())) if ids[at] not in turns]
    said = said[: MOST_COMPARED + len(of_hits)]
    if not of_hits or not said:
        return {}
    said.sort(key=lambda at: ids[at])
    said.sort(key=lambda at: times[at], reverse=True)
    units = vectors.read_many([features.vectors[at] or b"" for at in (*of_hits, *said)])
    near = units[: len(of_hits)] @ units[len(of_hits) :].T >= least_cosine
    later = {}
    for hit, row in zip(of_hits, near, strict=True):
        after = [at for at in compress(said, row.tolist()) if times[at] > times[hit]]
        if after:
            later[ids[hit]] = tuple(LaterStatement(ids[at], times[at]) for at in after[:MOST_LATER])
    return later


def newer(memories: Mapping[UUID, LeanMemory]) -> dict[Hashable, Collection[Hashable]]:
    """Returns for each memory those of the others that replaced it, or may have, as an edge says."""
    return {key: (*row.may_be_outdated_by, *row.superseded_by) for key, row in memories.items()}


def current_first(ranked: Sequence[Ranked], newer: Mapping[Hashable, Collection[Hashable]]) -> list[Ranked]:
    """Returns the hits, with those hits right before each that `newer` (by key) has as more current. If their score is
    lower, a factor raises it to that of the older one, so a score stays the product of its terms and factors."""
    scores = {hit.key: hit.score for hit in ranked}
    pairs = [(key, each) for key in scores for each in newer.get(key, ()) if each in scores]
    steps = dict.fromkeys(scores, 0)
    for _ in dict(pairs):  # a chain has no more links
        for key, current in pairs:
            scores[current] = max(scores[current], scores[key])
            steps[key] = min(len(pairs), max(steps[key], 1 + steps[current]))
    moved = [_rescore(hit, scores[hit.key]) for hit in ranked]
    return sorted(moved, key=lambda hit: (-hit.score, steps[hit.key])) if pairs else list(ranked)


def _rescore(hit: Ranked, score: float) -> Ranked:
    if score == hit.score or not hit.score:
        return hit
    return replace(hit, score=score, factors={**hit.factors, FACTOR: score / hit.score})
