"""Candidates one by one, for tests: fusion takes them by columns. And a query that asks for every signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np

from service.domain.query import Query
from service.domain.ranking import Fusion, Ranking, Weights
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.search.fusion import NAMES, Column, Columns, QueryContext
from service.search.query_parsing import ParsedQuery, QueryTime
from service.search.statements.features import TermIdf

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OneCandidate:
    """What is known of one. None: without a vector, or without a context, whose signals are then those of its text.
    `asking` is the share of the text that asks."""

    key: Any
    text_lexical: float = 0.0
    context_lexical: float | None = None
    text_vector: float | None = None
    context_vector: float | None = None
    speaker: float = 0.0
    asking: float = 0.0
    first_person: float = 0.0
    time: float = 0.0
    dated: float = 0.0
    rare: float = 0.0
    tag: float = 0.0
    entity: float = 0.0
    goal: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict)


def columns(candidates: Sequence[OneCandidate]) -> Columns:
    factors = dict.fromkeys(name for each in candidates for name in each.factors)
    return Columns(
        [each.key for each in candidates],
        {name: _column([_signal(each, name) for each in candidates]) for name in NAMES},
        {name: _column([each.factors.get(name) for each in candidates]) for name in factors},
    )


def _signal(each: OneCandidate, name: str) -> float | None:
    if name == "declarative":
        return 1.0 - each.asking
    if name == "context_lexical" and each.context_lexical is None:
        return each.text_lexical
    if name == "context_vector" and each.context_vector is None:
        return each.text_vector
    value: float | None = getattr(each, name)
    return value


def _column(values: Sequence[float | None]) -> Column:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def asking(
    texts: float = 0.0,
    contexts: float = 0.0,
    *,
    only_time: bool = False,
    method: Fusion = "weighted",
    weights: Weights | None = None,
) -> QueryContext:
    """A query to which every signal applies; `texts`, `contexts`: the sums of the IDF of its terms."""
    parsed = ParsedQuery(
        "?",
        "?",
        {},
        exact_terms=(("x",),),
        speakers=frozenset({"Ines"}),
        time=QueryTime(NOW, NOW),
        only_time=only_time,
        asks_when=True,
    )
    ranking = Ranking(fusion=method, weights=weights or Weights())
    return QueryContext(
        Query(Scope(UUID(int=1), user_id="u"), CleanText("?"), 10, tags=("sea",), ranking=ranking),
        parsed,
        NOW,
        TermIdf({1: texts}, {1: contexts}),
        {},
        entity_weights={"x": 1.0},
        goals={UUID(int=1): 1.0},
    )
