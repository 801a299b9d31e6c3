"""Do the rules still read the labelled conversations as well as when they were shipped?

The held-out part was written after the rules; a change that tunes on its misses makes its figure worthless.
"""

from __future__ import annotations

import pytest

from bench.evals import curator

CORPUS = {
    (turns, held_out): curator.rows(curator.CORPORA / f"{turns}.jsonl", held_out=held_out)
    for turns in ("turns", "fresh-turns", "second-turns")
    for held_out in (False, True)
}
EVERY_ROW = [row for rows in CORPUS.values() for row in rows]


@pytest.mark.parametrize(("turns", "size"), [("turns", 150), ("fresh-turns", 120), ("second-turns", 120)])
def test_the_corpora_are_large_enough(turns: str, size: int) -> None:
    assert len(CORPUS[turns, False]) + len(CORPUS[turns, True]) >= size
    assert len(CORPUS[turns, True]) * 4 >= len(CORPUS[turns, False])


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
def test_floors(turns: str, *, held_out: bool, precision: float, recall: float) -> None:
    score = curator.extraction(CORPUS[turns, held_out])["all"]
    assert score.precision >= precision
    assert score.recall >= recall


def test_talk_and_hostile_texts_leave_nothing_behind() -> None:
    scores = curator.extraction(EVERY_ROW)
    found = {kind: scores[kind].found for kind in ("smalltalk", "injection")}  # figures only: no held-out row is shown
    assert found["injection"] == 0
    assert found["smalltalk"] <= 1  # one of a held-out row of the second corpus, whose misses nobody looks at


def test_the_report_tells_both_parts() -> None:
    report = curator.report()
    assert "extraction, first, held out" in report
    assert "filing, fresh, held out" in report
    assert "filing, second, held out" in report


def test_a_fact_that_may_be_told_counts_for_nothing() -> None:
    row = {"id": "x", "kind": "x", "turns": ["u: I live in Oslo. I have a cat."], "facts": ["User lives in Oslo"]}
    strict, lenient = (curator.extraction([{**row, "may": may}])["all"] for may in ([], ["User has a cat"]))
    assert (strict.found, strict.right) == (2, 1)
    assert (lenient.found, lenient.right) == (1, 1)
