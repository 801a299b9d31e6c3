"""The labelled conversations and updates are read as well as when the rules were shipped.

The held-out parts were written after the rules; a change that tunes on their misses makes the figures worthless.
"""

from __future__ import annotations

import pytest

from bench.evals import curator

TURNS = {
    (name, held_out): curator.rows(curator.CORPORA / f"{name}.jsonl", held_out=held_out)
    for name in ("turns", "fresh-turns", "second-turns")
    for held_out in (False, True)
}
UPDATES = {
    (name, held_out): curator.rows(curator.CORPORA / f"{name}.jsonl", held_out=held_out)
    for name in ("updates", "fresh-updates", "second-updates")
    for held_out in (False, True)
}
LABELS = {"same", "refinement", "update", "negation", "unit_or_number_change", "unrelated", "recurring"}


@pytest.mark.parametrize(("turns", "size"), [("turns", 150), ("fresh-turns", 120), ("second-turns", 120)])
def test_the_corpora_are_large_enough(turns: str, size: int) -> None:
    assert len(TURNS[turns, False]) + len(TURNS[turns, True]) >= size
    assert len(TURNS[turns, True]) * 4 >= len(TURNS[turns, False])


@pytest.mark.parametrize(
    ("turns", "held_out", "precision", "recall"),
    [
        ("turns", False, 0.97, 0.95),
        ("turns", True, 0.92, 0.84),
        ("fresh-turns", False, 0.94, 0.83),
        ("fresh-turns", True, 0.88, 0.75),
        ("second-turns", False, 0.96, 0.82),
        ("second-turns", True, 0.83, 0.53),
    ],
)
def test_floors_of_extraction(turns: str, *, held_out: bool, precision: float, recall: float) -> None:
    score = curator.extraction(TURNS[turns, held_out])["all"]
    assert score.precision >= precision
    assert score.recall >= recall


def test_small_talk_and_hostile_texts_leave_nothing_behind() -> None:
    scores = curator.extraction([row for rows in TURNS.values() for row in rows])
    found = {kind: scores[kind].found for kind in ("smalltalk", "injection")}  # figures only: no held-out row is shown
    assert found["injection"] == 0
    assert found["smalltalk"] <= 1  # of a held-out row of the second corpus, whose misses are never read


@pytest.mark.parametrize(("updates", "size"), [("updates", 120), ("fresh-updates", 100), ("second-updates", 80)])
def test_the_updates_have_every_class(updates: str, size: int) -> None:
    parts = [UPDATES[updates, held_out] for held_out in (False, True)]
    assert [{row["label"] for row in part} for part in parts] == [LABELS, LABELS]
    assert sum(map(len, parts)) >= size


@pytest.mark.parametrize(
    ("updates", "held_out", "floor"),
    [
        ("updates", False, 0.91),
        ("updates", True, 0.84),
        ("fresh-updates", False, 0.90),
        ("fresh-updates", True, 0.80),
        ("second-updates", False, 0.80),
        ("second-updates", True, 0.80),
    ],
)
def test_floors_of_updates(updates: str, *, held_out: bool, floor: float) -> None:
    classes, _ = curator.filing(UPDATES[updates, held_out])
    assert classes["all"].recall >= floor


def test_what_is_unrelated_is_never_written_over() -> None:
    filed = [curator.filing(rows)[0]["unrelated"] for rows in UPDATES.values()]
    assert [score.labelled - score.right for score in filed] == [0] * len(filed)  # figures only, as above


def test_the_report_covers_both_parts() -> None:
    report = curator.report()
    assert "extraction, first, held out" in report
    assert "filing, fresh, held out" in report
    assert "filing, second, held out" in report


def test_an_optional_fact_counts_for_nothing() -> None:
    row = {"id": "x", "kind": "x", "turns": ["u: I live in Oslo. I have a cat."], "facts": ["User lives in Oslo"]}
    strict, lenient = (curator.extraction([{**row, "may": may}])["all"] for may in ([], ["User has a cat"]))
    assert (strict.found, strict.right) == (2, 1)
    assert (lenient.found, lenient.right) == (1, 1)
