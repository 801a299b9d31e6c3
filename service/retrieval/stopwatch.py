"""Measures where the time of a search, a recall or a technique goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds by stage."""

    ms: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """Ends a stage that began when the last one ended."""
        now = time.perf_counter()
        self.ms[stage] = round((now - self._at) * 1000, 3)
        self._at = now

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Adds what the block takes to the stage."""
        began = time.perf_counter()
        yield
        self.ms[stage] = round(self.ms.get(stage, 0.0) + elapsed_ms(began), 3)


def elapsed_ms(began: float) -> float:
    """Returns the milliseconds since `time.perf_counter()` was `began`."""
    return round((time.perf_counter() - began) * 1000, 3)
