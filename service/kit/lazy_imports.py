"""Imports of libraries that a process may never need, at their first use."""

from __future__ import annotations

import asyncio
import importlib
import sys


async def load(module: str) -> None:
    """Imports it in a thread, unless it is there: some take a second, in which the event loop goes on."""
    if module not in sys.modules:
        await asyncio.to_thread(importlib.import_module, module)
