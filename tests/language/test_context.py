"""Does a turn's context hold its neighbours' words, and only so much of them?"""

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
    assert context.lexical(ANSWER, before) == "The pool opens at seven.\nHow often do you swim?\nTwice a week."


def test_a_first_turn_has_only_itself() -> None:
    assert context.lexical(ANSWER, []) == "Twice a week."
    assert context.embedded(ANSWER, []) == "Bram: Twice a week."
    assert context.embedded(turn("Twice a week."), []) == "Twice a week."


def test_the_embedded_context_begins_with_the_turn_and_names_both() -> None:
    text = context.embedded(ANSWER, [OLDER, ASKED])
    assert text == "Bram: Twice a week.\n(in answer to Ines: How often do you swim?)"


def test_of_a_long_neighbour_the_end_is_read() -> None:
    long = turn("filler " * 400 + "Which colour do you want?", "assistant")
    for text in (context.lexical(ANSWER, [long]), context.embedded(ANSWER, [long])):
        assert "Which colour do you want?" in text
        assert len(text) < context.MAX_NEIGHBOUR_CHARS + 60


@pytest.mark.parametrize(
    ("text", "max_chars", "end"),
    [
        ("short", 10, "short"),
        ("one two three", 5, "three"),
        ("one two three", 7, "three"),
        ("one two three", 6, "three"),
        ("abcdefghij", 4, "ghij"),
    ],
)
def test_the_end_starts_with_a_word(text: str, max_chars: int, end: str) -> None:
    assert context.end_of(text, max_chars).strip() == end


def test_an_erased_turn_touches_itself_and_those_that_read_it() -> None:
    turns = [turn(f"word{number}") for number in range(6)]
    holders = [at for at in range(6) if "word2" in context.lexical(turns[at], turns[:at])]
    assert holders == list(context.affected(2))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        ("!!!", 0.0),
        ("I sold the boat.", 0.0),
        ("Did you sell the boat?", 1.0),
        ('She asked: "Did you sell the boat?"', 1.0),
        ("I sold the boat. Was that wise?", 1 / 3),
        ("是吗？", 1.0),
    ],
)
def test_which_share_of_a_text_asks(text: str, share: float) -> None:
    assert context.question_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("I went to the harbour with my brother.", "Ahoy!"),
        ("Ahoy!", "You'll be an awesome sailor, Ines!"),
        ("We've sold our boat. How are you?", "How are you? Is your boat sold?"),
        ("I\u2019m tired.", "You\u2019re tired."),
    ],
)
def test_who_speaks_of_himself(more: str, less: str) -> None:
    assert 0 < context.first_person(less) < context.first_person(more) < 1


def test_who_speaks_of_nobody_is_in_the_middle() -> None:
    assert context.first_person("The boat is green.") == 0.5
    assert context.first_person("") == 0.5
