"""Does a text get the type that the published table, and after it the rules, give it?"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bench.evals import memtype
from service.domain.kinds import Classification, ClassificationSource, MemoryType
from service.language import kinds

TAXONOMY = [  # R18.46
    ("Chose PostgreSQL over MongoDB for ACID compliance", MemoryType.DECISION, ClassificationSource.REGEX),
    ("Usually write integration tests before deploying", MemoryType.PATTERN, ClassificationSource.REGEX),
    ("Prefer async/await over callbacks for clarity", MemoryType.PREFERENCE, ClassificationSource.REGEX),
    ("Write commit messages in imperative mood", MemoryType.STYLE, ClassificationSource.RULES),
    ("Run pytest every morning before starting work", MemoryType.HABIT, ClassificationSource.RULES),
    ("Realized embedding batching reduces costs by 40%", MemoryType.INSIGHT, ClassificationSource.REGEX),
    ("During database migration sprint in Q3 2024", MemoryType.CONTEXT, ClassificationSource.REGEX),
]


@pytest.mark.parametrize(("text", "type_", "source"), TAXONOMY)
def test_the_example_of_each_type(text: str, type_: MemoryType, source: ClassificationSource) -> None:
    kind = kinds.classify(text) or kinds.guess(text)
    assert kind is not None
    assert (kind.type, kind.source) == (type_, source)


@pytest.mark.parametrize(
    ("text", "type_", "confidence"),
    [
        ("We decided to wait", MemoryType.DECISION, 0.6),
        ("CHOSE Redis OVER Kafka", MemoryType.DECISION, 0.6),
        ("She often naps and typically reads", MemoryType.PATTERN, 0.7),
        ("usually, typically, often", MemoryType.PATTERN, 0.8),
        ("usually typically tend to often", MemoryType.PATTERN, 0.9),
        ("usually typically tend to often consistently", MemoryType.PATTERN, 0.95),
        ("I like tea better", MemoryType.PREFERENCE, 0.6),
        ("wrote it in a plain style", MemoryType.STYLE, 0.6),
        ("daily routine", MemoryType.HABIT, 0.7),
        # ties: the order of the table
        ("usually daily", MemoryType.PATTERN, 0.6),
        ("when she discovered it", MemoryType.INSIGHT, 0.6),
        ("decided to go when ready", MemoryType.DECISION, 0.6),
        # most matches beat the order
        ("usually runs daily, a weekly routine", MemoryType.HABIT, 0.8),
        # the row has no word boundaries
        ("softened butter", MemoryType.PATTERN, 0.6),
    ],
)
def test_the_table(text: str, type_: MemoryType, confidence: float) -> None:
    """R4.19"""
    assert kinds.classify(text) == Classification(type_, confidence, ClassificationSource.REGEX)


@pytest.mark.parametrize(
    "text", ["", "Bob has a cat", "chose very wisely over", "better than I like", "I like\nit better", "style in wrote"]
)
def test_the_table_matches_nothing(text: str) -> None:
    assert kinds.classify(text) is None


def test_every_pattern_of_the_row_stands() -> None:
    """R4.18"""
    assert [len(patterns) for patterns in kinds.PATTERNS.values()] == [4, 5, 4, 3, 5, 4, 4]
    assert list(kinds.PATTERNS) == list(MemoryType)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("Adopted trunk-based development for the mobile team", MemoryType.DECISION),
        ("We migrated the billing jobs from cron to a queue", MemoryType.DECISION),
        ("Maria loves hiking in the Dolomites", MemoryType.PREFERENCE),
        ("Never push straight to main", MemoryType.PREFERENCE),
        ("Answer in short bullet points without emojis", MemoryType.STYLE),
        ("Goes swimming on Tuesdays", MemoryType.HABIT),
        ("Waters the plants twice a week", MemoryType.HABIT),
        ("The root cause was a missing index", MemoryType.INSIGHT),
        ("Fixed the login loop. The cookie lacked its path.", MemoryType.INSIGHT),
        ("Retries keep failing again and again on Fridays", MemoryType.PATTERN),
    ],
)
def test_guess(text: str, type_: MemoryType) -> None:
    kind = kinds.guess(text)
    assert kind is not None
    assert (kind.type, kind.source) == (type_, ClassificationSource.RULES)
    assert 0.5 <= kind.confidence <= 0.7


@pytest.mark.parametrize("text", ["", "The office has four floors", "Bob is at the dentist"])
def test_guess_leaves_circumstances_alone(text: str) -> None:
    assert kinds.guess(text) is None


def test_explicit_and_unclassified() -> None:
    assert kinds.explicit(MemoryType.STYLE) == Classification(MemoryType.STYLE, 0.9, ClassificationSource.EXPLICIT)
    assert kinds.explicit(MemoryType.STYLE, 0.0).confidence == 0.0
    unclassified = (kinds.UNCLASSIFIED_UNASKED, kinds.UNCLASSIFIED_FAILED)
    assert [(kind.type, kind.source) for kind in unclassified] == [
        (MemoryType.CONTEXT, ClassificationSource.DEFAULT)
    ] * 2
    assert [kind.confidence for kind in unclassified] == [0.5, 0.3]


@pytest.mark.parametrize(
    "text", ["wrote in " * 1500, "like " * 3000, "chose " * 3000, "each single " * 1500, "fixed " * 2000]
)
def test_hostile_texts_stay_cheap(text: str) -> None:
    began = time.perf_counter()
    kinds.classify(text)
    kinds.guess(text)
    assert time.perf_counter() - began < 1.0


def test_the_report_counts_both_classifiers(tmp_path: Path) -> None:
    path = tmp_path / "types.jsonl"
    path.write_text(
        "\n".join(json.dumps({"text": text, "type": type_}) for text, type_, _ in TAXONOMY), encoding="utf-8"
    )
    text = memtype.report(path)
    assert "accuracy 5/7" in text
    assert "accuracy 7/7" in text
