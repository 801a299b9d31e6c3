"""The shipped calibration: 0.98, 0.70 and 0.5 mean what they should, on sentences of our own.

No knot is computed from them, but several were in sight when its quantile was chosen: they guard, they do not prove."""

from __future__ import annotations

import numpy as np
import pytest

from service.providers import model_files
from service.providers.local import CALIBRATION, Encoder
from service.providers.protocols import Vector


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(model_files.load(None))


def vector(encoder: Encoder, text: str, *, query: bool = False) -> Vector:
    return encoder.run(encoder.cut(text, query=query)[0][0])


def compared(encoder: Encoder, left: str, right: str) -> float:
    return CALIBRATION.documents(float(vector(encoder, left) @ vector(encoder, right)))


def asked(encoder: Encoder, question: str, text: str) -> float:
    return CALIBRATION.queries(float(vector(encoder, question, query=True) @ vector(encoder, text)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("User prefers tea over coffee in the morning", "user prefers tea over coffee in the morning"),
        ("The deployment runs every Friday at 5pm", "The deployment runs every Friday at 5pm."),
        ("Alice works at Acme as a data engineer", "  Alice works  at Acme as a data engineer! "),
    ],
)
def test_the_same_but_for_case_or_punctuation_is_a_duplicate(encoder: Encoder, left: str, right: str) -> None:
    assert compared(encoder, left, right) >= 0.98


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("User loves coffee", "User hates coffee"),
        ("User is vegetarian", "User started eating meat again"),
        ("User lives in Berlin", "User's home is Berlin"),
        ("User likes Python", "User is fond of Python"),
        ("Alice works at Acme", "Alice is employed by Acme"),
        ("Alice works at Acme", "Alice left Acme and joined Globex"),
        ("Deploy on Fridays is forbidden", "Never deploy on a Friday"),
        ("The server crashed because of a memory leak", "A memory leak took the server down"),
        ("User enjoys hiking on weekends", "User goes hiking most Saturdays"),
        ("meeting at 3pm", "meeting at 4pm"),
    ],
)
def test_what_may_be_the_same_or_its_opposite_gets_a_decision(encoder: Encoder, left: str, right: str) -> None:
    assert 0.70 <= compared(encoder, left, right) < 0.98


def test_texts_by_chance_lie_well_below_one_half(encoder: Encoder) -> None:
    texts = (
        "The rate limit is 100 requests per minute",
        "Alice is on holiday until Monday",
        "User's favourite colour is green",
        "The wedding cake has three layers",
        "Budget for Q3 is 40,000 euros",
        "The moon landing was in 1969",
        "User is allergic to peanuts",
        "Fix the login bug before the release",
    )
    vectors = np.array([vector(encoder, text) for text in texts])
    cosines = (vectors @ vectors.T)[np.triu_indices(len(texts), 1)]
    similarities = [CALIBRATION.documents(float(cosine)) for cosine in cosines]
    assert float(np.median(similarities)) < 0.3
    assert max(similarities) < 0.6


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("programming languages", "User likes Python"),
        ("Where does the user work?", "User is employed at a bakery in Leeds"),
        ("database", "We chose PostgreSQL over MongoDB"),
        ("dentist", "Appointment with Dr. Meyer on Friday to check a tooth"),
        ("what food does the user eat", "User is vegetarian"),
        ("where does the user live", "User moved to Lisbon in March"),
    ],
)
def test_a_question_and_what_belongs_to_it_lie_above_one_half(encoder: Encoder, question: str, text: str) -> None:
    assert asked(encoder, question, text) > 0.5


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("weather in Oslo", "User likes Python"),
        ("best pizza recipe", "User drives a red Honda"),
        ("football scores", "We chose PostgreSQL over MongoDB"),
        ("quantum physics", "User likes Python"),
    ],
)
def test_a_question_and_a_text_of_something_else_lie_below(encoder: Encoder, question: str, text: str) -> None:
    assert asked(encoder, question, text) < 0.3
