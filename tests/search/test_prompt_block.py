"""Prompt blocks: the best that fits, at exactly the size that was counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.language.tokens import estimate, of_bytes
from service.search.prompt_block import PromptBlock, PromptLine, PromptPiece, pack

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
    assert of_bytes(len(text.encode())) == block.tokens
    assert sum(block.tokens_of(part) for part in ORDER) >= block.tokens - 1


def test_tokens_are_estimated_by_bytes() -> None:
    assert [estimate(text) for text in ("", "a", "abcd", "abcde", "日本")] == [1, 1, 1, 2, 2]
