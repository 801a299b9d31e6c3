"""A pair of texts is decided without losing what only one of them says."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bench.evals import decisions
from service.curator.rules import PairAction, PairDecision, decide_pair
from service.language import contrast


def test_scenarios_of_two_preferences() -> None:
    assert decide_pair("Prefers morning meetings", "Prefers morning calls", 0.85) == PairDecision(
        PairAction.MERGE, "Prefers morning calls and meetings", "one more value of the same"
    )
    assert decide_pair("Postgres is a database", "Postgres uses pgvector", 0.75).action is PairAction.KEEP_BOTH


@given(st.text(max_size=60), st.text(max_size=60))
def test_what_differs_is_never_dropped(new: str, old: str) -> None:
    decision = decide_pair(new, old, 0.9)
    assert (decision.text is None) is (decision.action in (PairAction.NONE, PairAction.KEEP_BOTH))
    if decision.action is PairAction.NONE and decision.reason != "same text":
        assert contrast.differs(new, old) in (None, "name")
        assert not contrast.names_only_in(new, old)


def test_the_report_counts_what_it_is_given(tmp_path: Path) -> None:
    rows = [
        {"a": "Loves tea", "b": "Likes tea", "label": "duplicate"},
        {"a": "Eats fish", "b": "Never eats fish", "label": "contradiction"},
        {"a": "Likes tea", "b": "The bus is late", "label": "different"},
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    text = decisions.report(path)
    assert "contradictions dropped (must be 0)   0" in text
    assert "contradictions that end the old text 2 of 2 (100%)" in text
    assert "duplicates kept as two rows          0 of 2 (0%)" in text
