"""Whether this process has been told to end: answers that would go on for ever end themselves then."""

from __future__ import annotations

_begun = False


def begin() -> None:
    global _begun
    _begun = True


def begun() -> bool:
    return _begun
