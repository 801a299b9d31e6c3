"""Memory types by the published patterns, and by the rules after them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bench.evals import memtype
from bench.evals.scoring import read_rows
from service.domain.kinds import Classification, ClassificationSource, MemoryType
from service.language import kinds

EXAMPLES = Path(__file__).parents[1] / "corpora" / "text" / "kinds.jsonl"


def test_every_type_has_its_published_patterns() -> None:
    assert [len(patterns) for patterns in kinds.PATTERNS.values()] == [4, 5, 4, 3, 5, 4, 4]
    assert list(kinds.PATTERNS) == list(MemoryType)


def test_explicit_and_unclassified() -> None:
    assert kinds.explicit(MemoryType.STYLE) == Classification(MemoryType.STYLE, 0.9, ClassificationSource.EXPLICIT)
    assert kinds.explicit(MemoryType.STYLE, 0.0).confidence == 0.0
    unclassified = (kinds.UNCLASSIFIED, kinds.UNCLASSIFIED_FAILED)
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
        "\n".join(json.dumps({"text": row["text"], "type": row["type_"]}) for row in read_rows(EXAMPLES)),
        encoding="utf-8",
    )
    text = memtype.report(path)
    assert "accuracy 5/7" in text
    assert "accuracy 7/7" in text
