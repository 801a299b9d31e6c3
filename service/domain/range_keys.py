"""Filter keys of numbers and times, by which an index of words finds ranges of any width.

A number, or a moment as seconds since 1970, is a float64. Its bits, in the order of the values, are cut off after
several lengths, and the value carries one key per length: values close to each other share the longer ones, as in the
numeric tries of Lucene. A range is covered by the fewest keys that leave nothing out. They may let in what lies just
outside, within two hundred-thousandths of the value, where the longest key ends. `memory_filter_keys()` in the database
computes the same keys for each row.
"""

from __future__ import annotations

import struct
from typing import Final, Literal

RangeKind = Literal["number", "time"]

PREFIX_BITS: Final = (6, 12, 16, 20, 24, 28)
"""Lengths of the keys. Six for each value; at most some 300 for a range. The two shortest keep
ranges with an open end small."""

SMALLEST, LARGEST = 1e-300, 1e300
"""Beyond these a value counts as zero or as infinite: jsonb holds numbers that float64 does not."""

_ALL_BITS: Final = 64
_FIRST, _LAST = -(2**63), 2**63 - 1


def covering(name: str, kind: RangeKind, low: float | None, high: float | None) -> list[str]:
    """The keys of a range; None for an open end. Empty where `low` lies beyond `high`."""
    first = _FIRST if low is None else _ordered_bits(low)
    last = _LAST if high is None else _ordered_bits(high)
    words: list[str] = []
    bits = PREFIX_BITS[-1]
    first, last = first >> _ALL_BITS - bits, last >> _ALL_BITS - bits
    for shorter in reversed((0, *PREFIX_BITS[:-1])):
        step = bits - shorter
        # parts that a shorter key would cover too widely: before the first multiple of 2^step and after the last one
        begins, ends = -(-first >> step), (last + 1) >> step
        if shorter == 0 or begins >= ends:
            return words + _words(name, kind, bits, first, last)
        words += _words(name, kind, bits, first, (begins << step) - 1)
        words += _words(name, kind, bits, ends << step, last)
        bits, first, last = shorter, begins, ends - 1
    raise AssertionError("the last step returns")


def of_value(name: str, kind: RangeKind, value: float) -> list[str]:
    """The keys that a value carries."""
    return [_word(name, kind, bits, _ordered_bits(value) >> _ALL_BITS - bits) for bits in PREFIX_BITS]


def of_list(name: str) -> str:
    """The key of a list with several values: one of them may lie above a range and another one below."""
    return f"{name} many"


def _words(name: str, kind: RangeKind, bits: int, first: int, last: int) -> list[str]:
    return [_word(name, kind, bits, prefix) for prefix in range(first, last + 1)]


def _word(name: str, kind: RangeKind, bits: int, prefix: int) -> str:
    return f"{name} {kind}{bits} {prefix}"


def _ordered_bits(value: float) -> int:
    """Its bits as a signed number in the order of the values."""
    if abs(value) > LARGEST:
        value = float("inf") if value > 0 else float("-inf")
    elif abs(value) < SMALLEST:
        value = 0.0
    bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
    return bits if bits >= 0 else bits ^ _LAST
