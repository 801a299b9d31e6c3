"""How is a list of words written down in code? As a block of text, one reader for all of them."""

from __future__ import annotations


def words(block: str) -> frozenset[str]:
    """Returns the blank-separated words of a block."""
    return frozenset(block.split())
