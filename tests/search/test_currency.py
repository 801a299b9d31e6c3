"""Hits come after what took their place, and their scores stay the product of their terms and factors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import pytest

from service.domain.memory import ScoreTerm
from service.search.currency import current_first
from service.search.fusion import Ranked
from tests.search.scores import recomputed


def hit(key: str, score: float) -> Ranked:
    return Ranked(key, score, score, {}, {"text_vector": ScoreTerm(score, score, 1.0)})


HITS = [hit("a", 0.9), hit("b", 0.8), hit("c", 0.7), hit("d", 0.6)]


@pytest.mark.parametrize(
    ("newer", "order"),
    [
        ({}, "abcd"),
        ({"a": ["c"]}, "cabd"),
        ({"c": ["a"]}, "abcd"),
        ({"a": ["b"], "b": ["d"]}, "dbac"),
        ({"b": ["c"], "a": ["b"]}, "cbad"),
        ({"a": ["b", "d"]}, "bdac"),
        ({"a": ["elsewhere"]}, "abcd"),
        ({"elsewhere": ["a"]}, "abcd"),
    ],
)
def test_what_is_current_comes_first(newer: Mapping[Hashable, list[Hashable]], order: str) -> None:
    found = current_first(HITS, newer)
    assert "".join(str(each.key) for each in found) == order
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    for each in found:
        assert recomputed(each) == pytest.approx(each.score)


def test_a_circle_ends() -> None:
    found = current_first(HITS, {"a": ["b"], "b": ["a"]})
    assert sorted(str(each.key) for each in found) == list("abcd")
