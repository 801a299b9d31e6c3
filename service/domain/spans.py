"""Of which words does every value in a range bear one, so that an index of words finds ranges of any width?

A number, or a moment as seconds since 1970, is a float64. Its bits, put in the order of the values, are cut off after
so many, and the value bears one word for each length: values near to each other have the longer ones in common, as
the numeric tries of Lucene did it. A range is covered by the fewest words that leave nothing out. They may let in what
lies just outside, within two hundred-thousandths of the value, where the longest word ends. `memory_marks` in the
database says the same of each row (migration 0025).
"""

from __future__ import annotations

import struct
from typing import Final, Literal

Sort = Literal["number", "time"]

BITS: Final = (6, 12, 16, 20, 24, 28)
"""Lengths of the words. Six for each value; at most some 300 for a range. The first two cut through the exponent,
whose steps an open end has many of."""

LEAST, MOST = 1e-300, 1e300
"""What is nearer to zero counts as zero and what is farther as endless: jsonb holds numbers that float64 does not."""

_LONGEST: Final = 64
_FIRST, _LAST = -(2**63), 2**63 - 1


def covering(name: str, sort: Sort, low: float | None, high: float | None) -> list[str]:
    """The words; None for an open end. Empty where `low` lies beyond `high`."""
    first = _FIRST if low is None else _place(low)
    last = _LAST if high is None else _place(high)
    words: list[str] = []
    bits = BITS[-1]
    first, last = first >> _LONGEST - bits, last >> _LONGEST - bits
    for shorter in reversed((0, *BITS[:-1])):
        step = bits - shorter
        # what a shorter word cannot say: up to the next multiple of 2^step, and from the last one on
        begins, ends = -(-first >> step), (last + 1) >> step
        if shorter == 0 or begins >= ends:
            return words + _words(name, sort, bits, first, last)
        words += _words(name, sort, bits, first, (begins << step) - 1)
        words += _words(name, sort, bits, ends << step, last)
        bits, first, last = shorter, begins, ends - 1
    raise AssertionError("the last step returns")


def borne(name: str, sort: Sort, value: float) -> list[str]:
    """The words that a value bears."""
    return [_word(name, sort, bits, _place(value) >> _LONGEST - bits) for bits in BITS]


def many(name: str) -> str:
    """What a list of several values bears: one of them may lie above a range and another one below."""
    return f"{name} many"


def _words(name: str, sort: Sort, bits: int, first: int, last: int) -> list[str]:
    return [_word(name, sort, bits, prefix) for prefix in range(first, last + 1)]


def _word(name: str, sort: Sort, bits: int, prefix: int) -> str:
    return f"{name} {sort}{bits} {prefix}"


def _place(value: float) -> int:
    """Its bits as a signed number in the order of the values."""
    if abs(value) > MOST:
        value = float("inf") if value > 0 else float("-inf")
    elif abs(value) < LEAST:
        value = 0.0
    place: int = struct.unpack(">q", struct.pack(">d", value))[0]
    return place if place >= 0 else place ^ _LAST
