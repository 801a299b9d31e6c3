"""Reads word lists that are written in code as blocks of text."""

from __future__ import annotations


def words(block: str) -> frozenset[str]:
    """Returns the blank-separated words of a block."""
    return frozenset(block.split())
