"""Does a question become the statement that would answer it?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.language.statement import statement

SAID = [
    ("Where did Ruth go in May?", "Ruth go in May"),
    ("What does Ruth drink in the morning?", "Ruth drink in the morning"),
    ("What is Otto's favourite book?", "Otto's favourite book is"),
    ("Where is the boat kept?", "The boat is kept"),
    ("When was Otto born?", "Otto was born"),
    ("Who painted the fence?", "Somebody painted the fence"),
    ("Has Ruth been to Oslo?", "Ruth has been to Oslo"),
    ("How many dogs does Otto have?", "Otto have dogs"),
    ("In which month did Otto move?", "Otto move month"),
    ("What\u2019s her job?", "Her job is"),
    ("Can you remind me what I said about tea?", "I said about tea"),
    ("what do I like", "I like"),
]


@pytest.mark.parametrize(("question", "said"), SAID)
def test_a_question_as_a_statement(question: str, said: str) -> None:
    assert statement(question) == said


@pytest.mark.parametrize("text", ["", "?", "tea", "I like tea.", "Ruth is here", "\u4f60\u597d\u5417\uff1f", "Really?"])
def test_what_no_rule_fits(text: str) -> None:
    assert statement(text) is None


@given(st.text(max_size=300))
def test_nothing_breaks_it(text: str) -> None:
    assert statement(text) != ""
