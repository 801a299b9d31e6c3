"""Fits what marks a memory as perhaps outdated, and writes the weights to service/understanding/outdating.json.

    python -m bench.marks

The pairs of tests/corpora/marks.jsonl were written for this. A line is an older statement with newer ones that outdate
it and newer ones beside which it still holds. To these come pairs that hold: a change beside other statements of its
line, and beside the two nearest of other lines. Reported is a quarter of the topics that the fit did not see.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b85encode
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.domain.text import CleanText
from service.providers.local import LocalEmbedder
from service.understanding import outdating
from service.understanding.compare import LinkKind, read, relate, signs

Numbers = NDArray[np.float64]

CORPUS = Path("tests/corpora/marks.jsonl")
HELD_OUT = frozenset({"diet", "prices", "devices", "hobbies", "projects", "long"})
OF_LINE, OF_OTHERS = 0.7, 0.7
"""Weights of the pairs that were not written as such: a few of them may be outdated after all."""
VECTOR_PENALTY, WORD_PENALTY = 0.08, 1.0
THRESHOLD = 0.35


class MarkCase(NamedTuple):
    topic: str
    older: str
    newer: str
    outdated: bool
    weight: float = 1.0


class Fit(NamedTuple):
    words: Numbers
    vector: Numbers
    bias: float


async def embedded(texts: Sequence[str]) -> dict[str, Numbers]:
    known = list(dict.fromkeys(texts))
    embedder = LocalEmbedder.load(None, threads=2, max_queue=len(known) + 1, window=256)
    try:
        found = await embedder.embed([CleanText(each) for each in known])
    finally:
        await embedder.close()
    return {text: np.asarray(vector, dtype=np.float64) for text, vector in zip(known, found, strict=True)}


def spoken(text: str, place: int) -> str:
    """As it is kept of a conversation, or in a quarter of cases as it is stored by itself."""
    return f"User: {text}" if place % 4 else text


def read_pairs(path: Path) -> tuple[list[MarkCase], list[MarkCase]]:
    """Returns the pairs as written, and those of a change and another statement of its line."""
    written, siblings = [], []
    for place, line in enumerate(path.read_text().splitlines()):
        row = json.loads(line)
        older, changes, others = (
            spoken(row["older"], place),
            [spoken(each, place) for each in row["outdated_by"]],
            [spoken(each, place) for each in row["holds_beside"]],
        )
        written += [MarkCase(row["topic"], older, each, outdated=True) for each in changes]
        written += [MarkCase(row["topic"], older, each, outdated=False) for each in others]
        siblings += [MarkCase(row["topic"], other, each, False, OF_LINE) for each in changes for other in others[:2]]
    return written, siblings


def strangers(written: Sequence[MarkCase], vectors: dict[str, Numbers]) -> list[MarkCase]:
    olders = list(dict.fromkeys(pair.older for pair in written))
    table = np.stack([vectors[each] for each in olders])
    found = []
    for pair in written:
        if pair.outdated:
            nearest = [olders[each] for each in np.argsort(-(table @ vectors[pair.newer]))[:3]]
            others = [each for each in nearest if each != pair.older][:2]
            found += [MarkCase(pair.topic, each, pair.newer, False, OF_OTHERS) for each in others]
    return found


def features(pairs: Sequence[MarkCase], vectors: dict[str, Numbers]) -> tuple[Numbers, Numbers]:
    """Returns the signs in the words, and the newer vectors."""
    newer = np.stack([vectors[pair.newer] for pair in pairs])
    words = [signs(read(pair.newer), read(pair.older), similarity(pair, vectors)) for pair in pairs]
    return np.array(words, dtype=np.float64), newer


def similarity(pair: MarkCase, vectors: dict[str, Numbers]) -> float:
    return LocalEmbedder.calibration.documents(float(vectors[pair.newer] @ vectors[pair.older]))


def fit(pairs: Sequence[MarkCase], vectors: dict[str, Numbers]) -> Fit:
    """Logistic regression with a penalty on the squares, by Newton's method; the vector's weights in 255 steps."""
    words, newer = features(pairs, vectors)
    table = np.hstack([words, newer, np.ones((len(pairs), 1))])
    penalty = np.repeat([WORD_PENALTY, VECTOR_PENALTY, 1e-6], [words.shape[1], newer.shape[1], 1])
    truth, weight = (
        np.array([getattr(pair, name) for pair in pairs], dtype=np.float64) for name in ("outdated", "weight")
    )
    found = np.zeros(table.shape[1])
    for _ in range(12):
        chance = 1 / (1 + np.exp(-table @ found))
        slope = table.T @ (weight * (truth - chance)) - penalty * found
        curve = (table * (weight * chance * (1 - chance))[:, None]).T @ table + np.diag(penalty)
        found += np.linalg.solve(curve, slope)
    vector = found[words.shape[1] : -1]
    step = float(np.abs(vector).max()) / 127
    return Fit(found[: words.shape[1]], np.round(vector / step) * step, float(found[-1]))


def chances(found: Fit, pairs: Sequence[MarkCase], vectors: dict[str, Numbers]) -> Numbers:
    words, newer = features(pairs, vectors)
    return np.asarray(1 / (1 + np.exp(-(words @ found.words + newer @ found.vector + found.bias))))


def by_rules(pairs: Sequence[MarkCase], vectors: dict[str, Numbers]) -> NDArray[np.bool_]:
    links = [relate(pair.newer, pair.older, similarity(pair, vectors)) for pair in pairs]
    return np.array([link is not None and link.kind is not LinkKind.SAME for link in links])


def shown(marked: NDArray[np.bool_], pairs: Sequence[MarkCase]) -> str:
    truth = np.array([pair.outdated for pair in pairs])
    right, count = int((marked & truth).sum()), int(marked.sum())
    return f"{count} of {len(pairs)} marked, {right} rightly ({right / max(1, count):.2f}), of {truth.sum()} outdated"


def as_json(found: Fit) -> str:
    step = float(np.abs(found.vector).max()) / 127
    weights = {
        "model": LocalEmbedder.model,
        "threshold": round(float(np.log(THRESHOLD / (1 - THRESHOLD))), 3),
        "bias": round(found.bias, 3),
        "words": [round(float(each), 3) for each in found.words],
        "step": round(step, 6),
        "vector": b85encode(np.round(found.vector / step).astype(np.int8).tobytes()).decode(),
    }
    return json.dumps(weights, indent=1) + "\n"


def main() -> None:
    written, siblings = read_pairs(CORPUS)
    vectors = asyncio.run(embedded([text for pair in (*written, *siblings) for text in (pair.older, pair.newer)]))
    others = strangers(written, vectors)
    every = [*written, *siblings, *others]
    seen = fit([pair for pair in every if pair.topic not in HELD_OUT], vectors)
    for name, pairs in (("as written", written), ("of its line", siblings), ("of other lines", others)):
        held = [pair for pair in pairs if pair.topic in HELD_OUT]
        for limit in (0.3, THRESHOLD, 0.4):
            print(f"{name}, from {limit}: {shown(chances(seen, held, vectors) >= limit, held)}")
        print(f"{name}, by rules: {shown(by_rules(held, vectors), held)}")
    outdating.WEIGHTS.write_text(as_json(fit(every, vectors)))


if __name__ == "__main__":
    main()
