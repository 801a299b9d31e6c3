"""What is left of a text when sentences are withdrawn from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.language import withdrawal

TEXT = "Hello. I live in Lisbon. It rains."


def test_the_rest_of_the_text_reads_on() -> None:
    assert withdrawal.hide(TEXT, [(7, 24)]) == "Hello. It rains."
    assert withdrawal.hide("- one\n- two\n- three", [(6, 11)]) == "- one\n- three"
    assert withdrawal.hide("I live in Lisbon.", [(0, 16)]) == ""


def test_a_kept_span_is_not_withdrawn() -> None:
    assert withdrawal.subtract([(0, 10), (5, 20)], [(8, 12)]) == [(0, 8), (12, 20)]
    assert withdrawal.subtract([(0, 10)], [(0, 10)]) == []


def test_a_quote_is_found_with_its_speaker_or_not() -> None:
    assert withdrawal.locate("Ann: I live in Lisbon.", TEXT) == (7, 24)
    assert withdrawal.locate("Somewhere else", TEXT) == (0, len(TEXT))


def test_what_only_adds_still_says_it() -> None:
    assert withdrawal.still_said("I like pizza.", "Ann: I like pizza with olives.")
    assert not withdrawal.still_said("I live in Berlin", "I no longer live in Berlin")


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4))
def test_moved_spans_fit_the_text_that_is_left(text: str, pairs: list[tuple[int, int]]) -> None:
    spans = [(min(pair), min(max(pair), len(text))) for pair in pairs if min(pair) < min(max(pair), len(text))]
    removed = withdrawal.subtract(spans, [])
    left = withdrawal.cut(text, removed)
    for start in range(len(text)):
        moved = withdrawal.move((start, start + 1), removed)
        inside = any(low <= start < high for low, high in removed)
        assert left[moved[0] : moved[1]] == ("" if inside else text[start])
