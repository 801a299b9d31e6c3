"""How well do the times of memories fit the time that a question asks for?

People tell of a day on that day or some days later, so the fit falls slowly after it and quickly before it. Pure; all
candidates at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.domain.temporal import Mention
from service.retrieval.question import Asked

Column = NDArray[np.float64]

FADE_DAYS: Final = 7.0
"""The fit falls by e in this many days after the time asked for, three times as fast before it."""

OTHER_YEAR: Final = 0.8
"""The fit of the same dates in another year than the one that was understood."""

LONGEST_MENTION: Final = timedelta(days=45)
"""A longer stretch named in a memory ("since 2016") says too little about the time asked for."""

DAY_S: Final = 86_400.0


def fits(
    asked: Asked | None, moments: Sequence[datetime], mentions: Sequence[Iterable[Mention]] | None = None
) -> Column:
    """Returns 0..1 for each memory of these times (UTC), naming these times (None: none names one); 0 for all when no
    time is asked for."""
    if asked is None:
        return np.zeros(len(moments))
    at = _seconds(moments)
    best = _near(asked.begins_at, asked.ends_at, at)
    if asked.any_year and asked.begins_at and asked.ends_at:
        years = np.array([moment.year for moment in moments], dtype=np.int64) - asked.begins_at.year
        for away in sorted({year + by for year in set(years.tolist()) for by in (-1, 0, 1)}):
            close = np.abs(years - away) <= 1
            begins, ends = _moved(asked.begins_at, away), _moved(asked.ends_at, away)
            best[close] = np.maximum(best[close], OTHER_YEAR * _near(begins, ends, at[close]))
    for place, told in enumerate(mentions or ()):
        if any(_named(asked, mention) for mention in told):
            best[place] = 1.0
    return best


def newness(moments: Sequence[datetime], oldest: datetime, newest: datetime) -> Column:
    """Returns 0 for the oldest of the candidates, 1 for the newest; `oldest` must be before `newest`."""
    span = (newest - oldest).total_seconds()
    found: Column = np.clip((_seconds(moments) - oldest.timestamp()) / span, 0.0, 1.0)
    return found


def _seconds(moments: Sequence[datetime]) -> Column:
    return np.array([moment.timestamp() for moment in moments], dtype=np.float64)


def _near(begins: datetime | None, ends: datetime | None, at: Column) -> Column:
    if begins and ends:
        inside = np.ones(len(at))
    elif edge := begins or ends:
        # "before June", "since March": everything there fits, what is near the edge fits best
        inside = 0.5 + 0.5 * np.exp(-np.abs(at - edge.timestamp()) / (2 * FADE_DAYS * DAY_S))
    else:
        return np.ones(len(at))
    if ends:
        after = at - ends.timestamp()
        inside = np.where(after >= 0, np.exp(-np.maximum(after, 0.0) / (FADE_DAYS * DAY_S)), inside)
    if begins:
        before = begins.timestamp() - at
        inside = np.where(before > 0, np.exp(-3 * np.maximum(before, 0.0) / (FADE_DAYS * DAY_S)), inside)
    return inside


def _named(asked: Asked, mention: Mention) -> bool:
    begins, ends = mention.begins_at, mention.ends_at
    if not (begins and ends and asked.begins_at and asked.ends_at) or ends - begins > LONGEST_MENTION:
        return False
    overlap = begins < asked.ends_at and ends > asked.begins_at
    return overlap or (begins == ends and asked.begins_at <= begins < asked.ends_at)


def _moved(moment: datetime, years: int) -> datetime:
    year = min(9998, max(1, moment.astimezone(UTC).year + years))
    try:
        return moment.replace(year=year)
    except ValueError:  # 29 February
        return moment.replace(year=year, day=28)
