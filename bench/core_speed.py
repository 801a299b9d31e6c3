"""Tells samples that were taken at the machine's full speed from those that were not.

On a shared host a core may run at half its speed for a second because another guest uses the rest of it, and no counter
of this guest shows that. A fixed loop on each core before and after a sample does: a sample is `steady` where neither
loop took more than SLACK times as long as the quickest of the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

LOOP = 40_000
"""Iterations: 2 to 3 ms."""

SLACK = 1.2


@dataclass(frozen=True, slots=True)
class Sample:
    """`ms`: what was measured. `loop_ms`: the loop on the slowest core, the slower of before and after."""

    ms: float
    loop_ms: float


def slowest_core_ms() -> float:
    """Returns the milliseconds of the loop on the slowest core that this process may use."""
    if not hasattr(os, "sched_setaffinity"):  # not on Linux: on the current core
        return _loop_ms()
    ours = os.sched_getaffinity(0)
    try:
        return max(_loop_on(core) for core in ours)
    finally:
        os.sched_setaffinity(0, ours)


def steady(samples: Sequence[Sample]) -> list[float]:
    """Returns what was measured while the machine ran at full speed."""
    full = min((each.loop_ms for each in samples), default=0.0)
    return [each.ms for each in samples if each.loop_ms <= full * SLACK]


def _loop_on(core: int) -> float:
    os.sched_setaffinity(0, {core})
    return _loop_ms()


def _loop_ms() -> float:
    began, total = time.perf_counter(), 0
    for each in range(LOOP):
        total += each
    return (time.perf_counter() - began) * 1000
