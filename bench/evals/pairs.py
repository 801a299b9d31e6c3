"""Calibrated similarity on labelled pairs of texts: duplicates, paraphrases, contradictions, different texts.

    python -m bench.evals.pairs PAIRS.jsonl

One JSON object a line: `a`, `b` and `label` (duplicate, paraphrase, contradiction, different). Prints aggregates only.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.evals.scoring import read_rows
from service.domain.text import CleanText
from service.providers.local import LocalEmbedder
from service.providers.protocols import Curve

Numbers = NDArray[np.float64]

LABELS = ("duplicate", "paraphrase", "contradiction", "different")
COMPARED = (
    ("duplicate", "paraphrase"),
    ("duplicate", "contradiction"),
    ("duplicate", "different"),
    ("paraphrase", "contradiction"),
    ("paraphrase", "different"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts and their label; `licence` and `source`, empty where the file names none."""

    a: CleanText
    b: CleanText
    label: str
    licence: str
    source: str = ""


def read(path: Path) -> list[Pair]:
    """Returns the labelled pairs of a JSON lines file."""
    return [
        Pair(CleanText(row["a"]), CleanText(row["b"]), row["label"], row.get("licence", ""), row.get("source", ""))
        for row in read_rows(path)
    ]


async def vectors(embedder: LocalEmbedder, texts: Sequence[CleanText]) -> Numbers:
    """Returns one row per text."""
    return np.array(await embedder.embed(texts), dtype=np.float64)


async def cosines(embedder: LocalEmbedder, pairs: Sequence[Pair]) -> Numbers:
    """Returns one cosine per pair."""
    left = await vectors(embedder, [pair.a for pair in pairs])
    right = await vectors(embedder, [pair.b for pair in pairs])
    return np.asarray(np.sum(left * right, axis=1))


def auc(higher: Numbers, lower: Numbers) -> float:
    """Returns the chance that one drawn from `higher` is above one from `lower`; a tie counts half."""
    above = (higher[:, None] > lower[None, :]).mean()
    tied = (higher[:, None] == lower[None, :]).mean()
    return float(above + tied / 2)


def render(similarities: dict[str, Numbers], knots: dict[str, Curve]) -> str:
    """Returns the report: distribution and bands per label, AUC of the pairs of labels, the knots in force."""
    lines = ["label          pairs    p05    p25    p50    p75    p95   >= .98  .70-.98   < .70"]
    for label, values in similarities.items():
        cells = "".join(f"{value:7.3f}" for value in np.percentile(values, [5, 25, 50, 75, 95]))
        high, low = float((values >= 0.98).mean()), float((values < 0.70).mean())
        lines.append(f"{label:13}{len(values):7}{cells}{high:9.1%}{1 - high - low:9.1%}{low:8.1%}")
    lines.append("")
    for higher, lower in COMPARED:
        if higher in similarities and lower in similarities:
            lines.append(f"AUC {higher} above {lower}: {auc(similarities[higher], similarities[lower]):.3f}")
    lines.append("")
    lines.extend(f"knots {name}: {' '.join(f'{x:g}->{y:g}' for x, y in curve.knots)}" for name, curve in knots.items())
    return "\n".join(lines)


def report(path: Path) -> str:
    """Returns the report on the labelled pairs at `path`, made with the local embedder."""
    return asyncio.run(_report(path))


async def _report(path: Path) -> str:
    pairs = read(path)
    embedder = LocalEmbedder.load(None, threads=2, max_queue=len(pairs) + 1)
    try:
        found = await cosines(embedder, pairs)
    finally:
        await embedder.close()
    similarities = {
        label: np.array([embedder.similarity(x) for x, pair in zip(found, pairs, strict=True) if pair.label == label])
        for label in LABELS
        if any(pair.label == label for pair in pairs)
    }
    curves = {"documents": embedder.calibration.documents, "queries": embedder.calibration.queries}
    return render(similarities, curves)


def main() -> None:
    print(report(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
