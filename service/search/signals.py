"""The signals and factors of each candidate: what its features mean for this query. Pure.

People talk about a day on that day or some days after it, so a match in time falls slowly after the day and quickly
before it. All candidates are measured at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import numpy as np

from service.domain.ranking import HALF_LIFE_DAYS
from service.domain.temporal import TimeMention
from service.language import questions
from service.language.context import first_person, question_share
from service.search.fusion import Column, Columns, QueryContext, find_required_terms
from service.search.query_parsing import ParsedQuery, QueryTime
from service.search.statements.features import SHORT_TEXTS, Features

GOAL_SIMILARITY = 0.70
"""Similarity to a goal from which on a memory serves it."""

DAY_S = 86_400.0

MAX_FEW_MATCHES = 3
"""When at most three texts contain a term of the query (in scopes below 150 texts one in fifty, but at least one), its
rare terms must match exactly."""


def choose_features(context: QueryContext, matching_texts: int) -> frozenset[str]:
    """Which of features.OPTIONAL, and SHORT_TEXTS, this query needs; `matching_texts`: those with a term of it."""
    ranking, parsed = context.ranking, context.parsed
    on = ranking.factors
    needed = {
        "speaker": bool(parsed.speakers),
        "role": parsed.role is not None,
        "mentions": parsed.time is not None,
        SHORT_TEXTS: bool(parsed.speakers) or questions.kind(parsed.text) is not None,
        "dated": parsed.asks_when,
        "tagged": bool(context.query.tags),
        "terms": ranking.diversity > 0 or bool(parsed.exact_terms) or _are_few(context, matching_texts),
        "ended": on.expired_factor != 1,
        "temporal_tag": on.tells_tags,
        "importance": on.importance > 0,
    }
    return frozenset(name for name, needs in needed.items() if needs)


def with_features(
    context: QueryContext, features: Features, matching_texts: int, similarity: Callable[[float], float]
) -> QueryContext:
    """The context, completed from the features of all candidates. `similarity` calibrates a cosine of two stored
    texts."""
    goals = {
        each: goal_pull(cosine, similarity, is_linked=linked)
        for each, linked, cosine in zip(features.ids, features.goal_linked, features.goal_cosine, strict=True)
        if linked is not None
    }
    context = replace(context, goals=goals, time_span=time_span(context.parsed, features))
    if not _are_few(context, matching_texts):
        return context
    return replace(context, few_matches=bool(_rare(features, context.parsed.rare_terms, context).any()))


def _are_few(context: QueryContext, texts: int) -> bool:
    return 0 < texts <= max(1, min(MAX_FEW_MATCHES, context.text_count // 50))


def goal_pull(cosine: float | None, similarity: Callable[[float], float], *, is_linked: bool) -> float:
    """How well a memory serves an active goal, 0..1: 1 if it was linked by hand, else by its nearness from
    GOAL_SIMILARITY on. `cosine`: to the nearest goal; None if one of the two has no vector."""
    if is_linked:
        return 1.0
    return 0.0 if cosine is None else max(0.0, (similarity(cosine) - GOAL_SIMILARITY) / (1 - GOAL_SIMILARITY))


def cosines(features: Features) -> Column:
    """The cosine of each candidate to the vector of the query as sent, if another one was searched with."""
    return np.array(features.original_cosine, dtype=np.float64) if features.original_cosine else features.text_vector


MIN_TIME_SPAN = timedelta(days=1)
"""Candidates within one day are treated as equally recent."""


def time_span(parsed: ParsedQuery, features: Features) -> tuple[datetime, datetime] | None:
    """The times of the oldest and the newest candidate; None unless the query asks for the present."""
    if not parsed.about_present or not features.timestamp:
        return None
    oldest, newest = min(features.timestamp), max(features.timestamp)
    return (oldest, newest) if newest - oldest >= MIN_TIME_SPAN else None


def columns(features: Features, context: QueryContext) -> Columns:
    """The signals and factors of the candidates."""
    signals = {
        "text_lexical": features.text_lexical,
        "context_lexical": _fill(features.context_lexical, features.text_lexical),
        "text_vector": features.text_vector,
        "context_vector": _fill(features.context_vector, features.text_vector),
        "speaker": _speaker(features, context.parsed),
        "declarative": 1.0 - asking_share(features.ids, features.phrasing),
        "first_person": first_person_share(features.ids, features.phrasing)
        if context.parsed.speakers
        else np.zeros(len(features.ids)),
        "time": _timely(features, context),
        "dated": np.array(features.dated or np.zeros(len(features.ids)), dtype=np.float64),
        "rare": _rare(features, find_required_terms(context), context),
        "tag": np.array(features.tagged or np.zeros(len(features.ids)), dtype=np.float64),
        "entity": _entity(features, context),
        "goal": _goal(features, context),
    }
    return Columns(features.ids, signals, factors(features, context))


def _fill(column: Column, other: Column) -> Column:
    """The features of a memory's context; a memory without context is its own."""
    return np.where(np.isnan(column), other, column)


def _speaker(features: Features, parsed: ParsedQuery) -> Column:
    if not features.speaker and not features.role:
        return np.zeros(len(features.ids))
    nobody: Sequence[str | None] = [None] * len(features.ids)
    speakers = zip(features.speaker or nobody, features.role or nobody, strict=True)
    return np.array([speaker_match(parsed, speaker, role) for speaker, role in speakers], dtype=np.float64)


def _timely(features: Features, context: QueryContext) -> Column:
    if context.time_span is not None:
        return relative_recency(features.timestamp, *context.time_span)
    if context.parsed.time is None:
        return np.zeros(len(features.ids))
    mentions = [[_mention(kept) for kept in mentioned or ()] for mentioned in features.mentions]
    return time_match(context.parsed.time, features.timestamp, mentions)


def _rare(features: Features, groups: Collection[tuple[str, ...]], context: QueryContext) -> Column:
    texts = features.terms or [()] * len(features.ids)
    return exact_match(groups, context.parsed.terms, context.rarity, texts)


def _entity(features: Features, context: QueryContext) -> Column:
    column = np.zeros(len(features.ids))
    if context.entity_weights:
        for at, each in enumerate(features.ids):
            if named := context.entities.memories.get(each):
                column[at] = entity_match(named, context.entity_weights, len(context.entities.named_as))
    return column


def _goal(features: Features, context: QueryContext) -> Column:
    if not context.goals:
        return np.zeros(len(features.ids))
    return np.array([context.goals.get(key, 0.0) for key in features.ids], dtype=np.float64)


def factors(features: Features, context: QueryContext) -> dict[str, Column]:
    """The factors of the sum; only those that are switched on."""
    on, made = context.ranking.factors, dict[str, Column]()
    stats = [context.stats.get(key) for key in features.ids] if on.importance or on.salience else []
    if on.expired_factor != 1:
        made["validity"] = _validity(features, context)
    if on.tells_tags:
        made["temporal_tag"] = _temporal_tag(features, context)
    if on.importance:
        relevance = np.array([stat.relevance if stat else 1.0 for stat in stats], dtype=np.float64)
        made["importance"] = _centre(on.importance, np.array(features.importance, dtype=np.float64) * relevance)
    if on.salience:
        salience = np.array([stat.salience if stat else None for stat in stats], dtype=np.float64)
        made["salience"] = _centre(on.salience, salience)
    if on.recency:
        now = (context.query.reference or context.now).timestamp()
        days = [max(0.0, now - moment.timestamp()) / DAY_S for moment in features.timestamp]
        made["recency"] = _centre(on.recency, np.exp2(-np.array(days, dtype=np.float64) / HALF_LIFE_DAYS))
    return made


def _centre(strength: float, value: Column) -> Column:
    """The factor for a value 0..1: 1 for a value of 0.5, 1 - strength for 0 and 1 + strength for 1."""
    return 1 + strength * (2 * np.clip(value, 0.0, 1.0) - 1)


def _temporal_tag(features: Features, context: QueryContext) -> Column:
    """Past lowers and current raises the score, unless the query asks about a time, for what was, or for something
    to be done: what somebody did once may matter there as much as a habit."""
    parsed = context.parsed
    timeless = parsed.time is None and not parsed.about_past and not parsed.is_request and context.query.window.is_open
    if not timeless or context.query.narrow.valid_at is not None:
        return np.ones(len(features.ids))
    on = context.ranking.factors
    by_tag = {"current": on.current_factor, "past": on.past_factor}  # a memory tagged `future` keeps its score
    return np.array([by_tag.get(tag or "", 1.0) for tag in features.temporal_tag], dtype=np.float64)


def _validity(features: Features, context: QueryContext) -> Column:
    """An expired memory ranks lower, unless the query asks about a time."""
    query = context.query
    if query.validity == "ignore" or not query.window.is_open or context.parsed.time is not None:
        return np.ones(len(features.ids))
    then = query.narrow.valid_at or context.now
    over = [ended is not None and ended <= then for ended in features.ended]
    return np.where(np.array(over, dtype=bool), context.ranking.factors.expired_factor, 1.0)


def _mention(kept: Mapping[str, object]) -> TimeMention:
    begins, ends = kept["begins_at"], kept["ends_at"]
    return TimeMention(
        str(kept["text"]),
        0,
        0,
        str(kept["kind"]),
        datetime.fromisoformat(begins) if isinstance(begins, str) else None,
        datetime.fromisoformat(ends) if isinstance(ends, str) else None,
    )


# -- phrasing: whether a text asks, and speaks of its speaker ---------------------------------------------------------

MAX_REMEMBERED: Final = 50_000
"""Texts that each measure caches, some 10 MB."""

UNKNOWN_FIRST_PERSON: Final = 0.5
"""Assumed for a text that is too long to be examined, because it is about many things."""

MAX_FIRST_PERSON_CHARS: Final = 2_000
"""A longer text is not examined for first-person speech."""


class _Remembered:
    """A measure of texts, 0..1, computed once per text and process: a text costs some microseconds, and a search has
    hundreds. Cached by id and hash, never by text, for up to MAX_REMEMBERED of them."""

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


_asking, _first_person = _Remembered(question_share), _Remembered(first_person)


def asking_share(ids: Sequence[UUID], texts: Sequence[str | None]) -> Column:
    """Returns the share of each text that asks, 0..1; 0 without a text."""
    possible = [text if text and ("?" in text or not text.isascii()) else None for text in texts]
    return _column(_asking, ids, possible, 0.0)


def first_person_share(ids: Sequence[UUID], texts: Sequence[str | None]) -> Column:
    """Returns how much each text speaks of its speaker, 0..1; UNKNOWN_FIRST_PERSON if there is no text, or a long
    one."""
    short = [text if text and len(text) <= MAX_FIRST_PERSON_CHARS else None for text in texts]
    return _column(_first_person, ids, short, UNKNOWN_FIRST_PERSON)


def _column(measure: _Remembered, ids: Sequence[UUID], texts: Sequence[str | None], unknown: float) -> Column:
    values = [unknown if text is None else measure.of(each, text) for each, text in zip(ids, texts, strict=True)]
    return np.array(values, dtype=np.float64)


# -- how well candidates match the speaker, the time, exact terms and entities ----------------------------------------

NAMED_SPEAKER: Final = 0.6
"""Score of a turn by a speaker that the query names. A turn by the role asked for scores 1; a name may also be the
topic ("Ana's boat")."""

FADE_DAYS: Final = 7.0
"""The score falls by e in this many days after the time asked for, three times as fast before it."""

OTHER_YEAR: Final = 0.8
"""The score of the same dates in another year than the one that was understood."""

MAX_MENTION_LENGTH: Final = timedelta(days=45)
"""Longer intervals that a memory mentions ("since 2016") say too little about the time asked for."""


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
    wanted: QueryTime | None, times: Sequence[datetime], mentions: Sequence[Iterable[TimeMention]] | None = None
) -> Column:
    """Returns 0..1 for each memory by its own time (UTC) and the times mentioned in it; 0 for all when no time is
    asked for."""
    if wanted is None:
        return np.zeros(len(times))
    seconds = _epoch_seconds(times)
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
    recency: Column = np.clip((_epoch_seconds(times) - oldest.timestamp()) / span, 0.0, 1.0)
    return recency


def _epoch_seconds(times: Sequence[datetime]) -> Column:
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


def _overlaps(wanted: QueryTime, mention: TimeMention) -> bool:
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
