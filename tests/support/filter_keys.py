"""The filter keys of a row's values, as the index holds them."""

from __future__ import annotations

from service.search.indexed_conditions import PREFIX_BITS, RangeKind, cover_range


def value_keys(name: str, kind: RangeKind, value: float) -> list[str]:
    """The keys that a value carries: its longest prefix, which alone covers the value, and the shorter ones."""
    (longest,) = cover_range(name, kind, value, value)
    prefix = int(longest.rpartition(" ")[2])
    return [f"{name} {kind}{bits} {prefix >> PREFIX_BITS[-1] - bits}" for bits in PREFIX_BITS]
