"""Percentiles, means and tables of measurements. Percentiles are by nearest rank: each is a measured value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that at least `share` (0..1) of the values do not exceed; nan for no values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def mean(values: Iterable[float]) -> float:
    """Returns the mean; nan for no values."""
    found = list(values)
    return sum(found) / len(found) if found else math.nan


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a run: operations per second, latencies in milliseconds."""

    per_s: float
    p50_ms: float
    p95_ms: float
    p99_ms: float

    @classmethod
    def of(cls, latencies_ms: Sequence[float], wall_s: float) -> Pace:
        return cls(len(latencies_ms) / wall_s, *(percentile(latencies_ms, share) for share in (0.50, 0.95, 0.99)))

    @classmethod
    def median(cls, runs: Sequence[Pace]) -> Pace:
        """Each figure's median over the runs; of an even number the lower one."""
        fields = ([run.per_s, run.p50_ms, run.p95_ms, run.p99_ms] for run in runs)
        return cls(*(percentile(column, 0.5) for column in zip(*fields, strict=True)))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a text table: the first column left-aligned, the others right-aligned, floats as `shown` formats them."""
    cells = [[shown(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    )


def shown(cell: object) -> str:
    """Returns a float with about three significant digits, everything else as it is."""
    if not isinstance(cell, float):
        return str(cell)
    if math.isnan(cell):
        return "-"
    return f"{cell:.0f}" if abs(cell) >= 100 else f"{cell:.1f}" if abs(cell) >= 10 else f"{cell:.2f}"
