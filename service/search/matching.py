"""Scores of how well candidates match what a query asks for: the speaker, the time, exact terms and entities.

People talk about a day on that day or some days after it, so a match in time falls slowly after the day and quickly
before it. Times are scored for all candidates at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.domain.temporal import Mention
from service.search.query_parsing import ParsedQuery, QueryTime

Column = NDArray[np.float64]

NAMED_SPEAKER: Final = 0.6
"""Score of a turn by a speaker that the query names. A turn by the role asked for scores 1; a name may also be the
topic ("Ana's boat")."""

FADE_DAYS: Final = 7.0
"""The score falls by e in this many days after the time asked for, three times as fast before it."""

OTHER_YEAR: Final = 0.8
"""The score of the same dates in another year than the one that was understood."""

MAX_MENTION_LENGTH: Final = timedelta(days=45)
"""Longer intervals that a memory mentions ("since 2016") say too little about the time asked for."""

DAY_S: Final = 86_400.0


def speaker_match(query: ParsedQuery, speaker: str | None, role: str | None) -> float:
    """Returns 1 for a turn by the role asked for, NAMED_SPEAKER for one by the speaker named, else 0; 0 for every turn
    when the query names two speakers, or neither speaker nor role."""
    if query.speakers:
        return NAMED_SPEAKER if len(query.speakers) == 1 and speaker in query.speakers else 0.0
    return float(query.role is not None and role == query.role)


def entity_match(named: Collection[str], weights: Mapping[str, float], wanted: int) -> float:
    """Returns 0..1: the share of the `wanted` entities that a memory names, each counted by its weight (0..1)."""
    return min(1.0, sum(weights.get(name, 0.0) for name in named) / wanted) if wanted else 0.0


def exact_match(
    groups: Collection[tuple[str, ...]],
    term_ids: Mapping[str, int],
    rarity: Mapping[str, float],
    texts: Sequence[Collection[int]],
) -> Column:
    """Returns 0..1 for each text (its term ids). Each name, id or word of the query is a group of terms; a text scores
    the rarity of the rarest group that it holds completely. `rarity` is by term, 0..1. Looked up from the words of the
    texts: a query may have ten thousand."""
    best = np.zeros(len(texts))
    sought: dict[int, list[tuple[list[int], float]]] = {}  # by the first word's number
    for group in groups:
        value = max((rarity.get(term, 0.0) for term in group), default=0.0)
        if value > 0:
            numbers = [term_ids.get(term, -1) for term in group]
            sought.setdefault(numbers[0], []).append((numbers, value))
    for at, terms in enumerate(map(frozenset, texts) if sought else ()):
        near = (each for first in sought.keys() & terms for each in sought[first])
        best[at] = max((value for numbers, value in near if terms.issuperset(numbers)), default=0.0)
    return best


def time_match(
    wanted: QueryTime | None, times: Sequence[datetime], mentions: Sequence[Iterable[Mention]] | None = None
) -> Column:
    """Returns 0..1 for each memory by its own time (UTC) and the times mentioned in it; 0 for all when no time is
    asked for."""
    if wanted is None:
        return np.zeros(len(times))
    seconds = _seconds(times)
    best = _closeness(wanted.begins_at, wanted.ends_at, seconds)
    if wanted.any_year and wanted.begins_at and wanted.ends_at:
        years = np.array([time.year for time in times], dtype=np.int64) - wanted.begins_at.year
        for offset in sorted({year + by for year in set(years.tolist()) for by in (-1, 0, 1)}):
            close = np.abs(years - offset) <= 1
            begins, ends = _shift(wanted.begins_at, offset), _shift(wanted.ends_at, offset)
            best[close] = np.maximum(best[close], OTHER_YEAR * _closeness(begins, ends, seconds[close]))
    for index, mentioned in enumerate(mentions or ()):
        if any(_overlaps(wanted, mention) for mention in mentioned):
            best[index] = 1.0
    return best


def relative_recency(times: Sequence[datetime], oldest: datetime, newest: datetime) -> Column:
    """Returns 0 for the oldest of the candidates, 1 for the newest; `oldest` must be before `newest`."""
    span = (newest - oldest).total_seconds()
    recency: Column = np.clip((_seconds(times) - oldest.timestamp()) / span, 0.0, 1.0)
    return recency


def _seconds(times: Sequence[datetime]) -> Column:
    return np.array([time.timestamp() for time in times], dtype=np.float64)


def _closeness(begins: datetime | None, ends: datetime | None, seconds: Column) -> Column:
    if begins and ends:
        inside = np.ones(len(seconds))
    elif edge := begins or ends:
        # "before June", "since March": everything there matches, what is close to the edge matches best
        inside = 0.5 + 0.5 * np.exp(-np.abs(seconds - edge.timestamp()) / (2 * FADE_DAYS * DAY_S))
    else:
        return np.ones(len(seconds))
    if ends:
        after = seconds - ends.timestamp()
        inside = np.where(after >= 0, np.exp(-np.maximum(after, 0.0) / (FADE_DAYS * DAY_S)), inside)
    if begins:
        before = begins.timestamp() - seconds
        inside = np.where(before > 0, np.exp(-3 * np.maximum(before, 0.0) / (FADE_DAYS * DAY_S)), inside)
    return inside


def _overlaps(wanted: QueryTime, mention: Mention) -> bool:
    begins, ends = mention.begins_at, mention.ends_at
    if not (begins and ends and wanted.begins_at and wanted.ends_at) or ends - begins > MAX_MENTION_LENGTH:
        return False
    overlap = begins < wanted.ends_at and ends > wanted.begins_at
    return overlap or (begins == ends and wanted.begins_at <= begins < wanted.ends_at)


def _shift(time: datetime, years: int) -> datetime:
    year = min(9998, max(1, time.astimezone(UTC).year + years))
    try:
        return time.replace(year=year)
    except ValueError:  # 29 February
        return time.replace(year=year, day=28)
