"""Is a request told from a question about what was said, and are the present and a time heard in it?"""

from __future__ import annotations

import pytest

from service.language.requests import asks_the_present, asks_when, is_request


@pytest.mark.parametrize(
    "text",
    [
        "Book a table for two.",
        "please find me a dentist",
        "Hey, could you please suggest a film?",
        "What should I wear tomorrow?",
        "Where can we eat near the station?",
        "I'm looking for a new tent.",
        "I need a haircut.",
        "Any tips for the garden?",
        "Which chair would suit me?",
        "Let's plan the summer.",
    ],
)
def test_requests(text: str) -> None:
    assert is_request(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "Which tent did you recommend to me?",
        "Find out when I moved.",
        "What should Ines wear?",
        "Remind me what you suggested I should read.",
        "When did Bram book the hotel?",
        "What have I planned for us?",
        "Bookings of last year",
        "",
    ],
)
def test_questions_are_none(text: str) -> None:
    assert not is_request(text)


@pytest.mark.parametrize(
    ("text", "present"),
    [
        ("What is my current job?", True),
        ("Where do they live now?", True),
        ("How many books have I read so far?", True),
        ("Where did they live?", False),
        ("Who knows the way?", False),
        ("How is the snow?", False),
    ],
)
def test_the_present(text: str, present: bool) -> None:
    assert asks_the_present(text) is present


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("When did Ines sell the boat?", True),
        ("Since when do they live there?", True),
        ("On which day does the course begin?", True),
        ("What year was that?", True),
        ("How long ago did they meet?", True),
        ("What did she say when they met?", False),
        ("Where do they live?", False),
        ("How long is the boat?", False),
    ],
)
def test_a_time(text: str, when: bool) -> None:
    assert asks_when(text) is when
