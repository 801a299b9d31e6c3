"""Fits the probability of an answer, and that a hit is it, on our own conversations.

    python -m bench.answers

`service/search/answerability.py` holds the printed coefficients. The conversations of `tests/corpora/answers.jsonl`
were written for this, each with questions that it answers and questions about the same things that it does not. They
are measured as they are and four in one, as larger memories. Every second four of them are held out, and the figures
are theirs; the coefficients are those of all. A hit is fitted on the questions with an answer of the other corpora,
too.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.evals import ranking
from bench.evals.answerable import auc
from bench.evals.ranking import IndexedText
from bench.load_conversations import read
from service.runtime.embedding import CachedEmbedder
from service.search import answerability, fusion, signals
from service.search.statements import features

Numbers = NDArray[np.float64]

ANSWERS = "answers"
LONG = ("talks", "sessions", "answerable")
GROUP = 4
HITS = 10
PENALTY = 3.0
RESULT_NAMES = ("NEARNESS", "SAID_BY_OTHERS", "SAID", "UNSAID", "LACKING", "STANDING_OUT")
HIT_NAMES = ("HIT_LESS_FIT", "HIT_PLACE")


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured of a question or of a hit, what is known beforehand, and whether there is an answer."""

    group: int
    values: tuple[float, ...]
    known: float
    so: bool


async def fit() -> str:
    """Returns the coefficients with the figures of what was held out."""
    results: list[Row] = []
    hits: list[Row] = []
    async with ranking.local_embedder() as embedder:
        for name in (ANSWERS, *LONG):
            conversations, questions = read(ranking.CORPORA / f"{name}.jsonl")
            stored = {each["id"]: await ranking.indexed(each, embedder) for each in conversations}
            places = {each: at // GROUP for at, each in enumerate(stored)}
            for each in questions:
                place, own = places[each["conversation_id"]], stored[each["conversation_id"]]
                four = [text for other, texts in stored.items() if places[other] == place for text in texts]
                for texts in (own, four) if name == ANSWERS else (own,):
                    result, of_hits = await _rows(each, texts, embedder, place)
                    results += [result] if result and name == ANSWERS else []
                    hits += of_hits
    return "\n".join((_shown("an answer", RESULT_NAMES, results), _shown("a hit", HIT_NAMES, hits)))


async def _rows(
    asked: Mapping[str, Any], texts: Sequence[IndexedText], embedder: CachedEmbedder, group: int
) -> tuple[Row | None, list[Row]]:
    """The rows of a question, and of its first hits where it has an answer; none of a request."""
    found, context = await ranking.measured(asked["text"], texts, embedder)
    found = features.choose(found, signals.asking_share(found.ids, found.phrasing) < 1)
    columns = signals.columns(found, context)
    answer = answerability.assess(context, found, columns, signals.cosines(found))
    if answer is None:
        return None, []
    result = Row(group, answer.measures, answerability.scarcity(len(texts)), bool(asked["evidence"]))
    ranked = fusion.fuse(columns, context, limit=HITS) if asked["evidence"] else []
    hits = [
        Row(group, (answer.less_fit[each.key], math.log1p(index)), 0.0, each.key in asked["evidence"])
        for index, each in enumerate(ranked)
    ]
    return result, hits


def _shown(what: str, names: Sequence[str], rows: Sequence[Row]) -> str:
    seen, held_out = ([each for each in rows if each.group % 2 == side] for side in (0, 1))
    weights = _fitted(seen)
    told = [float(weights[0] + weights[1:] @ np.array(each.values)) + each.known for each in held_out]
    area = auc(*([score for score, each in zip(told, held_out, strict=True) if each.so is so] for so in (True, False)))
    right = np.mean([(score > 0) == each.so for score, each in zip(told, held_out, strict=True)])
    numbers = zip(("INTERCEPT", *names), _fitted(rows), strict=True)
    return (
        f"{what}: {len(held_out)} held out of {len(rows)}, AUC {area:.3f}, on the right side of .5 {right:.3f}\n  "
        + "\n  ".join(f"{name} {value:.2f}" for name, value in numbers)
    )


def _fitted(rows: Sequence[Row]) -> Numbers:
    """The intercept and the coefficients of a logistic function, by Newton's method on values of one spread."""
    measured = np.array([each.values for each in rows])
    known, so = np.array([each.known for each in rows]), np.array([float(each.so) for each in rows])
    middle, spread = measured.mean(axis=0), measured.std(axis=0)
    scaled = np.column_stack([np.ones(len(rows)), (measured - middle) / spread])
    penalty = np.diag([0.0, *[PENALTY] * len(middle)])
    weights = np.zeros(scaled.shape[1])
    for _ in range(30):
        told = 1 / (1 + np.exp(-(scaled @ weights + known)))
        slope = scaled.T @ (so - told) - penalty @ weights
        weights += np.linalg.solve((scaled.T * (told * (1 - told))) @ scaled + penalty, slope)
    coefficients = weights[1:] / spread
    return np.array([weights[0] - coefficients @ middle, *coefficients])


if __name__ == "__main__":
    print(asyncio.run(fit()))
