"""Fits what marks a memory as perhaps outdated, and writes the weights to service/understanding/outdating.json.

    python -m bench.marks

The pairs of tests/corpora/marks.jsonl were written for this. A line is an older statement with newer ones that outdate
it and newer ones beside which it still holds. To these come pairs that hold: a change beside other statements of its
line, beside the two nearest of other lines, and what people say in the corpora of talk beside the three nearest things
that they said before. Reported is a quarter of the lines, which the fit did not see.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b85encode
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.domain.text import CleanText
from service.providers.local import LocalEmbedder
from service.understanding import outdating
from service.understanding.compare import LinkKind, read, relate, signs

Numbers = NDArray[np.float64]

CORPORA = Path("tests/corpora")
TALKS = ("answers", "sessions", "talks")
HELD_OUT = 4
"""Every fourth line of the pairs is held out."""
OF_LINE, OF_OTHERS, OF_TALK = 0.7, 0.7, 1.0
"""Weights of the pairs that were not written as such: a few of them may be outdated after all."""
WORD_PENALTY, VECTOR_PENALTY, PRODUCT_PENALTY = 1.0, 0.2, 1.0
PRODUCT_SCALE = 20
"""Products of two components of unit vectors are this much smaller than the components."""
THRESHOLD = 0.36
TALK_CHARS = range(15, 601)
"""Lengths of what is said in talk that count: shorter things mean nothing, longer ones are pasted."""


class MarkCase(NamedTuple):
    line: int
    older: str
    newer: str
    outdated: bool
    weight: float = 1.0


class Fit(NamedTuple):
    words: Numbers
    newer: Numbers
    older: Numbers
    product: Numbers
    bias: float


async def embedded(texts: Sequence[str]) -> dict[str, Numbers]:
    known = list(dict.fromkeys(texts))
    embedder = LocalEmbedder.load(None, threads=2, max_queue=len(known) + 1)
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
    for index, line in enumerate(path.read_text().splitlines()):
        row = json.loads(line)
        older, changes, others = (
            spoken(row["older"], index),
            [spoken(each, index) for each in row["outdated_by"]],
            [spoken(each, index) for each in row["holds_beside"]],
        )
        written += [MarkCase(index, older, each, outdated=True) for each in changes]
        written += [MarkCase(index, older, each, outdated=False) for each in others]
        siblings += [MarkCase(index, other, each, False, OF_LINE) for each in changes for other in others[:2]]
    return written, siblings


def strangers(written: Sequence[MarkCase], vectors: Mapping[str, Numbers]) -> list[MarkCase]:
    olders = list(dict.fromkeys(pair.older for pair in written))
    table = np.stack([vectors[each] for each in olders])
    found = []
    for pair in written:
        if pair.outdated:
            nearest = [olders[each] for each in np.argsort(-(table @ vectors[pair.newer]))[:3]]
            others = [each for each in nearest if each != pair.older][:2]
            found += [MarkCase(pair.line, each, pair.newer, False, OF_OTHERS) for each in others]
    return found


def talk(known: Mapping[str, Numbers]) -> list[MarkCase]:
    """What somebody says beside the three nearest things that they said before, unless a rule says that it ends one."""
    found = []
    for said in talkers():
        table = np.stack([known[each] for each in said])
        for index, newer in enumerate(said):
            for near in np.argsort(-(table[:index] @ table[index]))[:3]:
                pair = MarkCase(-1, said[near], newer, False, OF_TALK)
                if relate(newer, said[near], similarity(pair, known)) is None:
                    found.append(pair)
    return found


def talkers() -> Iterator[list[str]]:
    """What each person says in each conversation of the corpora of talk."""
    for name in TALKS:
        for row in map(json.loads, (CORPORA / f"{name}.jsonl").read_text().splitlines()):
            said = defaultdict(list)
            for turn in (turn for session in row.get("sessions", ()) for turn in session["turns"]):
                if turn.get("speaker", "user") != "assistant" and len(turn["text"]) in TALK_CHARS:
                    said[turn.get("speaker", "user").capitalize()].append(turn["text"])
            yield from ([f"{speaker}: {text}" for text in texts] for speaker, texts in said.items())


def features(pairs: Sequence[MarkCase], vectors: Mapping[str, Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """Returns the signs in the words, and the newer and the older vectors."""
    words = [signs(read(pair.newer), read(pair.older), similarity(pair, vectors)) for pair in pairs]
    newer, older = (np.stack([vectors[getattr(pair, name)] for pair in pairs]) for name in ("newer", "older"))
    return np.array(words, dtype=np.float64), newer, older


def similarity(pair: MarkCase, vectors: Mapping[str, Numbers]) -> float:
    return LocalEmbedder.calibration.documents(float(vectors[pair.newer] @ vectors[pair.older]))


def fit(pairs: Sequence[MarkCase], vectors: Mapping[str, Numbers]) -> Fit:
    """Logistic regression with a penalty on the squares, by Newton's method; the vectors' weights in 255 steps."""
    words, newer, older = features(pairs, vectors)
    parts = (words, newer, older, newer * older * PRODUCT_SCALE, np.ones((len(pairs), 1)))
    penalties = (WORD_PENALTY, VECTOR_PENALTY, VECTOR_PENALTY, PRODUCT_PENALTY, 1e-6)
    table, penalty = np.hstack(parts), np.repeat(penalties, [part.shape[1] for part in parts])
    truth, weight = (
        np.array([getattr(pair, name) for pair in pairs], dtype=np.float64) for name in ("outdated", "weight")
    )
    found = np.zeros(table.shape[1])
    for _ in range(12):
        chance = 1 / (1 + np.exp(-table @ found))
        slope = table.T @ (weight * (truth - chance)) - penalty * found
        curve = (table * (weight * chance * (1 - chance))[:, None]).T @ table + np.diag(penalty)
        found += np.linalg.solve(curve, slope)
    of_words, of_newer, of_older, of_product, bias = np.split(found, np.cumsum([part.shape[1] for part in parts])[:-1])
    return Fit(of_words, in_steps(of_newer), in_steps(of_older), in_steps(of_product * PRODUCT_SCALE), float(bias[0]))


def in_steps(weights: Numbers) -> Numbers:
    return np.asarray(np.round(weights / step(weights)) * step(weights))


def step(weights: Numbers) -> float:
    return float(np.abs(weights).max()) / 127


def chances(found: Fit, pairs: Sequence[MarkCase], vectors: Mapping[str, Numbers]) -> Numbers:
    words, newer, older = features(pairs, vectors)
    odds = words @ found.words + newer @ found.newer + older @ found.older + (newer * older) @ found.product
    return np.asarray(1 / (1 + np.exp(-(odds + found.bias))))


def by_rules(pairs: Sequence[MarkCase], vectors: Mapping[str, Numbers]) -> NDArray[np.bool_]:
    links = [relate(pair.newer, pair.older, similarity(pair, vectors)) for pair in pairs]
    return np.array([link is not None and link.kind is not LinkKind.SAME for link in links])


def shown(marked: NDArray[np.bool_], pairs: Sequence[MarkCase]) -> str:
    truth = np.array([pair.outdated for pair in pairs])
    right, count = int((marked & truth).sum()), int(marked.sum())
    return f"{count} of {len(pairs)} marked, {right} rightly ({right / max(1, count):.2f}), of {truth.sum()} outdated"


def as_json(found: Fit) -> str:
    vectors = {name: getattr(found, name) for name in ("newer", "older", "product")}
    weights = {
        "model": LocalEmbedder.model,
        "threshold": round(float(np.log(THRESHOLD / (1 - THRESHOLD))), 3),
        "bias": round(found.bias, 3),
        "words": [round(float(each), 3) for each in found.words],
        "steps": {name: round(step(each), 6) for name, each in vectors.items()},
        **{
            name: b85encode(np.round(each / step(each)).astype(np.int8).tobytes()).decode()
            for name, each in vectors.items()
        },
    }
    return json.dumps(weights, indent=1) + "\n"


def main() -> None:
    written, siblings = read_pairs(CORPORA / "marks.jsonl")
    texts = [text for pair in (*written, *siblings) for text in (pair.older, pair.newer)]
    vectors = asyncio.run(embedded([*texts, *chain.from_iterable(talkers())]))
    others, of_talk = strangers(written, vectors), talk(vectors)
    every = [*written, *siblings, *others, *of_talk]
    seen = fit([pair for pair in every if pair.line % HELD_OUT], vectors)
    for name, pairs in (("as written", written), ("of its line", siblings), ("of other lines", others)):
        held = [pair for pair in pairs if pair.line % HELD_OUT == 0]
        for limit in (0.4, THRESHOLD, 0.6):
            print(f"{name}, from {limit}: {shown(chances(seen, held, vectors) >= limit, held)}")
        print(f"{name}, by rules: {shown(by_rules(held, vectors), held)}")
    outdating.WEIGHTS.write_text(as_json(fit(every, vectors)))


if __name__ == "__main__":
    main()
