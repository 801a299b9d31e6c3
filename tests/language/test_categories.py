"""Does a text get few, stable categories that fit?"""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.language import categories
from service.language.taxonomy import TAXONOMY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We switched the billing database from MySQL to Postgres", {"database"}),
        ("The roadmap deadline moved, the sprint backlog is full", {"project_management"}),
        ("Daily stand-up with the team", {"team_workflow", "schedule"}),
        ("My daughter is allergic to peanuts", {"family", "health", "food"}),
        ("Booked a flight and a hotel for the trip", {"travel"}),
        ("Rotate the OAuth token after the breach", {"security"}),
        ("Write commit messages in imperative mood", {"communication"}),
        ("Our puppy chewed the sofa", {"pets", "home"}),
    ],
)
def test_taxonomy(text: str, expected: set[str]) -> None:
    assert expected <= set(categories.name(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My sourdough starter needs feeding", ("sourdough_starter",)),
        ("Bought a telescope", ("telescope",)),
        ("ok", ()),
        ("", ()),
        ("Use [REDACTED:API_KEY] for it", ()),
    ],
)
def test_noun_phrases_where_the_taxonomy_is_silent(text: str, expected: tuple[str, ...]) -> None:
    assert categories.name(text) == expected


def test_most_hits_first_then_first_mention() -> None:
    text = "The dog chewed the invoice, the budget and the loan contract"
    assert categories.name(text)[0] == "finance"
    assert categories.name("a dog and a guitar") == ("pets", "music")
    assert categories.name("a guitar and a dog") == ("music", "pets")


def test_limit() -> None:
    text = "dog guitar football recipe flight hospital database election climate novel"
    assert len(categories.name(text)) == categories.MAX_CATEGORIES
    assert len(categories.name(text, limit=2)) == 2
    assert categories.name(text, limit=0) == ()


def test_the_taxonomy_is_in_snake_case() -> None:
    assert all(re.fullmatch(r"[a-z]+(?:_[a-z]+)*", category) for category in TAXONOMY)


@given(st.text(max_size=150))
def test_names_are_distinct_and_clean(text: str) -> None:
    found = categories.name(text)
    assert len(set(found)) == len(found) <= categories.MAX_CATEGORIES
    assert all(re.fullmatch(r"\w+", category) for category in found)


@pytest.mark.parametrize("text", ["dog " * 5000, "x" * 20_000, "zorb, " * 4000, "the blue zorb " * 2000])
def test_long_texts_stay_cheap(text: str) -> None:
    began = time.perf_counter()
    categories.name(text)
    assert time.perf_counter() - began < 1.0
