"""The overlap of texts, and hits chosen for diversity by it."""

from __future__ import annotations

import time
from random import Random
from uuid import UUID

import numpy as np
import pytest

from service.search import reordering
from service.search.fusion import Ranked

WORDS = range(40)


def jaccard(one: list[int], other: list[int]) -> float:
    a, b = set(one), set(other)
    return len(a & b) / len(a | b) if a | b else 1.0


def test_it_is_the_share_of_words_in_common() -> None:
    dice = Random(3)
    texts = [dice.sample(WORDS, dice.randrange(8)) for _ in range(60)]
    overlap = reordering.text_overlap(texts)
    for at, text in enumerate(texts):
        assert overlap(at).tolist() == pytest.approx([jaccard(text, other) for other in texts])


def spread_one_by_one(
    ranked: list[Ranked], texts: list[list[int]], diversity: float, *, limit: int, deep: int
) -> list[object]:
    left, found = list(range(len(ranked))), list[int]()

    def value(at: int) -> float:
        return ranked[at].score * (
            1 - diversity * max((jaccard(texts[at], texts[above]) for above in found[:deep]), default=0)
        )

    while left and len(found) < limit:
        best = max(left, key=value)
        left.remove(best)
        found.append(best)
    return [ranked[at].key for at in found]


@pytest.mark.parametrize("diversity", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("limit", "deep"), [(5, 10), (30, 10), (100, 10)])
def test_hits_are_spread_as_one_by_one(diversity: float, limit: int, deep: int) -> None:
    dice = Random(f"{diversity} {limit}")
    texts = [dice.sample(WORDS, dice.randrange(6)) for _ in range(60)]
    scores = sorted((dice.random() for _ in texts), reverse=True)
    ranked = [Ranked(UUID(int=at), score, score, {}) for at, score in enumerate(scores)]
    found = reordering.diversify(ranked, reordering.text_overlap(texts), diversity, limit=limit, one_by_one=deep)
    assert [hit.key for hit in found] == spread_one_by_one(ranked, texts, diversity, limit=limit, deep=deep)
    for hit in found:
        assert hit.score == pytest.approx(scores[hit.key.int] * hit.factors["diversity"])


def test_thousands_are_spread_in_no_time() -> None:
    """Several seconds on the event loop, when each was compared with each."""
    dice = Random(5)
    texts = [dice.sample(range(2_000), 30) for _ in range(4_000)]
    ranked = [Ranked(UUID(int=at), 1 - at / 4_000, 1.0, {}) for at in range(4_000)]
    began = time.thread_time()
    found = reordering.diversify(ranked, reordering.text_overlap(texts), 0.5, limit=1_000, one_by_one=400)
    assert time.thread_time() - began < 1.5
    assert len(found) == 1_000
    assert np.all(np.diff([hit.score for hit in found]) <= 1e-12)
