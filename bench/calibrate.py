"""Fits the curves that turn cosines of the local embedder into similarities.

    python -m bench.calibrate PAIRS.jsonl [QUESTIONS.jsonl]

Each knot is a quantile with a meaning, so single rows cannot shape the curve; `service/providers/local.py` holds the
printed knots, rounded. Chance pairs are texts of different rows. Rows whose licence forbids commercial use are left
out, since the fitted knots are shipped.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.evals import pairs
from bench.evals.pairs import Numbers, Pair
from service.domain.text import CleanText
from service.providers.local import LocalEmbedder
from service.providers.protocols import Knot

QUESTIONS = Path(__file__).parent / "evals" / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Anchor:
    """A knot and the reason for its place."""

    knot: Knot
    why: str


def documents(same: Numbers, other: Numbers, chance: Numbers) -> list[Anchor]:
    """Returns the knots for two stored texts.

    `same`: cosines of duplicates and paraphrases. `other`: of all pairs that are no duplicates. `chance`: of unrelated
    texts.
    """
    return [
        _floor(chance),
        _at(chance, 50, 0.20, "half of the chance pairs lie below"),
        _at(chance, 95, 0.50, "19 in 20 chance pairs lie below"),
        _at(same, 2, 0.70, "98 % of the pairs that say the same lie above: they get a decision"),
        _at(other, 99, 0.98, "1 % of the pairs that are no duplicates lie above: the guards see those"),
        Anchor((1.0, 1.0), "the same vector"),
    ]


def queries(answers: Numbers, related: Numbers, verbatim: Numbers, chance: Numbers) -> list[Anchor]:
    """Returns the knots for a question and a stored text; `verbatim`: a text queried verbatim."""
    return [
        _floor(chance),
        _at(chance, 50, 0.20, "half of the chance pairs lie below"),
        Anchor((balance(related, chance), 0.50), "as large a share of subjects lies below as of chance pairs above"),
        _at(answers, 50, 0.75, "half of the answers lie above"),
        _at(verbatim, 10, 0.98, "9 in 10 texts queried verbatim lie above"),
        Anchor((1.0, 1.0), "the same vector"),
    ]


def balance(higher: Numbers, lower: Numbers) -> float:
    """Returns the value at which both errors are equal: `higher` below it and `lower` above it."""
    values = np.sort(np.concatenate([higher, lower]))
    gaps = [abs(float((higher < value).mean()) - float((lower >= value).mean())) for value in values]
    return float(values[int(np.argmin(gaps))])


def _floor(chance: Numbers) -> Anchor:
    low, middle = np.percentile(chance, [1, 50])
    return Anchor(
        (float(low - (middle - low)), 0.0), "as far below the lowest 1 % of chance pairs as that is below half"
    )


def _at(cosines: Numbers, percentile: float, similarity: float, why: str) -> Anchor:
    return Anchor((float(np.percentile(cosines, percentile)), similarity), why)


def _between_rows(left: Numbers, right: Numbers) -> Numbers:
    table = left @ right.T
    return np.asarray(table[~np.eye(len(table), dtype=bool)])


def read_questions(path: Path) -> list[dict[str, str]]:
    """Returns rows of `query`, `text` and `label` (answer or related)."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


async def fit_documents(embedder: LocalEmbedder, rows: Sequence[Pair]) -> list[Anchor]:
    """Returns the fitted knots of labelled pairs."""
    left = await pairs.vectors(embedder, [row.a for row in rows])
    right = await pairs.vectors(embedder, [row.b for row in rows])
    found = np.sum(left * right, axis=1)
    labels = np.array([row.label for row in rows])
    same = found[np.isin(labels, ["duplicate", "paraphrase"])]
    return documents(same, found[labels != "duplicate"], _between_rows(left, right))


async def fit_queries(embedder: LocalEmbedder, path: Path) -> list[Anchor]:
    """Returns the fitted knots of questions and texts, labelled `answer` or `related`."""
    rows = read_questions(path)
    texts = await pairs.vectors(embedder, [CleanText(row["text"]) for row in rows])
    query_vectors = np.array([await embedder.embed_query(CleanText(row["query"])) for row in rows])
    quoted = np.array([await embedder.embed_query(CleanText(row["text"])) for row in rows])
    found, labels = np.sum(query_vectors * texts, axis=1), np.array([row["label"] for row in rows])
    verbatim = np.sum(quoted * texts, axis=1)
    return queries(found[labels == "answer"], found[labels == "related"], verbatim, _between_rows(query_vectors, texts))


async def fit(labelled_pairs: Path, questions: Path) -> str:
    """Returns both tables of knots with their reasons."""
    rows = [row for row in pairs.read(labelled_pairs) if "-NC" not in row.licence.upper()]
    embedder = LocalEmbedder.load(None, threads=2, max_queue=len(rows) + 1)
    try:
        tables = {"documents": await fit_documents(embedder, rows), "queries": await fit_queries(embedder, questions)}
    finally:
        await embedder.close()
    lines = []
    for name, anchors in tables.items():
        lines.append(f"{name}:")
        lines.extend(f"  {anchor.knot[0]:.4f} -> {anchor.knot[1]:.2f}  {anchor.why}" for anchor in anchors)
    return "\n".join(lines)


def main() -> None:
    questions = Path(sys.argv[2]) if len(sys.argv) > 2 else QUESTIONS
    print(asyncio.run(fit(Path(sys.argv[1]), questions)))


if __name__ == "__main__":
    main()
