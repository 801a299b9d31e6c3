"""The PII detector: recall, precision, and texts touched by mistake.

A gold span is *covered* when every character of it lies in findings, of whatever label: then nothing of it is stored.
It is *labelled* when findings of the gold label alone cover it. Recall counts labelled spans, the stricter figure, and
is gated over EMAIL, PHONE, SSN, CREDIT_CARD, API_KEY, IBAN and IP together and one by one; PASSWORD is shown.
Precision is per finding: it touches a gold span of any label (positives only; unlabelled data makes it a lower bound).

Rows: {"kind": "positive" | "negative" | "hard_negative", "text": ..., "spans": [{"start", "end", "label"}]}.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.evals.scoring import read_rows
from service.domain.errors import PiiRejected
from service.redaction import detection

GATED = ("EMAIL", "PHONE", "SSN", "CREDIT_CARD", "API_KEY", "IBAN", "IP")
SHOWN = (*GATED, "PASSWORD")


def report(path: Path) -> str:
    """Recall per label and overall, texts wrongly touched, precision and time, as lines of text."""
    rows = read_rows(path)
    began_s = time.process_time()
    found = [detection.find(row["text"]) for row in rows]
    micros = (time.process_time() - began_s) / max(len(rows), 1) * 1e6
    lines = _recall_lines(rows, found)
    for kind in ("negative", "hard_negative"):
        lines.append(_touched_line(rows, found, kind))
    lines.append(_precision_line(rows, found))
    lines.append(
        f"time          {micros:.0f} us CPU per text, {sum(len(row['text']) for row in rows) / len(rows):.0f} chars"
    )
    return "\n".join(lines)


def _recall_lines(rows: list[dict[str, Any]], found: list[tuple[detection.Finding, ...]]) -> list[str]:
    total, covered, labelled = Counter[str](), Counter[str](), Counter[str]()
    for row, findings in zip(rows, found, strict=True):
        for span in row["spans"]:
            label = span["label"]
            total[label] += 1
            covered[label] += _covered(span, list(findings))
            labelled[label] += _covered(span, [item for item in findings if item.label == label])
    lines = ["label         spans  covered  labelled"]
    lines += [_recall_line(label, total[label], covered[label], labelled[label]) for label in SHOWN if total[label]]
    sums = [sum(counts[label] for label in GATED) for counts in (total, covered, labelled)]
    return [*lines, _recall_line("gated", *sums)]


def _recall_line(label: str, total: int, covered: int, labelled: int) -> str:
    return f"{label:12} {total:6}  {covered / total:7.3f}  {labelled / total:8.3f}"


def _covered(span: dict[str, Any], findings: list[detection.Finding]) -> bool:
    position = span["start"]
    for item in findings:
        if item.start <= position < item.end:
            position = item.end
    return bool(position >= span["end"])


def _touched_line(rows: list[dict[str, Any]], found: list[tuple[detection.Finding, ...]], kind: str) -> str:
    pairs = [(row, findings) for row, findings in zip(rows, found, strict=True) if row["kind"] == kind]
    touched = sum(_is_touched(row["text"], findings) for row, findings in pairs)
    return f"{kind:13} {touched} of {len(pairs)} touched"


def _is_touched(text: str, findings: tuple[detection.Finding, ...]) -> bool:
    """True when something would be replaced, or the text rejected."""
    if findings:
        return True
    try:
        detection.redact(text)
    except PiiRejected:
        return True
    return False


def _precision_line(rows: list[dict[str, Any]], found: list[tuple[detection.Finding, ...]]) -> str:
    right = wrong = 0
    for row, findings in zip(rows, found, strict=True):
        for item in findings if row["kind"] == "positive" else ():
            hit = any(span["start"] < item.end and item.start < span["end"] for span in row["spans"])
            right, wrong = right + hit, wrong + (not hit)
    return f"precision     {right / max(right + wrong, 1):.3f} of {right + wrong} findings in positives"


def main() -> None:
    """Prints the report for the file given."""
    parser = argparse.ArgumentParser(description="Measure the detector of secrets and personal data.")
    parser.add_argument("path", type=Path)
    print(report(parser.parse_args().path))


if __name__ == "__main__":
    main()
