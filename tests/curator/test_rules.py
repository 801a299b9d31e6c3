"""Is a pair decided without losing what only one of the texts says?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.evals import decisions
from service.curator.rules import PairAction, PairDecision, decide_pair
from service.language import contrast


@pytest.mark.parametrize(
    ("new", "old"), [("User owns 3 boats", "User owns a boat"), ("User wakes up at 7", "User wakes up at 6")]
)
def test_what_is_kept_is_what_was_said(new: str, old: str) -> None:
    """Not the plain words that both are compared in."""
    assert decide_pair(new, old, 0.9).text == new


def test_scenarios_of_r18_47() -> None:
    assert decide_pair("Prefers morning meetings", "Prefers morning calls", 0.85) == PairDecision(
        PairAction.MERGE, "Prefers morning calls and meetings", "one more value of the same"
    )
    assert decide_pair("Postgres is a database", "Postgres uses pgvector", 0.75).action is PairAction.KEEP_BOTH


@pytest.mark.parametrize(("new", "old"), [("Likes tea", "it is"), ("who are you", "what is it"), ("!!", "??")])
def test_a_text_without_content_words_replaces_nothing_and_is_not_dropped(new: str, old: str) -> None:
    assert decide_pair(new, old, 0.9).action is PairAction.KEEP_BOTH
    assert decide_pair(old, new, 0.9).action is PairAction.KEEP_BOTH
    assert decide_pair(old, old, 0.9).action is PairAction.NONE


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Likes tea", "likes tea."),
        ("She owns a big dog", "She owns a large dog"),
        ("User works as a nurse", "I work as a nurse"),
        ("Has a grey parrot", "Has a grey parrot that talks to Maria"),
    ],
)
def test_none(new: str, old: str) -> None:
    decision = decide_pair(new, old, 0.9)
    assert (decision.action, decision.text) == (PairAction.NONE, None)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        # another figure, date, unit
        ("The stand-up is at 10am", "The stand-up is at 9am"),
        ("The invoice is due on Friday", "The invoice is due on Monday"),
        # a negation, an opposite
        ("Does not eat fish", "Eats fish"),
        ("Hates coffee", "Loves coffee"),
        ("Dark mode is disabled", "Dark mode is enabled"),
        # a newer value of what has one value
        ("I moved to Oslo", "User lives in Bergen"),
        ("Now works for Vestby Shipping", "Works at Halden Motors"),
        ("My favorite color is blue", "My favourite colour is green"),
        ("The project lead is Anna", "The project lead is Bob"),
        ("Eats meat again", "Is vegetarian"),
        # no longer so
        ("User lived in Oslo", "User lives in Oslo"),
        # richer
        ("Has a grey parrot that talks", "Has a grey parrot"),
    ],
)
def test_replace(new: str, old: str) -> None:
    decision = decide_pair(new, old, 0.9)
    assert (decision.action, decision.text) == (PairAction.REPLACE, new)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Anna lives in Oslo", "Ben lives in Oslo"),
        ("Ben's wife likes tea", "Ben likes tea"),
        ("Likes dogs", "Likes hot dogs"),
        ("She likes tea", "He likes tea"),
        ("Ran 6 km on Tuesday", "Ran 5 km on Monday"),
        ("Ben manages Anna", "Anna manages Ben"),
        ("Eats fish", "Eats fish only on Fridays"),
        ("He could swim", "He can swim"),
        ("Likes tea", "Likes jazz"),
        ("Visited Rome", "Visited Paris"),
        ("The cat sleeps", "The server crashed"),
        ("It is not a good idea", "It is not just a good idea but a great one"),
    ],
)
def test_never_dropped_nor_written_over(new: str, old: str) -> None:
    assert decide_pair(new, old, 0.9).action is PairAction.KEEP_BOTH


@pytest.mark.parametrize(
    ("new", "old", "text"),
    [
        ("Speaks Danish", "Speaks Czech", None),
        ("Plays chess with Ida at noon", "Plays poker with Ole at noon", None),
        ("Prefers short walks.", "Prefers short emails.", "Prefers short emails and walks."),
        (
            "Prefers short calm walks",
            "Prefers short calm emails and talks",
            "Prefers short calm emails, talks and walks",
        ),
        ("Loves spicy food at home", "Loves spicy soup at home", "Loves spicy soup and food at home"),
    ],
)
def test_merge(new: str, old: str, text: str | None) -> None:
    decision = decide_pair(new, old, 0.85)
    assert decision.text == text
    assert decision.action is (PairAction.MERGE if text else PairAction.KEEP_BOTH)
    assert decide_pair(new, old, 0.75).action is PairAction.KEEP_BOTH


@given(st.text(max_size=60), st.text(max_size=60))
def test_what_differs_is_never_dropped(new: str, old: str) -> None:
    decision = decide_pair(new, old, 0.9)
    assert (decision.text is None) is (decision.action in (PairAction.NONE, PairAction.KEEP_BOTH))
    if decision.action is PairAction.NONE and decision.reason != "same text":
        assert contrast.differs(new, old) in (None, "name")
        assert not contrast.names_only_in(new, old)


def test_the_report_counts_what_it_is_given(tmp_path: Path) -> None:
    rows = [
        {"a": "Loves tea", "b": "Likes tea", "label": "duplicate"},
        {"a": "Eats fish", "b": "Never eats fish", "label": "contradiction"},
        {"a": "Likes tea", "b": "The bus is late", "label": "different"},
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    text = decisions.report(path)
    assert "contradictions dropped (must be 0)   0" in text
    assert "contradictions that end the old text 2 of 2 (100%)" in text
    assert "duplicates kept as two rows          0 of 2 (0%)" in text
