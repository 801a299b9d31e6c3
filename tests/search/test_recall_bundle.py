"""Recall bundles: context windows, caps per conversation, recency and the token budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from service.domain.conversation import Turn, TurnPlace
from service.domain.query import SearchResult
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.search.recall_bundle import RecallResults, bundle
from service.search.values import Bundle, RecallQuery

NOW = datetime(2026, 9, 16, 12, tzinfo=UTC)
SCOPE = Scope(UUID(int=1), user_id="alice", run_id="chat")
LONG, SHORT = UUID(int=7), UUID(int=8)


def turn(conversation_id: UUID, index: int, age_days: float = 0.0) -> Turn:
    at = NOW - timedelta(days=age_days)
    text = CleanText(f"Part {index}")
    return Turn(
        UUID(int=100 + index), conversation_id, index, SCOPE, "user", None, text, "", None, None, {}, at, False, at
    )


def bundled(query: RecallQuery, matches: Sequence[tuple[TurnPlace, float]], turns: Sequence[Turn]) -> Bundle:
    by_place = {(each.conversation_id, each.index): each for each in turns}
    results = RecallResults(matches, by_place, (), (), (), (), None)
    return bundle(query, results, SearchResult((), "none"), (), {}, NOW)


def query(**changes: object) -> RecallQuery:
    return RecallQuery(SCOPE, CleanText("?"), **changes)  # type: ignore[arg-type]


def test_overlapping_windows_show_each_turn_once_with_its_best_score() -> None:
    turns = [turn(LONG, index) for index in range(5)]
    found = bundled(query(context_window=1), [((LONG, 1), 0.9), ((LONG, 3), 0.4)], turns)
    assert {each.turn.index: (each.match, each.is_context) for each in found.turns} == {
        0: (0.0, True),
        1: (0.9, False),
        2: (0.0, True),
        3: (0.4, False),
        4: (0.0, True),
    }
    scores = {each.turn.index: each.score for each in found.turns}
    assert scores[0] == scores[1] == scores[2] > scores[3] == scores[4]
    assert found.text.count("Part 2") == 1


def test_recency_lifts_newer_turns_and_since_cuts_the_window() -> None:
    turns = [turn(LONG, 0, age_days=40), turn(LONG, 1), turn(SHORT, 0, age_days=5)]
    matches = [((SHORT, 0), 0.5), ((LONG, 1), 0.5)]
    found = bundled(query(context_window=1, since=NOW - timedelta(days=30)), matches, turns)
    assert [(each.turn.conversation_id, each.turn.index) for each in found.turns] == [(LONG, 1), (SHORT, 0)]
