"""Hits come after what took their place, and their scores stay the product of their terms and factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector

from service.domain.memory import LaterStatementItem, SignalTerm
from service.search.fusion import Ranked
from service.search.reordering import current_first, later_statements, latest_first
from service.search.statements.features import Features
from tests.search.scores import recomputed


def hit(key: Any, score: float) -> Ranked:
    return Ranked(key, score, score, {}, {"text_vector": SignalTerm(score, score, 1.0)})


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
def test_what_is_current_comes_first(newer: Mapping[Any, list[Any]], order: str) -> None:
    found = current_first(HITS, newer)
    assert "".join(str(each.key) for each in found) == order
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    for each in found:
        assert recomputed(each) == pytest.approx(each.score)


def test_a_circle_ends() -> None:
    circle: dict[Any, list[Any]] = {"a": ["b"], "b": ["a"]}
    found = current_first(HITS, circle)
    assert sorted(str(each.key) for each in found) == list("abcd")


@pytest.mark.parametrize(
    ("later", "order"),
    [
        ({}, [1, 2, 3, 4]),
        ({1: [2]}, [2, 1, 3, 4]),
        ({1: [2], 2: [3]}, [2, 1, 3, 4]),  # the third has less than LEAST_SHARE of the second's score
        ({2: [1]}, [1, 2, 3, 4]),
        ({1: [4]}, [1, 2, 3, 4]),  # the fourth is not among the best
        ({4: [2]}, [1, 2, 3, 4]),
    ],
)
def test_of_the_best_hits_the_latest_about_the_same_thing_comes_first(
    later: Mapping[int, list[int]], order: list[int]
) -> None:
    ids = {number: UUID(int=number) for number in range(1, 5)}
    scores = {1: 0.9, 2: 0.8, 3: 0.2, 4: 0.19}
    ranked = [Ranked(ids[number], score, score, {}, {}) for number, score in scores.items()]
    after = {
        ids[key]: [LaterStatementItem(ids[number], datetime(2026, 1, 1, tzinfo=UTC)) for number in numbers]
        for key, numbers in later.items()
    }
    assert [each.key for each in latest_first(ranked, after)] == [ids[number] for number in order]


def test_later_statements_are_about_the_same_thing_and_the_latest_come_first() -> None:
    angles = [0, 10, 20, 30, 90, 15, 5]  # the last but one is a turn, the last one has no vector
    days = [1, 4, 3, 2, 5, 6, 7]
    ids = [UUID(int=at) for at in range(1, 8)]
    sent = [HalfVector([math.cos(math.radians(each)), math.sin(math.radians(each))]).to_binary() for each in angles]
    column = np.cos(np.radians(angles))
    features = Features(
        ids,
        column,
        column,
        column,
        column,
        timestamp=[datetime(2026, 1, day, tzinfo=UTC) for day in days],
        vectors=[*sent[:-1], None],
    )
    later = later_statements(features, [ids[0], ids[2], ids[5], ids[6]], {ids[5]}, math.cos(math.radians(25)))
    assert {ids.index(key): [ids.index(each.id) for each in said] for key, said in later.items()} == {0: [1, 2], 2: [1]}
