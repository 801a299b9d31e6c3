"""Does the guard notice what vectors do not?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.language import contrast


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("meeting at 3pm", "meeting at 4pm", "number"),
        ("three dogs", "four dogs", "number"),
        ("version 1.2 is out", "version 1.3 is out", "number"),
        ("-5 degrees", "5 degrees", "number"),
        ("the 1st of July", "the 2nd of July", "number"),
        ("call me at 3am", "call me at 3pm", "time"),
        ("due on Friday", "due on Monday", "time"),
        ("we leave in May", "we leave in June", "time"),
        ("prefers mornings", "prefers evenings", "time"),
        ("runs 5 km", "runs 5 miles", "unit"),
        ("costs $5", "costs €5", "unit"),
        ("takes 30 days", "takes 30 weeks", "unit"),
        ("he eats meat", "he doesn't eat meat", "negation"),
        ("tea with milk", "tea without milk", "negation"),
        ("smokes", "no longer smokes", "negation"),
        ("Anna likes tea", "Ben likes tea", "name"),
        ("we use Redis", "we use Kafka", "name"),
        ("we met Anna there", "we met there", "name"),
        ("lives in a flat", "lived in a flat", "tense"),
        ("she is a nurse", "she was a nurse", "tense"),
        ("the cat chases the dog", "the dog chases the cat", "order"),
        ("prefers tea over coffee", "prefers coffee over tea", "order"),
    ],
)
def test_differs(a: str, b: str, reason: str) -> None:
    assert contrast.differs(a, b) == reason
    assert contrast.differs(b, a) == reason


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("three dogs", "3 dogs"),
        ("I've 1,000 books", "I've 1000 books"),
        ("due on Fridays", "due on Friday"),
        ("runs 5 km", "runs 5 kilometres"),
        ("we use postgres", "We use Postgres"),
        ("I am fine", "I'm fine"),
        ("She runs in the park", "In the park she runs"),
        ("prices may fall", "prices might fall"),
        ("Anna's car", "the car of Anna"),
        ("", ""),
    ],
)
def test_does_not_differ(a: str, b: str) -> None:
    assert contrast.differs(a, b) is None


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("loves coffee", "hates coffee", False),
        ("loves the coffee", "Loved coffee!", True),
        ("big dog", "large dog", False),
        ("turn it on", "turn it off", False),
        ("", "", True),
    ],
)
def test_same_content_words(a: str, b: str, same: bool) -> None:
    assert contrast.same_content_words(a, b) is same


@given(st.text(max_size=80), st.text(max_size=80))
def test_symmetric_and_reflexive(a: str, b: str) -> None:
    assert contrast.differs(a, b) == contrast.differs(b, a)
    assert contrast.differs(a, a) is None
    assert contrast.same_content_words(a, a)
