"""Ranks strategies for a task by similarity times smoothed success rate.

A strategy that is close to the task but always failed ranks below one that is a little less close and works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.cognition.statements import strategies
from service.cognition.values import Strategy, StrategyMatch
from service.domain.errors import EmbeddingError
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.runtime.resources import Resources

MIN_CANDIDATES = 200
"""How many of the nearest strategies are ranked, unless more are asked for; the others are hardly about the task."""


async def find(
    scope: Scope,
    task: CleanText,
    res: Resources,
    *,
    limit: int,
    channels: Sequence[str] = (),
    task_type: str | None = None,
) -> tuple[list[StrategyMatch], tuple[str, ...]]:
    """Returns at most `limit` strategies, best first, and warnings: without an embedder only success counts."""
    warnings: tuple[str, ...] = ()
    try:
        vector = await res.embedder.embed_query(scope.workspace_id, task)
    except EmbeddingError:
        vector, warnings = None, ("embedding_unavailable: ranked by success alone.",)
    async with res.db.read(scope.workspace_id) as session:
        matches = await find_in(session, scope, vector, res, limit=limit, channels=channels, task_type=task_type)
    return matches, warnings


async def find_in(
    session: Session,
    scope: Scope,
    vector: Vector | None,
    res: Resources,
    *,
    limit: int,
    channels: Sequence[str] = (),
    task_type: str | None = None,
) -> list[StrategyMatch]:
    """Ranks in the caller's transaction, with the vector of the task, None without an embedder."""
    candidates = await strategies.nearest(
        session,
        scope,
        vector,
        generation=res.generation,
        limit=max(MIN_CANDIDATES, limit),
        channels=channels,
        task_type=task_type,
    )
    return rank(candidates, res.embedder.query_similarity, limit=limit)


def rank(
    candidates: Sequence[tuple[Strategy, float | None]], similarity: Callable[[float], float], *, limit: int
) -> list[StrategyMatch]:
    """Ranks strategies with their cosines, best first, equal ones by id. A strategy without a cosine has similarity 0
    if others have one, and 1 if none has."""
    no_cosines = all(cosine is None for _, cosine in candidates)
    matches = []
    for strategy, cosine in candidates:
        alike = None if cosine is None else similarity(cosine)
        weight = alike if alike is not None else float(no_cosines)
        matches.append(StrategyMatch(strategy, alike, weight * strategy.smoothed_rate))
    return sorted(matches, key=lambda each: (-each.score, str(each.strategy.id)))[:limit]
