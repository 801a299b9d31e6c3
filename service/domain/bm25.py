"""BM25 as the service computes it: its constants, the weight of a term in a text, and the IDF of a term. Pure.

The score of a text is the sum over the terms of the query of `term_weight` (of the text, stored with each row) times
`idf` (of the scope, computed by each search). The variant:

- IDF: ln(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene; never negative, also for a term of every text.
- Term frequency: saturates as in the textbook, tf (k1 + 1) / (tf + k1 norm).
- Length: norm = 1 - b + b sqrt(length / average). The textbook has no root, and the mean length of the collection. Here
  the average is a constant, because weights are stored and no scope's mean may change them; then the plain ratio buries
  long texts, and the root ranks better at every length that was tried (docs/decisions/013-bm25.md).

To change K1, B or an average length: edit it here. Stored weights (`memory.bm25`, `memory.context_bm25`, `turn.bm25`)
keep the old values until the text is written again, so an existing database has to recompute them.
To change the IDF: edit `idf` and `IDF_SQL` together; tests/search/statements/test_bm25.py compares them.
"""

from __future__ import annotations

import math
from typing import Final

K1: Final = 1.5
"""How slowly a repeated term saturates."""

B: Final = 0.75
"""How much the length of a text counts, 0..1."""

AVERAGE_LENGTH: Final = 12.0
"""Terms in an average memory."""

AVERAGE_CONTEXT_LENGTH: Final = 30.0
"""Terms in an average turn with the two turns before it."""

IDF_SQL: Final = "ln(1 + ({texts} - {frequency} + 0.5) / ({frequency} + 0.5))"
"""`idf` in SQL: `texts` and `frequency` (in how many of them the term occurs) are float8 expressions."""


def length_norm(length: int, average_length: float) -> float:
    """K1 times the length norm of a text of this length: the denominator of its term weights, without tf."""
    return K1 * (1 - B + B * math.sqrt(length / average_length))


def term_weight(frequency: int, norm: float) -> float:
    """The weight of a term that occurs `frequency` times in a text with this `length_norm`, 0..K1 + 1."""
    return frequency * (K1 + 1) / (frequency + norm)


def idf(texts: float, frequency: float) -> float:
    """The weight, > 0, of a term that occurs in `frequency` of this many texts."""
    return math.log1p((max(texts, frequency) - frequency + 0.5) / (frequency + 0.5))
