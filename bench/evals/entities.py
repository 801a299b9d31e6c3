"""How many names does the entity finder see, how many does it invent, and are their types right?

A mention counts as found when the span is exact. Type accuracy is over the found ones. The corpus is our own; its
part "b" was written after the rules and never tuned on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.language import entities

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "corpora" / "entities.jsonl"


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of mentions: labelled, found by the rules, both at the same span, and of those with the right type."""

    labelled: int
    found: int
    exact: int
    typed: int
    misses: tuple[str, ...]

    @property
    def precision(self) -> float:
        return self.exact / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.exact / self.labelled if self.labelled else 1.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def type_accuracy(self) -> float:
        return self.typed / self.exact if self.exact else 1.0


def rows(path: Path = CORPUS, **wanted: str) -> list[dict[str, Any]]:
    """Returns the labelled sentences, cut down to those whose fields have the wanted values."""
    parsed = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in parsed if all(row[field] == value for field, value in wanted.items())]


def score(labelled: Iterable[dict[str, Any]]) -> Score:
    """Returns the counts over the sentences; `misses` names each deviation in a line."""
    totals: Counter[str] = Counter()
    misses: list[str] = []
    for row in labelled:
        gold = {(entity["start"], entity["end"]): entity["type"] for entity in row["entities"]}
        found = {(entity.start, entity.end): entity.type for entity in entities.find(row["text"])}
        shared = gold.keys() & found.keys()
        totals.update(labelled=len(gold), found=len(found), exact=len(shared))
        totals.update(typed=sum(gold[span] == found[span] for span in shared))
        misses += _deviations(row["text"], gold, found)
    return Score(totals["labelled"], totals["found"], totals["exact"], totals["typed"], tuple(misses))


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
    return "\n".join(lines + (list(score(rows(path)).misses) if misses else []))


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
