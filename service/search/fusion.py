"""Fuses the signals of a search's candidates into one ranking. Pure.

Every arm yields candidates; every candidate then gets all signals. Each signal becomes a value 0..1, the values are
summed by weight, and the sum is multiplied by the factors (importance, recency ...). A score can be recomputed from its
terms and factors. Computed by columns, a tenth of a millisecond or two for 300 candidates.

Normalisation: BM25 is divided by the best score there is, but by no less than `coverage` of what a text with every
term of the query would score, so that one weak term in common is not taken for a full match. Cosines of one model
crowd together: they are spread between the worst and the best candidate. The rest is 0..1 from the start.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.domain import bm25
from service.domain.memory import ScoreTerm
from service.domain.ranking import Fusion, Weights

RRF_K: Final = 60
"""The usual constant of reciprocal rank fusion."""

BM25: Final = ("text_lexical", "context_lexical")
COSINES: Final = ("text_vector", "context_vector")


NAMES: Final = (
    *BM25,
    *COSINES,
    "speaker",
    "declarative",
    "first_person",
    "time",
    "dated",
    "rare",
    "tag",
    "entity",
    "goal",
)
"""The names of the signals, in weights and explanations."""

DEFAULT: Final = Weights()

Column = NDArray[np.float64]
"""A number for each candidate; NaN for none."""


@dataclass(frozen=True, slots=True)
class FusionContext:
    """The parts of the query that matter to fusion. `text_full_match`, `context_full_match`: the sum of the IDF of its
    terms, over texts and over contexts. `unused`: signals that the query says nothing about; they are 0 for all and
    take no share of the score. `only_...`: the query asks for nothing else, which has a separate weight."""

    text_full_match: float = 0.0
    context_full_match: float = 0.0
    only_time: bool = False
    unused: frozenset[str] = frozenset()
    only_entity: bool = False
    only_rare: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score: `total` is the sum over its score terms, 0..1, and `score` is `total` times the
    factors. `terms` are kept only for `explain`."""

    key: Hashable
    score: float
    total: float
    factors: Mapping[str, float]
    terms: Mapping[str, ScoreTerm] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Columns:
    """The values of all candidates. `keys`: their ids, which break ties. `signals`: values by name of the signal: BM25
    >= 0, cosines -1..1 (NaN without a vector), others 0..1; a signal that is left out is 0 for all. `factors`: what the
    sum is multiplied by."""

    keys: Sequence[Hashable]
    signals: Mapping[str, Column]
    factors: Mapping[str, Column] = field(default_factory=dict)


def fuse(
    columns: Columns,
    context: FusionContext,
    weights: Weights = DEFAULT,
    fusion: Fusion = "weighted",
    *,
    limit: int | None = None,
    explain: bool = True,
) -> list[Ranked]:
    """Returns the best `limit` candidates (None: all), best first; equal scores in the order of their keys as text."""
    used = _weigh(weights, context)
    whole = math.fsum(used.values()) or 1.0
    share = {name: weight / whole for name, weight in used.items() if weight or explain}
    nothing = np.zeros(len(columns.keys))
    raw = {name: columns.signals.get(name, nothing) for name in share}
    # an absent signal says nothing: value 0
    value = {name: _normal(name, column, context, weights, fusion) for name, column in raw.items()}
    totals = sum((value[name] * share[name] for name in share), start=nothing)
    scores = totals
    for factor in columns.factors.values():
        scores = scores * np.where(np.isnan(factor), 1.0, factor)

    def terms(at: int) -> dict[str, ScoreTerm]:
        return {name: ScoreTerm(_to_known(raw[name][at]), float(value[name][at]), share[name]) for name in share}

    return [
        Ranked(
            columns.keys[at],
            float(scores[at]),
            float(totals[at]),
            {name: float(factor[at]) for name, factor in columns.factors.items() if factor[at] == factor[at]},
            terms(at) if explain else {},
        )
        for at in _best(scores, columns.keys, limit)
    ]


def rarity(texts: int, with_term: float) -> float:
    """Returns 0..1: how rare a term is in the scope, 1 when a single text has it, 0 from about the square root of the
    number of texts on.

    A name that many texts contain distinguishes little: in a conversation stored without speakers it would lift the
    turns that address the person asked about, which are the other speaker's.
    """
    share = bm25.idf(texts, with_term) / bm25.idf(max(texts, 1), 1)
    return min(1.0, max(0.0, 2 * share - 1))


def _weigh(weights: Weights, context: FusionContext) -> dict[str, float]:
    used: dict[str, float] = {name: getattr(weights, name) for name in NAMES}
    if context.only_time:
        used["time"] = weights.time_alone
    if context.only_entity:
        used["entity"] = weights.entity_alone
    if context.only_rare:
        used["rare"] = weights.rare_alone
    return {name: 0.0 if name in context.unused else weight for name, weight in used.items()}


def _to_known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _best(scores: Column, keys: Sequence[Hashable], limit: int | None) -> list[int]:
    """The places of the best, best first: only these are compared by their keys."""
    among: Sequence[int] = range(len(keys))
    if limit is not None and limit < len(keys):
        least = np.partition(scores, -limit)[-limit] if limit else math.inf
        among = np.flatnonzero(scores >= least).tolist()
    return sorted(among, key=lambda at: (-scores[at], str(keys[at])))[:limit]


def _normal(name: str, column: Column, context: FusionContext, weights: Weights, fusion: Fusion) -> Column:
    if name not in BM25 and name not in COSINES:
        return _fill_zeros(column)
    if fusion == "rrf":
        return _by_rank(column, floor=0.0 if name in BM25 else -math.inf)
    if name in COSINES:
        return _spread(column)
    full_match = context.text_full_match if name == "text_lexical" else context.context_full_match
    return _share(column, weights.coverage * full_match)


def _fill_zeros(column: Column) -> Column:
    return np.where(np.isnan(column), 0.0, column)


def _share(column: Column, least: float) -> Column:
    known = _fill_zeros(column)
    top = max(float(np.max(known, initial=0.0)), least)
    return known / top if top > 0 else np.zeros(len(column))


def _spread(column: Column) -> Column:
    low, high = np.fmin.reduce(column, initial=math.inf), np.fmax.reduce(column, initial=-math.inf)
    if high == low:  # a single candidate has a value, or all have the same
        return np.where(np.isnan(column), 0.0, 1.0)
    return _fill_zeros((column - low) / (high - low))


def _by_rank(column: Column, *, floor: float) -> Column:
    """The values by rank: 1 for the best, then falling as 1 / (k + rank); candidates that the arm did not find get 0,
    equal values equal ranks."""
    has_value = column > floor  # False for NaN
    better = np.count_nonzero(has_value) - np.searchsorted(np.sort(column[has_value]), column, side="right")
    return np.where(has_value, (RRF_K + 1) / (RRF_K + 1 + better), 0.0)
