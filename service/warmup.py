"""What does a process do before the first requests, so that they need not pay for it?"""

from __future__ import annotations

import sys

from service.language import temporal
from service.resources import Resources

POLITE_S = 0.0003
"""How long a thread may keep the event loop from the interpreter while rules are loaded. With Python's 5 ms a search,
which waits for something some twenty times, took 110 ms instead of 30 until all were there."""


async def load_rules(res: Resources) -> None:
    """Loads what reads times that our own rules do not know: 0.6 s of pure Python, in a thread."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(POLITE_S)
    try:
        await res.threads.run(temporal.warm)
    finally:
        sys.setswitchinterval(usual)
