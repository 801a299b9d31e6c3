"""The offline judgement of a new fact beside stored ones, on labelled pairs.

A row is right when the first action and the memory it concerns are the labelled ones; where a row allows an ADD next to
its first action, an ADD concerns none. The writers of the three corpora knew the rules of an earlier judgement: read
the shares as regression tests, not as a measure of quality.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from bench.evals.scoring import Score, read_rows
from service.curator.judge import judge
from service.domain.decision import Neighbour, Statement
from service.domain.text import CleanText

SETS = (("updates.jsonl", "first"), ("fresh-updates.jsonl", "fresh"), ("second-updates.jsonl", "second"))
CORPORA = Path(__file__).resolve().parents[2] / "tests" / "corpora"
SIMILARITY = 0.8
"""Assumed for every stored memory of a pair: no embedder takes part."""


def rows(path: Path, *, held_out: bool | None = None) -> list[dict[str, Any]]:
    """Returns the labelled rows of a file, all or one part."""
    return [row for row in read_rows(path) if held_out is None or row["held_out"] is held_out]


def verdict(row: dict[str, Any]) -> tuple[str, int | None]:
    """Returns the first action that the rules choose for a row, and the number of the memory it touches."""
    known = [
        Neighbour(UUID(int=number), CleanText(text), "", 1, SIMILARITY) for number, text in enumerate(row["old"], 1)
    ]
    first = judge(Statement(CleanText(row["new"])), known).edits[0]
    return first.action.lower(), first.target.id.int if first.target else None


def filing(labelled: Sequence[dict[str, Any]]) -> tuple[dict[str, Score], dict[str, Score]]:
    """Returns the scores by class (share of rows filed right) and by action (precision and recall)."""
    classes: dict[str, Score] = {}
    actions: dict[str, Score] = {}
    for row in labelled:
        action, target = verdict(row)
        right = action in row["actions"] and (target == row["target"] or action == "add")
        wanted = row["actions"][0]
        for scores, name in ((classes, row["label"]), (classes, "all")):
            score = scores.setdefault(name, Score())
            score.labelled, score.found, score.right = score.labelled + 1, score.found + 1, score.right + right
            if not right and name != "all":
                score.misses.append(f"{row['id']} {row['old']} + {row['new']!r}: {action} {target}")
        named = action if action not in row["actions"] else wanted
        actions.setdefault(wanted, Score()).labelled += 1
        actions.setdefault(named, Score()).found += 1
        actions[wanted].right += right
    return classes, actions


def report(folder: Path = CORPORA) -> str:
    """Returns the tables for each corpus of a folder, its held-out part by itself."""
    lines = []
    for updates_file, corpus in SETS:
        for part, held_out in (("tuned on", False), ("held out", True)):
            pairs = rows(folder / updates_file, held_out=held_out)
            classes, actions = filing(pairs)
            lines += [f"filing, {corpus}, {part}: {len(pairs)} facts", *_shares(classes), *_table(actions), ""]
    return "\n".join(lines).rstrip()


def _table(scores: dict[str, Score]) -> list[str]:
    head = f"  {'':<24}{'labelled':>9}{'found':>7}{'precision':>11}{'recall':>8}{'F1':>7}"
    return [head] + [
        f"  {name:<24}{s.labelled:>9}{s.found:>7}{s.precision:>11.3f}{s.recall:>8.3f}{s.f1:>7.3f}"
        for name, s in sorted(scores.items())
    ]


def _shares(scores: dict[str, Score]) -> list[str]:
    return [f"  {name:<24}{s.right:>4} of {s.labelled:<4} right ({s.recall:.3f})" for name, s in sorted(scores.items())]


def misses(folder: Path = CORPORA, *, held_out: bool | None = None) -> list[str]:
    """Returns a line for each deviation; for work on the rules, with the tuned part only."""
    classes = [filing(rows(folder / updates, held_out=held_out))[0] for updates, _ in SETS]
    return [line for scores in classes for score in scores.values() for line in score.misses]


def main() -> None:
    parser = argparse.ArgumentParser(description="The offline judgement on labelled updates.")
    parser.add_argument("folder", type=Path, nargs="?", default=CORPORA, help="holds the corpora, as SETS names them")
    parser.add_argument("--misses", action="store_true", help="list the deviations of the part tuned on")
    options = parser.parse_args()
    print("\n".join(misses(options.folder, held_out=False)) if options.misses else report(options.folder))


if __name__ == "__main__":
    main()
