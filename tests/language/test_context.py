"""A turn's context: the words of its neighbours, and only so many of them."""

from __future__ import annotations

import pytest

from service.domain.text import CleanText
from service.language import context
from service.language.context import ContextTurn


def turn(text: str, speaker: str | None = None) -> ContextTurn:
    return ContextTurn(CleanText(text), speaker)


ASKED = turn("How often do you swim?", "Ines")
OLDER = turn("The pool opens at seven.", "Bram")
OLDEST = turn("Good morning!", "Ines")
ANSWER = turn("Twice a week.", "Bram")


def test_lexical_context_is_two_turns_and_the_own_text() -> None:
    before = [OLDEST, OLDER, ASKED]
    assert context.lexical_text(ANSWER, before) == "The pool opens at seven.\nHow often do you swim?\nTwice a week."


def test_a_first_turn_has_only_itself() -> None:
    assert context.lexical_text(ANSWER, []) == "Twice a week."
    assert context.embedded_text(ANSWER, []) == "Bram: Twice a week."
    assert context.embedded_text(turn("Twice a week."), []) == "Twice a week."


@pytest.mark.parametrize(
    ("before", "read"),
    [
        ("How often do you swim?", "How often do you swim?"),
        ("Great! Do you swim? Where? And how often? I run.", "Where? And how often?"),
        ("I run. It keeps me sane.", "It keeps me sane."),
        ("", ""),
    ],
)
def test_the_embedded_context_is_what_was_asked_and_the_turn(before: str, read: str) -> None:
    assert context.embedded_text(ANSWER, [OLDER, turn(before, "Ines")]) == f"{read}\nBram: Twice a week."


def test_of_a_long_neighbour_the_end_is_read() -> None:
    long = turn("filler " * 400 + "Which colour do you want?", "assistant")
    for text in (context.lexical_text(ANSWER, [long]), context.embedded_text(ANSWER, [long])):
        assert "Which colour do you want?" in text
        assert len(text) < context.MAX_NEIGHBOUR_CHARS + 60


def test_an_erased_turn_touches_itself_and_those_that_read_it() -> None:
    turns = [turn(f"word{number}") for number in range(6)]
    holders = [at for at in range(6) if "word2" in context.lexical_text(turns[at], turns[:at])]
    assert holders == list(range(2, 2 + context.PRECEDING + 1))


def test_who_speaks_of_nobody_is_in_the_middle() -> None:
    assert context.first_person("The boat is green.") == 0.5
    assert context.first_person("") == 0.5
