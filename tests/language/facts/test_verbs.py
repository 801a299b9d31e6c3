"""Are verbs inflected and recognised?"""

from __future__ import annotations

import pytest

from service.language.facts import verbs


@pytest.mark.parametrize(
    ("base", "third", "past"),
    [
        ("live", "lives", "lived"),
        ("go", "goes", "went"),
        ("study", "studies", "studied"),
        ("play", "plays", "played"),
        ("watch", "watches", "watched"),
        ("have", "has", "had"),
        ("be", "is", "was"),
        ("plan", "plans", "planned"),
        ("grok", "groks", "groked"),
    ],
)
def test_inflection(base: str, third: str, past: str) -> None:
    assert (verbs.third(base), verbs.past(base)) == (third, past)


@pytest.mark.parametrize(
    ("word", "lemma", "past"),
    [("moved", "move", True), ("lives", "live", False), ("ate", "eat", True), ("need", "need", False)],
)
def test_recognition(word: str, lemma: str, past: bool) -> None:
    assert (verbs.lemma(word), verbs.is_past(word)) == (lemma, past)


def test_unlisted_verbs_lose_their_ending() -> None:
    assert [verbs.lemma(word) for word in ("grokking", "zorps", "florped")] == ["grokk", "zorp", "florp"]
