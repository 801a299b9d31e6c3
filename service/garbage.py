"""How often does Python look for garbage? Rarely: a request leaves few cycles, and each look walks all that was loaded.

With the defaults a twentieth of the API's time went into it.
"""

from __future__ import annotations

import gc

THRESHOLDS = 20_000, 20, 20
"""Objects made before a look at the youngest, and looks before one at the older ones; Python has 700, 10, 10."""


def look_rarely() -> None:
    """Call once everything is imported: what is loaded by then is never looked at again."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
