"""Calibration of cosines into similarities that mean the same with every embedder.

The cosines of two models lie on different scales: for one 0.85 is a paraphrase, for another two unrelated texts.
A `similarity` reads the same everywhere:

    >= 0.98   the same text but for a comma
    >= 0.70   may say the same or the opposite: the curator decides
    >  0.50   about the same subject
    <  0.50   unrelated

It is a monotone piecewise-linear curve, so it never changes an order. Queries have a curve of their own, since a short
question and its answer never score as high as two statements. See docs/decisions/011-similarity.md.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

Knot = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """Knots (cosine, similarity), both strictly ascending; outside of them the curve is flat."""

    knots: tuple[Knot, ...]

    def __post_init__(self) -> None:
        steps = pairwise(self.knots)
        if len(self.knots) < 2 or any(low[0] >= high[0] or low[1] >= high[1] for low, high in steps):
            raise ValueError("A calibration needs two knots or more, ascending in cosine and in similarity.")
        if self.knots[0][1] < 0 or self.knots[-1][1] > 1:
            raise ValueError("Similarities lie between 0 and 1.")

    def __call__(self, cosine: float) -> float:
        """The similarity, 0..1, rounded to 4 decimals: thresholds compare that rounded number."""
        at = bisect_right(self.knots, cosine, key=lambda knot: knot[0])
        if at == 0:
            return round(self.knots[0][1], 4)
        if at == len(self.knots):
            return round(self.knots[-1][1], 4)
        (x0, y0), (x1, y1) = self.knots[at - 1], self.knots[at]
        return round(y0 + (y1 - y0) * (cosine - x0) / (x1 - x0), 4)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves from cosine to similarity: `documents` for two stored texts, `queries` for a query and a stored
    text."""

    documents: Curve
    queries: Curve


IDENTITY = Calibration(Curve(((0.0, 0.0), (1.0, 1.0))), Curve(((0.0, 0.0), (1.0, 1.0))))
"""For models without a fitted curve: the cosine, cut off at 0."""
