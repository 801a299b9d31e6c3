"""In which order do the candidates of a search answer the question?

Every arm hands in candidates; every candidate then gets all signals. Each signal becomes a value 0..1, the values are
summed by weight, and the sum is multiplied by the factors (importance, recency ...). A score can be recomputed from
its terms: `recompute` does so. Pure; a millisecond or two for 200 candidates.

Normalisation: BM25 is divided by the best score there is, but by no less than `coverage` of what a text with every
term of the question could reach, so that one weak word in common is not taken for a full match. Cosines of one model
crowd together: they are spread between the worst and the best candidate. The rest is 0..1 from the start.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, Literal

Method = Literal["minmax", "zscore", "rrf"]

RRF_K: Final = 60
"""The usual constant of reciprocal rank fusion (C55)."""

Z_SPREAD: Final = 6.0
"""z-scores of -3..3 become 0..1."""

BM25: Final = ("text_lexical", "context_lexical")
COSINES: Final = ("text_vector", "context_vector")


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal counts; all >= 0, only their proportions matter.

    Chosen on LoCoMo's dev conversations, where halving or doubling any one of them moves recall@10 by less than 0.02,
    and where every one but `rare` lifts it. `rare` costs 0.003 of MRR there and is kept for ids and odd names, which
    it puts first although their vector is far away. `time_alone` takes the place of `time` when the question asks for
    nothing but a time. `tag` and `entity` count only where the query names some; no labelled set has measured them.
    """

    text_lexical: float = 0.2
    context_lexical: float = 0.8
    text_vector: float = 1.0
    context_vector: float = 1.0
    speaker: float = 0.3
    telling: float = 0.5
    time: float = 0.6
    time_alone: float = 4.0
    rare: float = 2.0
    tag: float = 1.0
    entity: float = 0.3
    coverage: float = 0.7

    def __post_init__(self) -> None:
        values = [getattr(self, each.name) for each in fields(self)]
        if any(not math.isfinite(value) or value < 0 for value in values):
            raise ValueError("Weights are finite and not negative.")


DEFAULT: Final = Weights()


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of one candidate. `key` is its id and decides ties.

    BM25: >= 0. Cosines: None without a vector. A memory without context leaves its context signals None and they are
    those of its text. The others: 0..1 (`asking` is the share of the text that asks). `factors` multiply the sum.
    """

    key: Hashable
    text_lexical: float = 0.0
    context_lexical: float | None = None
    text_vector: float | None = None
    context_vector: float | None = None
    speaker: float = 0.0
    asking: float = 0.0
    time: float = 0.0
    rare: float = 0.0
    tag: float = 0.0
    entity: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asking:
    """What of the question matters to fusion. `reach`: the sum of its terms' IDF, over own texts and over contexts.

    `unasked`: signals that the question says nothing about; they are 0 for all and take no share of the score.
    """

    text_reach: float = 0.0
    context_reach: float = 0.0
    only_time: bool = False
    unasked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a score: the signal as measured (None: absent), its value 0..1, its weight (all of them sum to 1)."""

    raw: float | None
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate's place in the answer; `score` 0..1 before factors."""

    key: Hashable
    score: float
    terms: Mapping[str, Term]
    factors: Mapping[str, float]


def fuse(
    candidates: Sequence[Signals],
    asking: Asking,
    weights: Weights = DEFAULT,
    method: Method = "minmax",
    *,
    limit: int | None = None,
) -> list[Ranked]:
    """Returns the best `limit` candidates (None: all), best first; equal scores in the order of their keys as text."""
    used = _weighed(weights, asking)
    total = math.fsum(used.values()) or 1.0
    raw = {name: [_raw(each, name) for each in candidates] for name in used}
    # an absent signal says nothing: value 0
    value = {name: _normal(name, column, asking, weights, method) for name, column in raw.items()}
    share = {name: weight / total for name, weight in used.items()}

    def score(at: int) -> float:
        return math.fsum(value[name][at] * share[name] for name in used) * math.prod(candidates[at].factors.values())

    scores = [score(at) for at in range(len(candidates))]
    order = sorted(range(len(candidates)), key=lambda at: (-scores[at], str(candidates[at].key)))[:limit]

    def terms(at: int) -> dict[str, Term]:
        return {name: Term(raw[name][at], value[name][at], share[name]) for name in used}

    return [Ranked(candidates[at].key, scores[at], terms(at), candidates[at].factors) for at in order]


def recompute(terms: Mapping[str, Term], factors: Mapping[str, float]) -> float:
    """Returns the score that these terms and factors make."""
    return math.fsum(term.value * term.weight for term in terms.values()) * math.prod(factors.values())


def idf(texts: int, with_term: float) -> float:
    """Returns the weight of a term that stands in `with_term` of so many texts, >= 0 (as Lucene's BM25)."""
    return math.log1p((max(texts, with_term) - with_term + 0.5) / (with_term + 0.5))


def rarity(texts: int, with_term: float) -> float:
    """Returns 0..1: how rare a name is in the scope, 1 when a single text has it, 0 from about the square root of the
    number of texts on.

    A name that many texts hold tells little: in a conversation whose speakers were not given by name it would lift
    the turns that address the person asked about, and those are the other one's (recall@10 fell to 0.53).
    """
    share = idf(texts, with_term) / idf(max(texts, 1), 1)
    return min(1.0, max(0.0, 2 * share - 1))


def _weighed(weights: Weights, asking: Asking) -> dict[str, float]:
    names = (*BM25, *COSINES, "speaker", "telling", "time", "rare", "tag", "entity")
    used: dict[str, float] = {name: getattr(weights, name) for name in names}
    if asking.only_time:
        used["time"] = weights.time_alone
    return {name: 0.0 if name in asking.unasked else weight for name, weight in used.items()}


def _raw(each: Signals, name: str) -> float | None:
    if name == "telling":
        return 1.0 - each.asking
    if name == "context_lexical" and each.context_lexical is None:
        return each.text_lexical
    if name == "context_vector" and each.context_vector is None:
        return each.text_vector
    value: float | None = getattr(each, name)
    return value


def _normal(name: str, column: Sequence[float | None], asking: Asking, weights: Weights, method: Method) -> list[float]:
    if name not in BM25 and name not in COSINES:
        return [value or 0.0 for value in column]
    if method == "rrf":
        return _by_rank(column, floor=0.0 if name in BM25 else None)
    if method == "zscore":
        return _by_deviation(column)
    if name in COSINES:
        return _spread(column)
    reach = asking.text_reach if name == "text_lexical" else asking.context_reach
    return _share(column, weights.coverage * reach)


def _share(column: Sequence[float | None], least: float) -> list[float]:
    best = max((value for value in column if value is not None), default=0.0)
    top = max(best, least)
    return [(value or 0.0) / top if top > 0 else 0.0 for value in column]


def _spread(column: Sequence[float | None]) -> list[float]:
    known = [value for value in column if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if high == low:  # alone, or all alike: nothing speaks against any of them
        return [0.0 if value is None else 1.0 for value in column]
    return [0.0 if value is None else (value - low) / (high - low) for value in column]


def _by_deviation(column: Sequence[float | None]) -> list[float]:
    known = [value for value in column if value is not None]
    mean = math.fsum(known) / len(known) if known else 0.0
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known)) if known else 0.0
    if spread == 0:
        return [0.0 if value is None else 0.5 for value in column]
    return [0.0 if value is None else _within(0.5 + (value - mean) / (Z_SPREAD * spread)) for value in column]


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))


def _by_rank(column: Sequence[float | None], *, floor: float | None) -> list[float]:
    """1 for the best, then falling as 1 / (k + rank); what the arm did not find gets 0, equal values equal ranks."""
    counts = Counter(value for value in column if value is not None and (floor is None or value > floor))
    rank, ranks = 0, {}
    for value in sorted(counts, reverse=True):
        ranks[value] = rank
        rank += counts[value]
    return [(RRF_K + 1) / (RRF_K + 1 + ranks[value]) if value in ranks else 0.0 for value in column]
