"""An estimate of a text's tokens that needs no tokeniser."""

from __future__ import annotations

from typing import Final

BYTES_PER_TOKEN: Final = 4
"""English has about four characters per token with the usual tokenisers; other scripts have more bytes and more tokens
per character."""


def estimate(text: str) -> int:
    """Returns about how many tokens the text is; at least 1."""
    return max(1, estimate_bytes(len(text.encode())))


def estimate_bytes(count: int) -> int:
    """Returns the estimate for this many bytes of UTF-8; 0 for none."""
    return -(-count // BYTES_PER_TOKEN)
