"""Which strategies fit a task?

The nearest are read, then ranked by similarity times the smoothed success rate (service/domain/procedure.py): what lies
near and failed each time comes behind what lies a little further and works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.db.cognition import strategies
from service.domain.procedure import Strategy, StrategyMatch
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.errors import EmbeddingError
from service.resources import Resources

CANDIDATES = 200
"""The nearest that are ranked: what lies behind so many is hardly about the task, however well it works."""


async def find(
    scope: Scope,
    task: CleanText,
    res: Resources,
    *,
    limit: int,
    channels: Sequence[str] = (),
    task_type: str | None = None,
) -> tuple[list[StrategyMatch], tuple[str, ...]]:
    """At most `limit` strategies, the best first, and warnings: without an embedder only the rates count."""
    warnings: tuple[str, ...] = ()
    try:
        vector = await res.embedder.embed_query(scope.workspace_id, task)
    except EmbeddingError:
        vector, warnings = None, ("embedding_unavailable: ranked by success alone.",)
    async with res.db.read(scope.workspace_id) as session:
        found = await strategies.nearest(
            session,
            scope,
            vector,
            generation=res.generation,
            limit=max(CANDIDATES, limit),
            channels=channels,
            task_type=task_type,
        )
    return rank(found, res.embedder.query_similarity, limit=limit), warnings


def rank(
    found: Sequence[tuple[Strategy, float | None]], similarity: Callable[[float], float], *, limit: int
) -> list[StrategyMatch]:
    """The best first, equal ones by id. One without a cosine counts as unlike where others have one, and as like as any
    where none has."""
    none_is_near = all(cosine is None for _, cosine in found)
    fitting = []
    for strategy, cosine in found:
        alike = None if cosine is None else similarity(cosine)
        weight = alike if alike is not None else float(none_is_near)
        fitting.append(StrategyMatch(strategy, alike, weight * strategy.smoothed_rate))
    return sorted(fitting, key=lambda each: (-each.score, str(each.strategy.id)))[:limit]
