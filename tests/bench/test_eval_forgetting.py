"""The client of the forgetting report: what it deletes for a query, and when a case passes."""

from __future__ import annotations

import pytest

from bench.evals.forgetting import CaseResult, key_words, passes, shown, to_delete


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("ticket 4711-A", {"4711-a"}),
        ('"ann"@example.org', {'ann"@example.org'}),
        ("everything about Ann's garden", {"ann"}),
        ("the spare key", {"spare"}),
    ],
)
def test_key_words_are_identifiers_else_names_else_long_words(query: str, words: set[str]) -> None:
    assert key_words(query) == words


def test_only_the_hits_with_most_key_words_are_deleted() -> None:
    texts = ["Ann Berg plants roses.", "Tom Berg plants beans.", "It rained.", "Ann Berg's gate is green."]
    assert to_delete("Ann Berg", texts) == [0, 3]
    assert to_delete("Ann Berg", texts[2:3]) == []


def test_a_case_passes_when_all_that_must_be_is_there_and_nothing_that_must_not() -> None:
    case = {"must_contain": ["green gate"], "must_not_contain": ["red gate"]}
    assert passes(case, ["A Green gate.", "Rain."])
    assert not passes(case, ["A green gate, once a red gate."])
    assert not passes(case, ["Rain."])


def test_passes_are_counted_by_form_and_category() -> None:
    results = [
        CaseResult("content", "a", by_search=True, by_recall=False),
        CaseResult("messages", "a", by_search=True, by_recall=True),
        CaseResult("content", "b", by_search=True, by_recall=False),
        CaseResult("messages", "b", by_search=False, by_recall=False),
    ]
    last = shown(results).splitlines()[-1]
    assert last.split() == ["all", "2", "2", "0", "1", "1"]
