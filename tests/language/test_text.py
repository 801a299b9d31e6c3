"""Categories, importance, relations, sentences and summaries of single texts."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.kinds import Classification, ClassificationSource, Importance, MemoryType
from service.language import entities, importance, kinds, relations, sentences


def test_category_with_most_hits_first_then_first_mention() -> None:
    text = "The dog chewed the invoice, the budget and the loan contract"
    assert kinds.name_categories(text)[0] == "finance"
    assert kinds.name_categories("a dog and a guitar") == ("pets", "music")
    assert kinds.name_categories("a guitar and a dog") == ("music", "pets")


def test_categories_are_limited() -> None:
    text = "dog guitar football recipe flight hospital database election climate novel"
    assert len(kinds.name_categories(text)) == kinds.MAX_CATEGORIES


def test_the_taxonomy_is_in_snake_case() -> None:
    assert all(re.fullmatch(r"[a-z]+(?:_[a-z]+)*", category) for category in kinds.TAXONOMY)


@given(st.text(max_size=150))
def test_categories_are_distinct_and_clean(text: str) -> None:
    found = kinds.name_categories(text)
    assert len(set(found)) == len(found) <= kinds.MAX_CATEGORIES
    assert all(re.fullmatch(r"\w+", category) for category in found)


@pytest.mark.parametrize("text", ["dog " * 5000, "x" * 20_000, "zorb, " * 4000, "the blue zorb " * 2000])
def test_categories_of_long_texts_stay_cheap(text: str) -> None:
    began = time.perf_counter()
    kinds.name_categories(text)
    assert time.perf_counter() - began < 1.0


def of(type_: MemoryType) -> Classification:
    return Classification(type_, 0.9, ClassificationSource.EXPLICIT)


def test_the_level_is_clamped() -> None:
    assert importance.rate("Urgent: production outage, all because of 3 errors", of(MemoryType.DECISION)).level == 10


def test_every_level_has_its_band() -> None:
    levels = [importance.band(Importance.of_level(level).value) for level in range(1, 11)]
    assert levels == ["Low"] * 2 + ["Minor"] * 2 + ["Standard"] * 2 + ["Important"] * 2 + ["Critical"] * 2


@given(st.text(max_size=200))
def test_relations_connect_names_of_the_text(text: str) -> None:
    names = {each.name for each in entities.find(text)}
    assert all({each.source, each.target} <= names for each in relations.find_relations(text, entities.find(text)))


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences.split(text)]


@given(st.text(max_size=200))
def test_sentences_are_ordered_and_lose_nothing_but_blanks(text: str) -> None:
    spans = sentences.split(text)
    assert all(left < right for left, right in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert "".join("".join(pieces(text)).split()) == "".join(text.split())


def test_summary_has_a_default_length() -> None:
    words = "word " * 100
    assert len(sentences.first_sentence(words)) <= 240
    assert sentences.first_sentence(words).endswith("word…")


@given(st.text(max_size=400), st.integers(min_value=1, max_value=60))
def test_summary_is_never_longer(text: str, max_chars: int) -> None:
    assert len(sentences.first_sentence(text, max_chars)) <= max_chars
