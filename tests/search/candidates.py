"""Candidates one by one, for tests: fusion takes them by columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from service.search.fusion import NAMES, Column, Columns


@dataclass(frozen=True, slots=True)
class OneCandidate:
    """What is known of one. None: without a vector, or without a context, whose signals are then those of its text.
    `asking` is the share of the text that asks."""

    key: Hashable
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
