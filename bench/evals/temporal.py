"""Temporal expressions: how often they resolve to the labelled time, and how often one is seen where none is.

A text is right when every labelled expression is met by a mention of its own that overlaps the labelled words and
has the labelled start, and the labelled end where there is one. Gold lists one or more accepted readings of an
expression (the last and the next Friday, 3 and 15 o'clock):

- `any` accepts each of them; `start` does so too, but compares starts only;
- `chosen` accepts only the reading on the side that tense asks for: the last one before the reference behind a past
  verb, else the first one that is not over;
- `inclusive` is `any`, or a range that takes in its last unit: the source ends "November 19-20" when the 20th
  begins, we end it when the 20th is over.

Everything is read in UTC, as the labels are.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bench.evals.scoring import read_rows
from service.domain.temporal import TimeMention
from service.language import temporal
from service.language.temporal import tense
from service.language.temporal.calendar import Lean

Row = dict[str, Any]
Bounds = tuple[datetime | None, datetime | None]
Accept = Callable[[TimeMention, Bounds], bool]
_UTC = ZoneInfo("UTC")


def report(path: Path) -> str:
    """The figures of a labelled file, as lines of text."""
    rows = read_rows(path)
    timed = [(row, *_timed(row)) for row in rows]
    positives = [(row, found) for row, found, _ in timed if row["kind"] == "positive"]
    negatives = [(row, found) for row, found, _ in timed if row["kind"] != "positive"]
    lines = [f"temporal: {len(positives)} positives, {len(negatives)} negatives"]
    for name in ("portable", "core", "all"):
        group = [(row, found) for row, found in positives if name == "all" or row.get(name)]
        lines.append(_accuracy(name, group))
    lines.append(_false_alarms(negatives))
    micros = sorted(micro for _, _, micro in timed)
    lines.append(
        f"time per text: median {statistics.median(micros):.0f} us, p95 {micros[int(len(micros) * 0.95)]:.0f} us"
    )
    return "\n".join(lines)


def wrong(path: Path) -> Iterable[tuple[Row, tuple[TimeMention, ...]]]:
    """The positives that are not right under `any`, with what was found."""
    for row in read_rows(path):
        found, _ = _timed(row)
        if row["kind"] == "positive" and not right(row, found, exact):
            yield row, found


def right(row: Row, found: Sequence[TimeMention], accept: Accept, *, chosen: bool = False) -> bool:
    """Whether each labelled expression of a row is met by a mention of its own."""
    left = list(found)
    cursor = 0
    for expected in row["expected"]:
        at = row["text"].lower().find(expected["text"].lower(), cursor)
        start, end = (at, at + len(expected["text"])) if at >= 0 else (0, len(row["text"]))
        cursor = max(cursor, at + 1)
        readings = [_bounds(pair) for pair in expected["alternatives"]]
        if chosen:
            readings = [_preferred(row, start, readings)]
        hit = next((m for m in left if m.start < end and start < m.end and any(accept(m, r) for r in readings)), None)
        if hit is None:
            return False
        left.remove(hit)
    return True


def exact(mention: TimeMention, bounds: Bounds) -> bool:
    """Start and end as labelled."""
    begins, ends = bounds
    return mention.begins_at == begins and (ends is None or mention.ends_at == ends)


def starting(mention: TimeMention, bounds: Bounds) -> bool:
    """Start as labelled; the end too where no start is."""
    return mention.begins_at == bounds[0] if bounds[0] else mention.begins_at is None and mention.ends_at is not None


def inclusive(mention: TimeMention, bounds: Bounds) -> bool:
    """As `exact`, or a range that ends one day, month or year later than the label."""
    begins, ends = bounds
    if exact(mention, bounds) or ends is None or mention.ends_at is None or mention.begins_at != begins:
        return exact(mention, bounds)
    late = mention.ends_at - ends
    return mention.kind == "range" and late in {timedelta(days=d) for d in (1, 28, 29, 30, 31, 365, 366)}


def _timed(row: Row) -> tuple[tuple[TimeMention, ...], float]:
    reference = datetime.fromisoformat(row["reference"]).replace(tzinfo=UTC)
    began = time.perf_counter()
    found = temporal.find(row["text"], reference, _UTC)
    return found, (time.perf_counter() - began) * 1e6


def _bounds(pair: Sequence[str | None]) -> Bounds:
    begins, ends = (datetime.fromisoformat(t).replace(tzinfo=UTC) if t else None for t in pair)
    return begins, ends


def _preferred(row: Row, position: int, readings: list[Bounds]) -> Bounds:
    reference = datetime.fromisoformat(row["reference"]).replace(tzinfo=UTC)
    ordered = sorted(readings, key=lambda r: r[0] or r[1] or reference)
    if tense.lean(row["text"].lower(), position) is Lean.PAST:
        behind = [r for r in ordered if (r[0] or r[1] or reference) < reference]
        return behind[-1] if behind else ordered[0]
    return next((r for r in ordered if (r[1] or r[0] or reference) >= reference), ordered[-1])


def _accuracy(name: str, group: Sequence[tuple[Row, Sequence[TimeMention]]]) -> str:
    figures = {
        "any": sum(right(row, found, exact) for row, found in group),
        "inclusive": sum(right(row, found, inclusive) for row, found in group),
        "start": sum(right(row, found, starting) for row, found in group),
        "chosen": sum(right(row, found, exact, chosen=True) for row, found in group),
    }
    shares = ", ".join(f"{key} {count / max(len(group), 1):.1%}" for key, count in figures.items())
    return f"{name:<9} n={len(group):<4} {shares}"


def _false_alarms(negatives: Sequence[tuple[Row, Sequence[TimeMention]]]) -> str:
    mentioned = expiring = 0
    for row, found in negatives:
        reference = datetime.fromisoformat(row["reference"]).replace(tzinfo=UTC)
        mentioned += bool(found)
        expiring += temporal.validity(row["text"], found, reference, _UTC)[1] is not None
    total = max(len(negatives), 1)
    return f"negatives n={len(negatives)} with a mention {mentioned / total:.1%}, with an expiry {expiring / total:.1%}"


def main() -> None:
    """Print the report of the file named on the command line; --wrong lists the misses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path)
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    print(report(arguments.path))
    if arguments.wrong:
        for row, found in wrong(arguments.path):
            print(row["reference"], row["text"], [e["alternatives"] for e in row["expected"]], sep=" | ")
            for mention in found:
                print("    ", mention.text, mention.kind, mention.begins_at, mention.ends_at)


if __name__ == "__main__":
    main()
