"""Strategies rank by similarity times success; goals raise the memories close to them."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from service.cognition.procedures import rank
from service.cognition.values import Strategy
from service.domain.scope import NIL_WORKSPACE, Scope
from service.domain.text import CleanText
from service.search.signals import goal_pull

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def strategy(number: int, good: int, bad: int) -> Strategy:
    scope = Scope(NIL_WORKSPACE, "alice")
    return Strategy(UUID(int=number), scope, CleanText("x"), None, None, (), good, bad, 1, NOW, None)


def same(cosine: float) -> float:
    return cosine


@pytest.mark.parametrize(
    ("good", "bad", "plain", "smoothed"),
    [(0, 0, None, 1 / 2), (1, 0, 1.0, 2 / 3), (0, 1, 0.0, 1 / 3), (40, 10, 0.8, 41 / 52), (998, 0, 1.0, 999 / 1000)],
)
def test_the_smoothed_rate_is_laplaces(good: int, bad: int, plain: float | None, smoothed: float) -> None:
    found = strategy(1, good, bad)
    assert found.success_rate == plain
    assert found.smoothed_rate == pytest.approx(smoothed)


def test_one_success_does_not_beat_forty_of_fifty() -> None:
    ranked = rank([(strategy(1, 1, 0), 0.8), (strategy(2, 40, 10), 0.8)], same, limit=2)
    assert [each.strategy.id.int for each in ranked] == [2, 1]
    assert [each.score for each in ranked] == pytest.approx([0.8 * 41 / 52, 0.8 * 2 / 3])


def test_nearness_and_success_are_multiplied() -> None:
    ranked = rank([(strategy(1, 0, 8), 0.9), (strategy(2, 8, 0), 0.5), (strategy(3, 0, 0), None)], same, limit=2)
    assert [each.strategy.id.int for each in ranked] == [2, 1], "one without a vector is unlike"


@pytest.mark.parametrize(
    ("near", "tied", "value"),
    [(None, True, 1.0), (0.1, True, 1.0), (None, False, 0.0), (0.5, False, 0.0), (0.7, False, 0.0), (1.0, False, 1.0)],
)
def test_how_strongly_a_goal_pulls(near: float | None, tied: bool, value: float) -> None:
    assert goal_pull(near, same, is_linked=tied) == pytest.approx(value)


def test_between_neighbours_and_equal_words_the_pull_grows_evenly() -> None:
    assert goal_pull(0.85, same, is_linked=False) == pytest.approx(0.5)
