"""What a question asks for, and whether a text holds it."""

from __future__ import annotations

import pytest

from service.language import questions
from service.language.lexemes import lexemes


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who is the composer?", "name"),
        ("Whose turn is it?", "name"),
        ("What is the name of the vet?", "name"),
        ("What is the cat called?", "name"),
        ("How much did the shed cost?", "figure"),
        ("How old is Freya?", "figure"),
        ("What is the rent?", "figure"),
        ("Why did he leave?", None),
        ("Where does she live?", None),
        ("How many hives are there?", None),
    ],
)
def test_what_a_question_asks_for(question: str, kind: questions.Kind | None) -> None:
    assert questions.kind(question) == kind


@pytest.mark.parametrize(
    ("question", "text", "holds"),
    [
        ("Who is the composer?", "Ines wrote the forest theme.", True),
        ("Who is the composer?", "The composer delivered the forest theme on Tuesday.", False),
        ("Who is Bram's boss?", "Bram: I'm off to work, and I've told my boss.", False),
        ("What is the cat called?", "We named our cat Miso.", True),
        ("How much did the shed cost?", "I paid two hundred for the shed.", True),
        ("How much did the shed cost?", "I paid 120 for the shed.", True),
        ("How much did the shed cost?", "The shed was cheap.", False),
    ],
)
def test_whether_a_text_holds_it(question: str, text: str, *, holds: bool) -> None:
    kind = questions.kind(question)
    assert kind is not None
    assert questions.holds(kind, text, frozenset(lexemes(question))) is holds
