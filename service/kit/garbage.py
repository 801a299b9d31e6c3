"""Rare garbage collection. With Python's defaults a twentieth of the API's time went into it: a request leaves few
cycles, but each collection walks every object that was loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc

THRESHOLDS = 20_000, 20, 20
"""The thresholds of gc: new objects before the youngest are collected, and collections before the two older generations
are. Python has 700, 10, 10."""


def collect_rarely() -> None:
    """Makes collections rare. Call it once everything is imported: objects loaded by then are never collected."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def trim() -> None:
    """Gives what glibc keeps of freed memory back to the system; other C libraries do so by themselves. Takes some
    milliseconds, without the interpreter's lock."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
