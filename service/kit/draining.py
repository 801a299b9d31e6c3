"""Whether this process is shutting down, so that endless responses end."""

from __future__ import annotations

_begun = False


def begin() -> None:
    global _begun
    _begun = True


def begun() -> bool:
    return _begun
