"""Prompt blocks: the best that fits, at exactly the size that was counted; windows, caps and recency of recall."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from service.domain.conversation import Turn, TurnPlace
from service.domain.memory import Hit, memory_of
from service.domain.query import SearchResult, Window
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.language.prompt_text import estimate_tokens, estimate_tokens_of_bytes
from service.search.prompt_block import PromptBlock, PromptLine, PromptPiece, pack
from service.search.recall_bundle import RecallResults, bundle
from service.search.values import Bundle, RecallQuery

HEADINGS = {"facts": "## Known", "turns": "## Said"}
ORDER = ("facts", "turns")


def fact(score: float, text: str) -> PromptPiece:
    return PromptPiece("facts", score, (PromptLine(text, f"- {text}", (text,)),))


def passage(score: float, conversation: str, *indexes: int) -> PromptPiece:
    heading = f"### {conversation}"
    lines = [PromptLine((conversation, at), f"{conversation} says {at}", (conversation, at), heading) for at in indexes]
    return PromptPiece("turns", score, tuple(lines), group=conversation)


def test_the_best_come_first_and_a_smaller_one_fills_the_rest() -> None:
    block = PromptBlock(HEADINGS, max_tokens=12)
    taken = pack([fact(0.1, "short"), fact(0.9, "the best of them all"), fact(0.5, "too long " * 9)], block)
    assert [piece.score for piece in taken] == [0.9, 0.1]
    assert block.text(ORDER) == "## Known\n- short\n- the best of them all\n"


def test_lines_of_two_passages_are_told_once_and_in_order() -> None:
    block = PromptBlock(HEADINGS, max_tokens=200)
    pack([passage(0.5, "b", 1, 2), passage(0.9, "b", 2, 3), passage(0.7, "a", 9)], block)
    assert block.text(ORDER).splitlines() == [
        "## Said",
        "### a",
        "a says 9",
        "### b",
        "b says 1",
        "b says 2",
        "b says 3",
    ]


@given(
    st.lists(
        st.one_of(
            st.builds(fact, st.floats(0, 1), st.text(st.characters(codec="utf-8", exclude_categories=["C"]))),
            st.builds(passage, st.floats(0, 1), st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 9)),
        ),
        max_size=20,
    ),
    st.integers(1, 120),
)
def test_the_block_is_as_large_as_it_was_counted_and_never_larger_than_it_may_be(
    pieces: list[PromptPiece], max_tokens: int
) -> None:
    block = PromptBlock(HEADINGS, max_tokens)
    pack(pieces, block)
    text = block.text(ORDER)
    assert block.tokens <= max_tokens
    assert estimate_tokens_of_bytes(len(text.encode())) == block.tokens
    assert sum(block.tokens_of(part) for part in ORDER) >= block.tokens - 1


def test_tokens_are_estimated_by_bytes() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "日本")] == [1, 1, 1, 2, 2]


# -- bundles -----------------------------------------------------------------------------------------------------------

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
    hits = {place: Hit(memory_of(by_place[place]), score, None) for place, score in matches}
    results = RecallResults(hits, by_place, (), (), (), (), None)
    return bundle(query, results, SearchResult((), "none"), (), {}, NOW)


def query(**changes: object) -> RecallQuery:
    return RecallQuery(SCOPE, CleanText("?"), **changes)  # type: ignore[arg-type]


def test_overlapping_windows_show_each_turn_once_with_its_best_score() -> None:
    turns = [turn(LONG, index) for index in range(5)]
    found = bundled(query(context_window=1), [((LONG, 1), 0.9), ((LONG, 3), 0.4)], turns)
    matches = {each.turn.index: each.hit and each.hit.score for each in found.turns}
    assert matches == {0: None, 1: 0.9, 2: None, 3: 0.4, 4: None}
    scores = {each.turn.index: each.score for each in found.turns}
    assert scores[0] == scores[1] == scores[2] > scores[3] == scores[4]
    assert found.text.count("Part 2") == 1


def test_recency_lifts_newer_turns_and_since_cuts_the_window() -> None:
    turns = [turn(LONG, 0, age_days=40), turn(LONG, 1), turn(SHORT, 0, age_days=5)]
    matches = [((SHORT, 0), 0.5), ((LONG, 1), 0.5)]
    found = bundled(query(context_window=1, window=Window(NOW - timedelta(days=30))), matches, turns)
    assert [(each.turn.conversation_id, each.turn.index) for each in found.turns] == [(LONG, 1), (SHORT, 0)]
