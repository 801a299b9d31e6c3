"""Does the offline decision still file the labelled updates as well as when it was shipped?"""

from __future__ import annotations

import pytest

from bench.evals import curator

ROWS = {
    (updates, held_out): curator.rows(curator.CORPORA / f"{updates}.jsonl", held_out=held_out)
    for updates in ("updates", "fresh-updates", "second-updates")
    for held_out in (False, True)
}
LABELS = {"same", "refinement", "update", "negation", "unit_or_number_change", "unrelated", "recurring"}


@pytest.mark.parametrize(("updates", "size"), [("updates", 120), ("fresh-updates", 100), ("second-updates", 80)])
def test_the_corpora_have_every_class(updates: str, size: int) -> None:
    parts = [ROWS[updates, held_out] for held_out in (False, True)]
    assert [{row["label"] for row in part} for part in parts] == [LABELS, LABELS]
    assert sum(map(len, parts)) >= size


@pytest.mark.parametrize(
    ("updates", "held_out", "floor"),
    [
        ("updates", False, 0.97),
        ("updates", True, 0.92),
        ("fresh-updates", False, 0.92),
        ("fresh-updates", True, 0.80),
        ("second-updates", False, 0.92),
        ("second-updates", True, 0.84),
    ],
)
def test_floors(updates: str, *, held_out: bool, floor: float) -> None:
    classes, _ = curator.filing(ROWS[updates, held_out])
    assert classes["all"].recall >= floor


def test_what_is_unrelated_is_never_written_over() -> None:
    filed = [curator.filing(rows)[0]["unrelated"] for rows in ROWS.values()]
    assert [score.labelled - score.right for score in filed] == [0] * len(
        filed
    )  # figures only: no held-out row is shown
