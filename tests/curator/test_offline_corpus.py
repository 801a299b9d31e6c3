"""Does the offline decision still file the labelled updates as well as when it was shipped?"""

from __future__ import annotations

import pytest

from bench.evals import curator

ROWS = {held_out: curator.rows(curator.CORPORA / "updates.jsonl", held_out=held_out) for held_out in (False, True)}
LABELS = {"same", "refinement", "update", "negation", "unit_or_number_change", "unrelated", "recurring"}


def test_the_corpus_has_every_class() -> None:
    for held_out in (False, True):
        assert {row["label"] for row in ROWS[held_out]} == LABELS
    assert sum(map(len, ROWS.values())) >= 120


@pytest.mark.parametrize(("held_out", "floor"), [(False, 0.97), (True, 0.92)])
def test_floors(held_out: bool, floor: float) -> None:
    classes, _ = curator.filing(ROWS[held_out])
    assert classes["all"].recall >= floor


def test_what_is_unrelated_is_never_written_over() -> None:
    for rows in ROWS.values():
        classes, _ = curator.filing(rows)
        assert classes["unrelated"].recall == 1.0
