"""`make hostile`: the CPU that each rule needs per kilobyte of the hostile corpus, for lengths doubling up to 256 kB.

An hour on two cores for all rules; `--only pii --longest 4096` looks at some of them further.

A rule is steep where twice the length takes more than 2.4 times the CPU. Prints the worst texts of each rule, and fails
when one is steep.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from bench.hostile_corpus import TOKENS, HostileText, mixtures, texts
from bench.hostile_entries import ENTRIES
from service.domain.errors import ServiceError

MAX_GROWTH = 2.4
"""Of the CPU for twice the length; 2 is linear, and caches and allocations grow a little faster."""

FLOOR_S = 0.1
"""Less says nothing about growth: the clock of a process is kept in steps of some milliseconds."""

LONG_S = 2.0
"""Where a series of lengths ends: what is linear then is linear beyond."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one rule on one text, by its characters; the longest may be missing."""

    entry: str
    text: str
    seconds: dict[int, float]

    @property
    def growth(self) -> float:
        """The factor for twice the length, between the longest two lengths that say something."""
        measured = sorted((chars, spent) for chars, spent in self.seconds.items() if spent > 0)
        if len(measured) < 2 or measured[-1][1] < FLOOR_S:
            return 1.0
        (small, before), (large, after) = measured[-2:]
        return float((after / max(before, FLOOR_S / 8)) ** (1 / math.log2(large / small)))

    @property
    def ms_per_kb(self) -> float:
        chars, spent = max(self.seconds.items())
        return spent * 1e6 / chars

    @property
    def is_steep(self) -> bool:
        return self.growth > MAX_GROWTH


def cpu_s(entry: str, text: HostileText, chars: int, times: int = 1) -> float:
    """The least CPU seconds of several runs."""
    told, rule, least = text.of_length(chars), ENTRIES[entry], math.inf
    for _ in range(times):
        began = time.process_time()
        with contextlib.suppress(ServiceError):  # a refusal is an answer too
            rule(told)
        least = min(least, time.process_time() - began)
    return least


def compared(entry: str, text: HostileText, small: int, large: int) -> Cost:
    """The cost at two lengths, in this process; where it looks steep, measured again and at the next length."""
    found = Cost(entry, text.name, {small: cpu_s(entry, text, small), large: cpu_s(entry, text, large)})
    for times in (2, 4):
        if not found.is_steep:
            break
        again = {chars: min(spent, cpu_s(entry, text, chars, times)) for chars, spent in found.seconds.items()}
        found = Cost(entry, text.name, again)
    if found.is_steep:  # what is steep stays steep; a neighbour's work on a shared core does not
        larger = large * large // small
        found = Cost(entry, text.name, {**found.seconds, larger: cpu_s(entry, text, larger, 2)})
    return found


def series(entry: str, text: HostileText, lengths: Sequence[int]) -> Cost:
    """The cost at each length, up to the one that is steep or takes long."""
    found = Cost(entry, text.name, {})
    for chars in lengths:
        spent = cpu_s(entry, text, chars)
        found = Cost(entry, text.name, {**found.seconds, chars: spent})
        if found.is_steep:  # once more: the machine may have been busy
            spent = min(spent, cpu_s(entry, text, chars))
            found = Cost(entry, text.name, {**found.seconds, chars: spent})
        if found.is_steep or spent > LONG_S:
            break
    return found


def measure(names: Sequence[str], recipes: Sequence[HostileText], lengths: Sequence[int]) -> list[Cost]:
    """Every rule on every text; a line for each rule as it is done."""
    done: list[Cost] = []
    with ProcessPoolExecutor(2) as pool:
        for name in names:
            costs = list(pool.map(partial(series, name, lengths=lengths), recipes))
            done += costs
            show(name, costs)
    return done


def show(name: str, costs: Sequence[Cost]) -> None:
    worst, steep = max(costs, key=lambda each: each.ms_per_kb), [each for each in costs if each.is_steep]
    growth = max(each.growth for each in costs)
    print(
        f"{name:28} {growth:5.2f}x for twice the length, at most {worst.ms_per_kb:7.2f} ms/kB ({worst.text})",
        flush=True,
    )
    for each in sorted(steep, key=lambda each: -each.growth)[:10]:
        spent = ", ".join(f"{chars // 1024} kB {seconds * 1000:.0f} ms" for chars, seconds in each.seconds.items())
        print(f"    steep: {each.text}: {spent}", flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="*", default=[""], help="rules whose name holds one of these")
    options.add_argument("--longest", type=int, default=256, help="kilobytes, up to 4096")
    options.add_argument("--ends", action="store_true", help="each class also with other beginnings and ends")
    options.add_argument("--mixtures", type=int, default=30, help="random sequences of classes, besides the classes")
    given = options.parse_args()
    lengths = [4096 << doubled for doubled in range(11) if 4 << doubled <= given.longest]
    recipes = texts() if given.ends else (HostileText(name, token) for name, token in TOKENS.items())
    names = [each for each in ENTRIES if any(part in each for part in given.only)]
    costs = measure(names, [*recipes, *mixtures(given.mixtures)], lengths)
    steep = sum(each.is_steep for each in costs)
    print(f"{len(costs)} series, {steep} of them steep")
    return 1 if steep else 0


if __name__ == "__main__":
    raise SystemExit(main())
