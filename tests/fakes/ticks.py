"""A monotonic clock that stands where a test puts it."""

from __future__ import annotations


class Ticks:
    """Seconds since an arbitrary moment."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now
