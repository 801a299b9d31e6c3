"""The labelled conversations and updates are read as well as when the rules were shipped.

The held-out parts were written after the rules; a change that tunes on their misses makes the figures worthless.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from bench.evals import curator
from service.domain.text import CleanText
from service.language import talk

SAID_AT = datetime(2026, 11, 22, tzinfo=UTC)

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


def kept(kind: str) -> list[str]:
    """What is kept of all conversations of a kind."""
    roles = {"u": ("user", talk.USER), "a": ("assistant", talk.ASSISTANT), "s": ("system", "System")}
    found = []
    for row in (row for part in TURNS.values() for row in part if row["kind"] == kind):
        told = [(*roles[turn[0]], CleanText(turn[3:])) for turn in row["turns"]]
        said = [talk.Utterance(role, text, speaker, SAID_AT) for role, speaker, text in told]
        found += [quote.text for quote in talk.read(said, [], ZoneInfo("UTC"))]
    return found


def test_small_talk_and_hostile_texts_leave_little_behind() -> None:
    assert len(kept("injection")) <= 2
    assert len(kept("smalltalk")) <= 7


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
