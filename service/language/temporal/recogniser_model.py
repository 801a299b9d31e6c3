"""Loads the Microsoft recogniser, and lets it read each sentence once.

In one call the package asks its extractors of numbers, dates, times and lengths up to fifteen times each for the same
sentence, through as many equal objects. What one of them found is kept for the rest of the call: 2 ms instead of 11.
The package takes 0.6 s and 30 MB to load; it is imported at the first use.
"""

from __future__ import annotations

import copy
from datetime import datetime
from functools import cache, wraps
from typing import Any

_found: dict[tuple[Any, ...], list[Any]] = {}
"""What the extractors found in the call that runs."""


def parse(text: str, reference: datetime) -> list[Any]:
    """What the package finds in a text. Any error may come: it indexes, splits and converts text unchecked. Not for
    several threads."""
    _found.clear()
    found: list[Any] = _model().parse(text, reference)
    return found


@cache
def _model() -> Any:
    from ms_recognizers_date_time import DateTimeRecognizer  # type: ignore[import-untyped]

    _load_zones_once()
    for extractor in _repeated():
        extractor.extract = _once(extractor)
    return DateTimeRecognizer("en-us").get_datetime_model()


def _once(extractor: Any) -> Any:
    """Its method `extract`, which keeps what it found."""
    read = extractor.extract

    @wraps(read)
    def extract(self: Any, source: str, *reference: datetime) -> list[Any]:
        key = (extractor, getattr(self, "merge", None), source, *reference)
        if key not in _found:
            _found[key] = read(self, source, *reference)
        return [copy.copy(each) for each in _found[key]]  # callers move and widen what they get

    return extract


def _repeated() -> tuple[Any, ...]:
    """The extractors of which all objects are equal, but for `merge`."""
    from ms_recognizers_date_time.date_time.base_date import BaseDateExtractor  # type: ignore[import-untyped]
    from ms_recognizers_date_time.date_time.base_duration import BaseDurationExtractor  # type: ignore[import-untyped]
    from ms_recognizers_date_time.date_time.base_time import BaseTimeExtractor  # type: ignore[import-untyped]
    from ms_recognizers_number.number.english.extractors import (  # type: ignore[import-untyped]
        EnglishCardinalExtractor,
        EnglishIntegerExtractor,
        EnglishOrdinalExtractor,
    )

    return (
        EnglishCardinalExtractor,
        EnglishIntegerExtractor,
        EnglishOrdinalExtractor,
        BaseDateExtractor,
        BaseTimeExtractor,
        BaseDurationExtractor,
    )


def _load_zones_once() -> None:
    """28 readers of time zones are made, each reads the same lists, and nobody changes one: half of the loading."""
    from ms_recognizers_date_time.date_time.english import timezone_extractor_config  # type: ignore[import-untyped]

    zones = timezone_extractor_config.EnglishTimeZoneExtractorConfiguration
    first = vars(zones())
    zones.__init__ = lambda self: self.__dict__.update(first)
