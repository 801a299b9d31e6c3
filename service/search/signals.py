"""The signals and factors of each candidate: what its features mean for this query. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Final
from uuid import UUID

import numpy as np

from service.domain import bm25
from service.domain.query import Query
from service.domain.ranking import HALF_LIFE_DAYS, Ranking, Weights
from service.domain.temporal import Mention
from service.language import questions
from service.language.context import first_person, question_share
from service.runtime.statements.stats import RankingStats
from service.search import fusion, matching, query_parsing
from service.search.fusion import Column, Columns, FusionContext, Ranked
from service.search.query_parsing import ParsedQuery
from service.search.statements.candidates import EntityMatches
from service.search.statements.features import SHORT_TEXTS, Features, TermIdf
from service.search.statements.search_plan import Candidates

NEXT_ENTITY = 0.5
"""Weight of an entity next to one that the query names, at full strength of the relation."""

GOAL_SIMILARITY = 0.70
"""Similarity to a goal from which on a memory serves it."""

DAY_S = 86_400.0

MAX_FEW_MATCHES = 3
"""When at most three texts contain a term of the query (in scopes below 150 texts one in fifty, but at least one), its
rare terms must match exactly."""

HYBRID_WEIGHTS = ("text_lexical", "context_lexical", "rare", "rare_alone")
"""The signals that the technique `hybrid` adds to vectors."""


@dataclass(frozen=True, slots=True)
class QueryContext:
    """All that ranking needs to know about a query, the same for every candidate.

    `term_ids`: by lexeme; `rarity`: of a lexeme, 0..1; `entities`, `entity_weights`: the entities that the query names
    and the weight of naming each, 0..1; `stats`: the numbers that jobs and reads keep for each candidate; `text_count`:
    how many memories the search may see; `few_matches`: hardly any text contains a term of the query, so rare terms
    must match exactly; `goals`: how well each candidate serves an active goal, 0..1, empty without one; `time_span`:
    the times of the oldest and the newest candidate, for a query about the present.
    """

    query: Query
    parsed: ParsedQuery
    now: datetime
    term_ids: Mapping[str, int]
    idf: TermIdf
    rarity: Mapping[str, float]
    entities: EntityMatches = field(default_factory=EntityMatches)
    entity_weights: Mapping[str, float] = field(default_factory=dict)
    stats: Mapping[UUID, RankingStats] = field(default_factory=dict)
    few_matches: bool = False
    text_count: int = 0
    goals: Mapping[UUID, float] = field(default_factory=dict)
    time_span: tuple[datetime, datetime] | None = None

    @property
    def ranking(self) -> Ranking:
        return self.query.ranking


def query_context(
    query: Query,
    parsed: ParsedQuery,
    now: datetime,
    term_ids: Mapping[str, int],
    candidates: Candidates,
    entities: EntityMatches,
) -> QueryContext:
    """The query as ranking knows it before the features are read."""
    texts = candidates.text_count
    return QueryContext(
        query,
        parsed,
        now,
        term_ids,
        # a term that no text has still counts towards the score of a full match
        TermIdf(
            {number: bm25.idf(texts, candidates.text_df.get(number, 0.0)) for number in term_ids.values()},
            {number: bm25.idf(texts, candidates.context_df.get(number, 0.0)) for number in term_ids.values()},
        ),
        {term: fusion.rarity(texts, candidates.text_df.get(number, 0.0)) for term, number in term_ids.items()},
        entities,
        entity_weights(entities, texts),
        text_count=texts,
    )


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


def find_required_terms(context: QueryContext) -> Collection[tuple[str, ...]]:
    """The terms that must match exactly."""
    return context.parsed.rare_terms if context.few_matches else context.parsed.exact_terms


def entity_weights(entities: EntityMatches, texts: int) -> dict[str, float]:
    """The weight of naming each entity, 0..1: 1 if a single memory names it, little if most do; at most half of that
    for an entity one step away."""
    top = bm25.idf(max(texts, 1), 1)
    return {
        name: min(1.0, bm25.idf(max(texts, 1), count) / top)
        * (1.0 if name in entities.named_as else NEXT_ENTITY * entities.next_strength.get(name, 1.0))
        for name, count in entities.text_counts.items()
    }


def goal_pull(cosine: float | None, similarity: Callable[[float], float], *, is_linked: bool) -> float:
    """How well a memory serves an active goal, 0..1: 1 if it was linked by hand, else by its nearness from
    GOAL_SIMILARITY on. `cosine`: to the nearest goal; None if one of the two has no vector."""
    if is_linked:
        return 1.0
    return 0.0 if cosine is None else max(0.0, (similarity(cosine) - GOAL_SIMILARITY) / (1 - GOAL_SIMILARITY))


def weights(ranking: Ranking) -> Weights:
    """The weights in force: without hybrid search only vectors and properties of the memory count."""
    if ranking.techniques.hybrid:
        return ranking.weights
    return ranking.weights.model_copy(update=dict.fromkeys(HYBRID_WEIGHTS, 0.0))


def fusion_context(context: QueryContext) -> FusionContext:
    """The parts of the query that matter to fusion."""
    parsed = context.parsed
    applies = {
        "speaker": bool(parsed.speakers) or parsed.role is not None,
        "first_person": bool(parsed.speakers),
        "time": parsed.time is not None or context.time_span is not None,
        "dated": parsed.asks_when,
        "rare": bool(find_required_terms(context)),
        "tag": bool(context.query.tags),
        "entity": bool(context.entity_weights),
        "goal": bool(context.goals),
    }
    return FusionContext(
        sum(context.idf.of_texts.values()),
        sum(context.idf.of_contexts.values()),
        parsed.only_time,
        frozenset(name for name in applies if not applies[name]),
        bool(context.entity_weights)
        and query_parsing.only_names(parsed, chain.from_iterable(context.entities.named_as.values())),
        context.few_matches,
    )


def fuse(columns: Columns, context: QueryContext, *, limit: int | None = None, explain: bool = True) -> list[Ranked]:
    """The best `limit` candidates (None: all), best first."""
    ranking = context.ranking
    return fusion.fuse(columns, fusion_context(context), weights(ranking), ranking.fusion, limit=limit, explain=explain)


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
    return np.array([matching.speaker_match(parsed, speaker, role) for speaker, role in speakers], dtype=np.float64)


def _timely(features: Features, context: QueryContext) -> Column:
    if context.time_span is not None:
        return matching.relative_recency(features.timestamp, *context.time_span)
    if context.parsed.time is None:
        return np.zeros(len(features.ids))
    mentions = [[_mention(kept) for kept in mentioned or ()] for mentioned in features.mentions]
    return matching.time_match(context.parsed.time, features.timestamp, mentions)


def _rare(features: Features, groups: Collection[tuple[str, ...]], context: QueryContext) -> Column:
    texts = features.terms or [()] * len(features.ids)
    return matching.exact_match(groups, context.term_ids, context.rarity, texts)


def _entity(features: Features, context: QueryContext) -> Column:
    column = np.zeros(len(features.ids))
    if context.entity_weights:
        for at, each in enumerate(features.ids):
            if named := context.entities.memories.get(each):
                column[at] = matching.entity_match(named, context.entity_weights, len(context.entities.named_as))
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


def _mention(kept: Mapping[str, object]) -> Mention:
    begins, ends = kept["begins_at"], kept["ends_at"]
    return Mention(
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
