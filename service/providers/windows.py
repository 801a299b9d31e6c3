"""One vector for a text longer than an embedding model's window.

The text is cut into windows and the mean of their vectors, weighted by length, stands for it: otherwise everything
after the first window would be invisible to search. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from service.providers.protocols import Vector

MAX_WINDOWS = 32
"""A longer text is represented by this many windows spread evenly over it."""

BREAK = re.compile(r"\s+(?=\S*$)")


def split(text: str, max_chars: int) -> list[str]:
    """The text in at most MAX_WINDOWS pieces of at most `max_chars`, cut at white space close to the limit if any."""
    pieces = []
    start = 0
    while len(text) - start > max_chars:
        end = start + _cut(text[start : start + max_chars])
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    if len(pieces) <= MAX_WINDOWS:
        return pieces
    return [pieces[round(at * (len(pieces) - 1) / (MAX_WINDOWS - 1))] for at in range(MAX_WINDOWS)]


def _cut(piece: str) -> int:
    """Where to end the piece: after the last white space of its last quarter, else at its end."""
    tail = len(piece) - len(piece) // 4
    match = BREAK.search(piece, tail)
    return match.end() if match else len(piece)


def mean(vectors: Sequence[Vector], weights: Sequence[int]) -> Vector:
    """The weighted mean, of length 1. Raises ValueError when it is zero or not finite."""
    if len(vectors) == 1:
        return vectors[0]
    return unit(np.average(np.stack(vectors), axis=0, weights=np.asarray(weights, dtype=np.float64)))


def unit(vector: Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> Vector:
    """The vector scaled to length 1, as read-only float32. Raises ValueError when it is zero or not finite."""
    wide = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(wide))
    if not np.isfinite(length) or length < 1e-12:
        raise ValueError("the vector is zero or not finite")
    result: Vector = (wide / length).astype(np.float32)
    result.flags.writeable = False
    return result
