"""The running process: its end, its memory, imports at their first use."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib
import sys

_is_shutting_down = False


def begin_shutdown() -> None:
    """Lets endless responses end."""
    global _is_shutting_down
    _is_shutting_down = True


def is_shutting_down() -> bool:
    return _is_shutting_down


GARBAGE_THRESHOLDS = 20_000, 20, 20
"""The thresholds of gc: new objects before the youngest are collected, and collections before the two older generations
are. With Python's 700, 10, 10 a twentieth of the API's time went into it: a request leaves few cycles, but each
collection walks every object that was loaded."""


def collect_garbage_rarely() -> None:
    """Call it once everything is imported: objects loaded by then are never collected."""
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def release_memory() -> None:
    """Gives what glibc keeps of freed memory back to the system; other C libraries do so by themselves. Takes some
    milliseconds, without the interpreter's lock."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


async def import_module(module: str) -> None:
    """Imports it in a thread, unless it is there: some take a second, in which the event loop goes on."""
    if module not in sys.modules:
        await asyncio.to_thread(importlib.import_module, module)
