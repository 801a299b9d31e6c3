"""Types of memories, the certainty of a type, and importance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class MemoryType(StrEnum):
    """The seven types, case-sensitive."""

    DECISION = "Decision"
    PATTERN = "Pattern"
    PREFERENCE = "Preference"
    STYLE = "Style"
    HABIT = "Habit"
    INSIGHT = "Insight"
    CONTEXT = "Context"


TYPICAL_IMPORTANCE: Mapping[MemoryType, tuple[float, float]] = {
    MemoryType.DECISION: (0.9, 1.0),
    MemoryType.PATTERN: (0.7, 0.9),
    MemoryType.PREFERENCE: (0.6, 0.9),
    MemoryType.STYLE: (0.6, 0.8),
    MemoryType.HABIT: (0.5, 0.7),
    MemoryType.INSIGHT: (0.7, 0.9),
    MemoryType.CONTEXT: (0.5, 0.7),
}
"""A hint to the rating, never a reason to change a caller's value."""


class ClassificationSource(StrEnum):
    """How a type was determined: by the caller, patterns, a model, a guess of the rules, or not at all."""

    EXPLICIT = "explicit"
    REGEX = "regex"
    LLM = "llm"
    RULES = "rules"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Classification:
    """A memory type with the certainty (0..1) of the classification and its source."""

    type: MemoryType
    confidence: float
    source: ClassificationSource


ImportanceBand = Literal["Critical", "Important", "Standard", "Minor", "Low"]


@dataclass(frozen=True, slots=True)
class Importance:
    """`value` 0..1 and `level` 1..10 of the same rating."""

    value: float
    level: int

    @staticmethod
    def of_value(value: float) -> Importance:
        return Importance(value, max(1, round(value * 10)))

    @staticmethod
    def of_level(level: int) -> Importance:
        return Importance(level / 10, level)
