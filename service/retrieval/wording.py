"""What does the wording of a candidate say of it, beside what it is about?

Worked out once per text and process: it costs some microseconds a text, and a search has hundreds. Kept by id and
hash, never by text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.language import context

Column = NDArray[np.float64]

MOST_SEEN: Final = 50_000
"""Texts that each measure remembers, some 10 MB."""

NEITHER: Final = 0.5
"""How much a text speaks of its speaker that is too long to be looked at: it speaks of many things."""

LONGEST: Final = 2_000
"""Characters of a text that is looked at for that."""


class _Once:
    """A measure of texts, 0..1, remembered for up to MOST_SEEN of them."""

    def __init__(self, measure: Callable[[str], float]) -> None:
        self._measure = measure
        self._seen: dict[tuple[UUID, int], float] = {}

    def of(self, memory_id: UUID, text: str) -> float:
        key = (memory_id, hash(text))
        value = self._seen.get(key)
        if value is None:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            value = self._seen[key] = self._measure(text)
        return value


_asking, _oneself = _Once(context.asking), _Once(context.oneself)


def asking(ids: Sequence[UUID], texts: Sequence[str | None]) -> Column:
    """Which share of each text asks, 0..1; 0 where there is no text."""
    may_ask = [text if text and ("?" in text or not text.isascii()) else None for text in texts]
    return _column(_asking, ids, may_ask, 0.0)


def oneself(ids: Sequence[UUID], texts: Sequence[str | None]) -> Column:
    """How much each text speaks of its speaker, 0..1; NEITHER where there is no text, or a long one."""
    short = [text if text and len(text) <= LONGEST else None for text in texts]
    return _column(_oneself, ids, short, NEITHER)


def _column(measure: _Once, ids: Sequence[UUID], texts: Sequence[str | None], unknown: float) -> Column:
    values = [unknown if text is None else measure.of(each, text) for each, text in zip(ids, texts, strict=True)]
    return np.array(values, dtype=np.float64)
