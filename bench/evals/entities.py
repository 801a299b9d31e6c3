"""The entity finder: precision, recall and types on labelled sentences.

A mention counts as found when the span is exact. Type accuracy is over the found ones. Part "b" of the
corpus was written after the rules and never tuned on.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.evals.scoring import Score, read_rows
from service.language import entities

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "corpora" / "entities.jsonl"


@dataclass(slots=True)
class SpanScore(Score):
    """A found mention is right when its span is exact; `typed` counts those that have the right type too."""

    typed: int = 0

    @property
    def type_accuracy(self) -> float:
        return self.typed / self.right if self.right else 1.0


def rows(path: Path = CORPUS, **wanted: str) -> list[dict[str, Any]]:
    """Returns the labelled sentences, cut down to those whose fields have the wanted values."""
    return [row for row in read_rows(path) if all(row[field] == value for field, value in wanted.items())]


def score(labelled: Iterable[dict[str, Any]]) -> SpanScore:
    """Returns the counts over the sentences; `misses` names each deviation in a line."""
    totals: Counter[str] = Counter()
    misses: list[str] = []
    for row in labelled:
        gold = {(entity["start"], entity["end"]): entity["type"] for entity in row["entities"]}
        found = {(entity.start, entity.end): entity.type for entity in entities.find(row["text"])}
        shared = gold.keys() & found.keys()
        totals.update(labelled=len(gold), found=len(found), right=len(shared))
        totals.update(typed=sum(gold[span] == found[span] for span in shared))
        misses += _deviations(row["text"], gold, found)
    return SpanScore(**totals, misses=misses)


def _deviations(text: str, gold: dict[tuple[int, int], str], found: dict[tuple[int, int], str]) -> list[str]:
    spans = sorted(gold.keys() | found.keys())
    pairs = [(text[start:end], gold.get((start, end)), found.get((start, end))) for start, end in spans]
    return [f"{name!r} is {label}, read as {kind}: {text}" for name, label, kind in pairs if label != kind]


def report(path: Path = CORPUS, *, misses: bool = False) -> str:
    """Returns precision, recall, F1 and type accuracy per part and style, and the time per sentence."""
    lines = ["entities                n    P    R   F1  type"]
    groups: list[dict[str, str]] = [
        {},
        {"part": "a"},
        {"part": "b"},
        {"style": "chat"},
        {"style": "code"},
        {"style": "news"},
    ]
    for wanted in groups:
        chosen = rows(path, **wanted)
        result = score(chosen)
        name = " ".join(f"{field} {value}" for field, value in wanted.items()) or "all"
        lines.append(
            f"{name:<20} {len(chosen):>4} {result.precision:.2f} {result.recall:.2f} {result.f1:.2f}  "
            f"{result.type_accuracy:.2f}"
        )
    lines.append(f"{_microseconds(path):.0f} µs a sentence")
    return "\n".join(lines + (score(rows(path)).misses if misses else []))


def _microseconds(path: Path, rounds: int = 5) -> float:
    texts = [row["text"] for row in rows(path)]
    began = time.perf_counter()
    for _ in range(rounds):
        for text in texts:
            entities.find(text)
    return (time.perf_counter() - began) / rounds / len(texts) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Entity finder on the labelled sentences of tests/corpora.")
    parser.add_argument("--path", type=Path, default=CORPUS)
    parser.add_argument("--misses", action="store_true", help="list every deviation")
    arguments = parser.parse_args()
    print(report(arguments.path, misses=arguments.misses))


if __name__ == "__main__":
    main()
