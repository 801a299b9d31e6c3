"""Does the measurement count what it says?"""

from __future__ import annotations

import json
from pathlib import Path

from bench.evals import pii as eval_pii

ROWS = [
    {"kind": "positive", "text": "mail a@b.org", "spans": [{"start": 5, "end": 12, "label": "EMAIL"}]},
    {"kind": "positive", "text": "mail nobody", "spans": [{"start": 5, "end": 11, "label": "EMAIL"}]},
    {"kind": "positive", "text": "at 10.0.0.1", "spans": [{"start": 3, "end": 11, "label": "PHONE"}]},
    {"kind": "negative", "text": "my password", "spans": []},
    {"kind": "negative", "text": "plain prose", "spans": []},
    {"kind": "hard_negative", "text": "see c@d.org", "spans": []},
]


def test_report_counts_covered_labelled_and_touched(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    lines = [line.split() for line in eval_pii.report(path).splitlines()]
    assert ["EMAIL", "2", "0.500", "0.500"] in lines
    assert ["PHONE", "1", "1.000", "0.000"] in lines
    assert ["gated", "3", "0.667", "0.333"] in lines
    assert ["negative", "1", "of", "2", "touched"] in lines
    assert ["hard_negative", "1", "of", "1", "touched"] in lines
    assert ["precision", "1.000", "of", "2", "findings", "in", "positives"] in lines
