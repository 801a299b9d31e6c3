"""How much does a memory serve what its scope is after?

1 for a memory that was tied to an active goal by hand. Else its nearness to the nearest active goal, counted from the
similarity at which texts begin to be neighbours (0.70, R4.08): 0 there, 1 for the same words. Without an active goal
the signal takes no part, and nothing ranks otherwise than it would.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from service.db.search.features import Measures

NEIGHBOURS = 0.70


def pulls(found: Measures, similarity: Callable[[float], float]) -> dict[UUID, float]:
    """0..1 by candidate; empty without an active goal. `similarity` calibrates a cosine of two stored texts."""
    return {
        each: pull(near, similarity, is_tied=tied)
        for each, tied, near in zip(found.ids, found.goal_tied, found.goal_near, strict=True)
        if tied is not None
    }


def pull(near: float | None, similarity: Callable[[float], float], *, is_tied: bool) -> float:
    """0..1. `near`: cosine to the nearest goal, None where one of the two has no vector."""
    if is_tied:
        return 1.0
    return 0.0 if near is None else max(0.0, (similarity(near) - NEIGHBOURS) / (1 - NEIGHBOURS))
