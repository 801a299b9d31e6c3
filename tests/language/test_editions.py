"""Which of two texts is a later edition of the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.language.editions import edition, is_later

CURRENT = Path(__file__).parents[1] / "corpora" / "current.jsonl"
LEAST_TOLD = 28


def later(one: str, other: str) -> bool:
    first, second = edition(one), edition(other)
    return first is not None and second is not None and is_later(first, second)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Manual v1.10\nPress twice.", "Manual v1.9\nPress once."),
        ("The manual, 3rd edition: press twice.", "The manual, 2nd edition: press once."),
        ("As of June 2024 the Pro plan costs 25.", "As of March 2024 the Pro plan costs 20."),
        ("Tariff from 1 May 2023: 8.20", "Tariff from 2023-04-30: 7.50"),
        ("RFC 104. Replaces RFC 87 and RFC 88.", "RFC 088: flags"),
        ("POL-240: cards", "POL-203: transfers. Superseded by POL-240."),
        ("HR-2023-11. HR-2019-04 is hereby replaced.", "HR-2019-4: overtime"),
    ],
)
def test_a_later_edition_is_known_by_what_it_replaces_its_version_or_its_date(new: str, old: str) -> None:
    assert later(new, old)
    assert not later(old, new)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Manual of the oven, version 3: heat.", "Guide to the bicycle, version 2: ride."),
        ("Manual v2 - chapter 1", "Manual v2 - chapter 2"),
        ("In 2023 we sailed to Norway.", "In 2022 my sister married a baker."),
        ("Supersedes ADR-013.", "ADR-012: queues"),
        ("The day ticket costs 8.20.", "The day ticket costs 7.50."),
        ("I moved to Bergen.", "I live in Oslo."),
    ],
)
def test_other_texts_are_no_editions_of_each_other(one: str, other: str) -> None:
    assert not later(one, other)
    assert not later(other, one)


def test_of_documents_that_tell_it_the_later_one_is_known() -> None:
    rows = [json.loads(line) for line in CURRENT.read_text(encoding="utf-8").splitlines()]
    assert sum(later(row["new"], row["old"]) for row in rows) >= LEAST_TOLD
    assert not any(later(row["old"], row["new"]) for row in rows)
