"""The offline curator: facts extracted from conversations, and actions chosen against stored memories.

Extraction: a found fact is right when it has the negation of a labelled one and shares at least SAME of their content
words (stems, synonyms made one; intersection over union). Each labelled fact is matched once. Actions: a row is right
when the first action and the memory it concerns are the labelled ones; where a row allows an ADD next to its first
action, an ADD concerns none. Facts under "may" are optional: found or not, they do not count.

Three corpora, each with a held-out part. First: F1 0.855 and 48 of 50 actions on the held-out rows at the first run;
its weak kinds (assistant, correction) then led to work on other examples, so today's figures are a little too good.
Fresh: written without knowledge of the rules, in the way people type; F1 0.676 (open) and 0.705 (held out), 47 of 65
and 47 of 63 actions at the first run. Its held-out misses were never read, but for two that a test printed, which moved
to the open part; its author improved the rules too. Second: written by another author who knew the rules, halved by a
hash before the first run: F1 0.613 and 0.610, 35 of 41 and 36 of 46 actions. That author then improved the rules on the
open half.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from bench.evals.scoring import Score, read_rows
from service.curator.judge import judge
from service.domain.decision import Neighbour, Statement
from service.domain.text import CleanText
from service.language import contrast
from service.language.facts import Message, StatedFact, extract
from service.language.facts.values import stems

# turns, updates, and what the two are called
SETS = (
    ("turns.jsonl", "updates.jsonl", "first"),
    ("fresh-turns.jsonl", "fresh-updates.jsonl", "fresh"),
    ("second-turns.jsonl", "second-updates.jsonl", "second"),
)
CORPORA = Path(__file__).resolve().parents[2] / "tests" / "corpora"
SAME = 0.6
SIMILARITY = 0.8
"""Assumed for every stored memory of a pair: no embedder takes part."""

ROLES = {"u": "user", "a": "assistant", "s": "system"}


def rows(path: Path, *, held_out: bool | None = None) -> list[dict[str, Any]]:
    """Returns the labelled rows of a file, all or one part."""
    return [row for row in read_rows(path) if held_out is None or row["held_out"] is held_out]


def messages(row: dict[str, Any]) -> list[Message]:
    """Returns the turns of a row; "u: ..." is the user's, "a: ..." the assistant's."""
    return [Message(ROLES[turn[0]], turn[3:]) for turn in row["turns"]]


def alike(found: str, labelled: str) -> bool:
    """Returns whether two texts state the same fact."""
    if bool(contrast.signature(found).negations) is not bool(contrast.signature(labelled).negations):
        return False
    a, b = set(stems(found)), set(stems(labelled))
    return bool(a | b) and len(a & b) / len(a | b) >= SAME


def extraction(labelled: Iterable[dict[str, Any]]) -> dict[str, Score]:
    """Returns the score of each kind of turn, and of all under "all"."""
    scores: dict[str, Score] = {}
    for row in labelled:
        found: Sequence[StatedFact] = extract(messages(row))
        left = list(row["facts"])
        right = 0
        extra = []
        for fact in found:
            match = next((text for text in left if alike(fact.text, text)), None)
            if match is not None:
                left.remove(match)
                right += 1
            elif not any(alike(fact.text, text) for text in row.get("may", ())):
                extra.append(fact.text)
        for name in (row["kind"], "all"):
            score = scores.setdefault(name, Score())
            score.labelled += len(row["facts"])
            score.found += right + len(extra)
            score.right += right
            if name != "all":
                score.misses += [f"{row['id']} +{text}" for text in extra] + [f"{row['id']} -{text}" for text in left]
    return scores


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
    for turns_file, updates_file, corpus in SETS:
        for part, held_out in (("tuned on", False), ("held out", True)):
            turns, pairs = (rows(folder / name, held_out=held_out) for name in (turns_file, updates_file))
            lines += [f"extraction, {corpus}, {part}: {len(turns)} conversations", *_table(extraction(turns)), ""]
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
    found = []
    for turns, updates, _ in SETS:
        read_wrong = extraction(rows(folder / turns, held_out=held_out))
        filed_wrong, _actions = filing(rows(folder / updates, held_out=held_out))
        found += [line for scores in (read_wrong, filed_wrong) for score in scores.values() for line in score.misses]
    return found


def kinds(folder: Path = CORPORA) -> Counter[str]:
    """Returns how many conversations there are of each kind."""
    return Counter(row["kind"] for turns, _, _ in SETS for row in rows(folder / turns))


def main() -> None:
    parser = argparse.ArgumentParser(description="Offline curator on labelled conversations and updates.")
    parser.add_argument("folder", type=Path, nargs="?", default=CORPORA, help="holds the corpora, as SETS names them")
    parser.add_argument("--misses", action="store_true", help="list the deviations of the part tuned on")
    options = parser.parse_args()
    print("\n".join(misses(options.folder, held_out=False)) if options.misses else report(options.folder))


if __name__ == "__main__":
    main()
