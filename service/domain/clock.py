"""The clock that validity, expiry and decay take their "now" from, so that tests can set it; and a stopwatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)


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
    """Milliseconds since `time.perf_counter()` was `began`."""
    return round((time.perf_counter() - began) * 1000, 3)
