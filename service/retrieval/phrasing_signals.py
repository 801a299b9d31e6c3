"""What the phrasing of candidates says, whatever they are about: whether they ask, and speak of their speaker.

Computed once per text and process: a text costs some microseconds, and a search has hundreds. Remembered by id and
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

MAX_REMEMBERED: Final = 50_000
"""Texts that each measure remembers, some 10 MB."""

UNKNOWN_FIRST_PERSON: Final = 0.5
"""Assumed of a text that is too long to be examined: it speaks of many things."""

MAX_CHARS: Final = 2_000
"""A longer text is not examined for first-person speech."""


class _Remembered:
    """A measure of texts, 0..1, remembered for up to MAX_REMEMBERED of them."""

    def __init__(self, measure: Callable[[str], float]) -> None:
        self._measure = measure
        self._values: dict[tuple[UUID, int], float] = {}

    def of(self, memory_id: UUID, text: str) -> float:
        key = (memory_id, hash(text))
        value = self._values.get(key)
        if value is None:
            if len(self._values) >= MAX_REMEMBERED:
                self._values.clear()
            value = self._values[key] = self._measure(text)
        return value


_asking, _first_person = _Remembered(context.question_share), _Remembered(context.first_person)


def asking(ids: Sequence[UUID], texts: Sequence[str | None]) -> Column:
    """Returns the share of each text that asks, 0..1; 0 where there is no text."""
    possible = [text if text and ("?" in text or not text.isascii()) else None for text in texts]
    return _column(_asking, ids, possible, 0.0)


def first_person(ids: Sequence[UUID], texts: Sequence[str | None]) -> Column:
    """Returns how much each text speaks of its speaker, 0..1; UNKNOWN_FIRST_PERSON where there is no text, or a long
    one."""
    short = [text if text and len(text) <= MAX_CHARS else None for text in texts]
    return _column(_first_person, ids, short, UNKNOWN_FIRST_PERSON)


def _column(measure: _Remembered, ids: Sequence[UUID], texts: Sequence[str | None], unknown: float) -> Column:
    values = [unknown if text is None else measure.of(each, text) for each, text in zip(ids, texts, strict=True)]
    return np.array(values, dtype=np.float64)
