"""How much a test that draws at random, or kills, tries: little in CI, all of it with `make test-thorough`."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("THOROUGH") == "1"


def many(few: int, all_of_them: int) -> int:
    """`few` in CI."""
    return all_of_them if THOROUGH else few
