"""Do the rules still read the labelled conversations as well as when they were shipped?

The held-out part was written after the rules; a change that tunes on its misses makes its figure worthless.
"""

from __future__ import annotations

import pytest

from bench.evals import curator

TUNED = curator.rows(curator.CORPORA / "turns.jsonl", held_out=False)
HELD_OUT = curator.rows(curator.CORPORA / "turns.jsonl", held_out=True)


def test_the_corpus_is_large_enough() -> None:
    assert len(TUNED) + len(HELD_OUT) >= 150
    assert len(HELD_OUT) * 4 >= len(TUNED)


@pytest.mark.parametrize(("part", "precision", "recall"), [("tuned", 0.97, 0.95), ("held out", 0.92, 0.84)])
def test_floors(part: str, precision: float, recall: float) -> None:
    score = curator.extraction(TUNED if part == "tuned" else HELD_OUT)["all"]
    assert score.precision >= precision
    assert score.recall >= recall


def test_talk_and_hostile_texts_leave_nothing_behind() -> None:
    scores = curator.extraction(TUNED + HELD_OUT)
    assert scores["smalltalk"].found == 0
    assert scores["injection"].found == 0


def test_the_report_tells_both_parts() -> None:
    report = curator.report()
    assert "extraction, held out" in report
    assert "filing, held out" in report
