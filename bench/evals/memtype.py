"""Memory types: accuracy of the published patterns, and what the rules after them add."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench.evals.scoring import read_rows
from service.domain.kinds import Classification, ClassificationSource, MemoryType
from service.language import kinds

Classifier = Callable[[str], Classification]


def with_default(text: str) -> Classification:
    """Returns what the published patterns say, else Context."""
    return kinds.classify(text) or kinds.UNCLASSIFIED


def with_rules(text: str) -> Classification:
    """Returns what the service says with no model: patterns, then the offline rules, then Context."""
    return kinds.classify(text) or kinds.guess(text) or kinds.UNCLASSIFIED


def rows(path: Path) -> list[tuple[str, MemoryType]]:
    """Returns text and labelled type of each line of a JSON lines file."""
    return [(row["text"], MemoryType(row["type"])) for row in read_rows(path)]


def report(path: Path) -> str:
    """Returns confusion matrix, accuracy and coverage: patterns with the default Context, then with the rules."""
    labelled = rows(path)
    parts = [_section("patterns, else Context", with_default, labelled), _section("with rules", with_rules, labelled)]
    return "\n\n".join(parts)


def _section(title: str, classify: Classifier, labelled: list[tuple[str, MemoryType]]) -> str:
    read = [(type_, classify(text)) for text, type_ in labelled]
    matrix = Counter((type_, kind.type) for type_, kind in read)
    sources = Counter(kind.source for _, kind in read)
    names = list(MemoryType)
    lines = [f"{title:<24}" + "".join(f"{name[:8]:>10}" for name in names) + "   (columns: read as)"]
    lines += [f"{name:<24}" + "".join(f"{matrix[name, other]:>10}" for other in names) for name in names]
    right = sum(matrix[name, name] for name in names)
    lines.append(f"accuracy {right}/{len(read)} = {right / max(1, len(read)):.2f}")
    lines += [_of_source(read, source) for source in ClassificationSource if sources[source]]
    return "\n".join(lines)


def _of_source(read: list[tuple[MemoryType, Classification]], source: ClassificationSource) -> str:
    chosen = [(type_, kind) for type_, kind in read if kind.source is source]
    right = sum(type_ is kind.type for type_, kind in chosen)
    return f"  {source.value:<8} covers {len(chosen)}/{len(read)} = {len(chosen) / len(read):.2f}, right {right}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Type classification on labelled texts.")
    parser.add_argument("path", type=Path, help="JSON lines with text, type")
    print(report(parser.parse_args().path))


if __name__ == "__main__":
    main()
