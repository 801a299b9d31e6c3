"""Is a summary the first sentence, and never longer than allowed?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.language import summary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("  \n ", ""),
        ("Short. And more.", "Short."),
        ("No full stop", "No full stop"),
        ("\n\nHeading\nBody text.", "Heading"),
    ],
)
def test_first_sentence(text: str, expected: str) -> None:
    assert summary.first_sentence(text) == expected


@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("one two three", 8, "one two…"),
        ("one two, three", 10, "one two…"),
        ("x" * 20, 5, "xxxx…"),
        ("one " + "x" * 20, 6, "one…"),
        ("one two", 1, "…"),
    ],
)
def test_cut(text: str, max_chars: int, expected: str) -> None:
    assert summary.first_sentence(text, max_chars) == expected


def test_default_length() -> None:
    words = "word " * 100
    assert len(summary.first_sentence(words)) <= 240
    assert summary.first_sentence(words).endswith("word…")


@given(st.text(max_size=400), st.integers(min_value=1, max_value=60))
def test_never_longer(text: str, max_chars: int) -> None:
    assert len(summary.first_sentence(text, max_chars)) <= max_chars
