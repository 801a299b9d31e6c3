"""Does importance rise with stakes and fall with triviality, by the documented formula?"""

from __future__ import annotations

import pytest

from service.domain.kinds import Classification, ClassificationSource, Importance, MemoryType
from service.language import importance


def of(type_: MemoryType) -> Classification:
    return Classification(type_, 0.9, ClassificationSource.EXPLICIT)


@pytest.mark.parametrize(
    ("text", "type_", "level"),
    [
        ("ok", None, 1),
        ("Thanks a lot!", None, 1),
        ("👍", None, 1),
        ("", None, 1),
        ("Fixed typo", MemoryType.INSIGHT, 2),
        ("Changed config", MemoryType.DECISION, 2),
        ("The sofa is green", None, 5),
        ("The sofa is green", MemoryType.CONTEXT, 5),
        ("He goes swimming", MemoryType.HABIT, 5),
        ("She likes the tea", MemoryType.PREFERENCE, 6),
        ("Replies come late", MemoryType.PATTERN, 7),
        ("We take the train", MemoryType.DECISION, 8),
        ("We take the train because it is cheaper", MemoryType.DECISION, 9),
        ("We take the 9 o'clock train because it is cheaper", MemoryType.DECISION, 10),
        ("The client is allergic to nuts", MemoryType.CONTEXT, 8),
        ("We might paint the sofa", None, 4),
        ("A minor change of the sofa, maybe", None, 2),
        ("This is critical: the deadline of the contract", None, 9),
    ],
)
def test_formula(text: str, type_: MemoryType | None, level: int) -> None:
    assert importance.rate(text, of(type_) if type_ else None) == Importance(level / 10, level)


def test_stakes_are_capped_and_the_level_clamped() -> None:
    alarm = "Urgent: production outage, security breach, legal deadline, all because of 3 errors in $9 Acme code"
    assert importance.rate(alarm, of(MemoryType.DECISION)).level == 10
    assert importance.rate("Urgent outage breach deadline diagnosis married", None).level == 5 + 4 + 0


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1.0, "Critical"),
        (0.9, "Critical"),
        (0.89, "Important"),
        (0.7, "Important"),
        (0.69, "Standard"),
        (0.5, "Standard"),
        (0.49, "Minor"),
        (0.3, "Minor"),
        (0.29, "Low"),
        (0.0, "Low"),
    ],
)
def test_band(value: float, name: str) -> None:
    assert importance.band(value) == name


def test_every_level_has_its_band() -> None:
    levels = [importance.band(Importance.of_level(level).value) for level in range(1, 11)]
    assert levels == ["Low"] * 2 + ["Minor"] * 2 + ["Standard"] * 2 + ["Important"] * 2 + ["Critical"] * 2
