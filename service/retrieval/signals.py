"""What do the measures of a candidate mean for this question? From rows to signals and factors; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from uuid import UUID

import numpy as np

from service.db.memories.stats import RankingStats
from service.db.search.entity_arm import Naming
from service.db.search.features import SPOKEN, Measures
from service.domain.query import Query
from service.domain.ranking import Ranking, Weights
from service.domain.temporal import Mention
from service.retrieval import fusion, matching, phrasing_signals, query_parsing
from service.retrieval.fusion import Asking, Column, Columns
from service.retrieval.query_parsing import ParsedQuery

TAGGED = {"current": 1.2, "past": 0.7}
"""R7.15; what is to come counts as it is."""

NEXT = 0.5
"""What an entity next to one that is asked for counts, at full strength of the relation."""

DAY_S = 86_400.0

MOST_FEW = 3
"""Texts with a word of the question that are still hardly any, in a scope of hundreds."""

WORDS = ("text_lexical", "context_lexical", "rare", "rare_alone")
"""What the technique `hybrid` adds to vectors."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What all candidates have in common: the question, how it ranks, and what was counted in its scope.

    `own`, `near`: IDF by term number; `rarity`: of a lexeme, 0..1; `names`: what naming an entity is worth, 0..1;
    `texts`: how many may be seen; `only_rare`: hardly one has a word of the question, so odd ones are rare;
    `goals`: how strongly active goals pull at each candidate, 0..1, empty without one. `span`: the times of the oldest
    and the newest candidate, for a question about the present.
    """

    query: Query
    read: ParsedQuery
    now: datetime
    terms: Mapping[str, int]
    own: Mapping[int, float]
    near: Mapping[int, float]
    rarity: Mapping[str, float]
    naming: Naming = field(default_factory=Naming)
    names: Mapping[str, float] = field(default_factory=dict)
    standing: Mapping[UUID, RankingStats] = field(default_factory=dict)
    only_rare: bool = False
    texts: int = 0
    goals: Mapping[UUID, float] = field(default_factory=dict)
    span: tuple[datetime, datetime] | None = None

    @property
    def ranking(self) -> Ranking:
        return self.query.ranking


def few(texts: int) -> int:
    """So many of the texts are hardly any."""
    return max(1, min(MOST_FEW, texts // 50))


def wanted(scene: Scene, worded: int) -> frozenset[str]:
    """Which measures (measures.SOMETIMES and SPOKEN) this question needs; `worded`: texts that have a word of it."""
    ranking, read = scene.ranking, scene.read
    on = ranking.factors
    needed = {
        "speaker": bool(read.speakers),
        "role": read.role is not None,
        "timestamp": read.time is not None or read.about_present or on.recency > 0,
        "mentions": read.time is not None,
        SPOKEN: bool(read.speakers),
        "dated": read.asks_when,
        "tagged": bool(scene.query.tags),
        "terms": ranking.diversity > 0 or bool(read.exact_terms) or _hardly_any(scene, worded),
        "ended": on.validity,
        "temporal_tag": on.temporal_tag,
        "importance": on.importance > 0,
    }
    return frozenset(name for name, needs in needed.items() if needs)


def _hardly_any(scene: Scene, worded: int) -> bool:
    return 0 < worded <= few(scene.texts)


def with_odd(scene: Scene, found: Measures, worded: int) -> Scene:
    """The scene, knowing whether an odd word stands in one of the hardly any texts (`worded`) that have a word of the
    question."""
    if not _hardly_any(scene, worded):
        return scene
    return replace(scene, only_rare=bool(_rare(found, scene.read.rare_terms, scene).any()))


def rare(scene: Scene) -> Collection[tuple[str, ...]]:
    """What has to be found to the letter."""
    return scene.read.rare_terms if scene.only_rare else scene.read.exact_terms


def worth(naming: Naming, texts: int) -> dict[str, float]:
    """What naming each entity is worth, 0..1: 1 when a single memory does, little when most do; an entity that is one
    step away at most half of it."""
    top = fusion.idf(max(texts, 1), 1)
    return {
        name: min(1.0, fusion.idf(max(texts, 1), found) / top) * (1.0 if name in naming.said else NEXT * strength)
        for name, found in naming.texts.items()
        for strength in [naming.beside.get(name, 1.0)]
    }


def weights(ranking: Ranking) -> Weights:
    """The weights in force: without hybrid search only vectors and what a memory is count."""
    if ranking.techniques.hybrid:
        return ranking.weights
    return ranking.weights.model_copy(update=dict.fromkeys(WORDS, 0.0))


def asked(scene: Scene) -> Asking:
    """What of the question matters to fusion."""
    read = scene.read
    applies = {
        "speaker": bool(read.speakers) or read.role is not None,
        "oneself": bool(read.speakers),
        "time": read.time is not None or scene.span is not None,
        "dated": read.asks_when,
        "rare": bool(rare(scene)),
        "tag": bool(scene.query.tags),
        "entity": bool(scene.names),
        "goal": bool(scene.goals),
    }
    return Asking(
        sum(scene.own.values()),
        sum(scene.near.values()),
        read.only_time,
        frozenset(name for name in applies if not applies[name]),
        bool(scene.names) and query_parsing.only_names(read, chain.from_iterable(scene.naming.said.values())),
        scene.only_rare,
    )


SHORTEST_SPAN = timedelta(days=1)
"""Of what was stored in one go the last is not the newest."""


def span(read: ParsedQuery, found: Measures) -> tuple[datetime, datetime] | None:
    """The times of the oldest and the newest candidate; None unless the question asks for the present."""
    if not read.about_present or not found.timestamp:
        return None
    oldest, newest = min(found.timestamp), max(found.timestamp)
    return (oldest, newest) if newest - oldest >= SHORTEST_SPAN else None


def of(found: Measures, scene: Scene) -> Columns:
    """The signals and factors of the candidates."""
    signals = {
        "text_lexical": found.text_lexical,
        "context_lexical": _or(found.context_lexical, found.text_lexical),
        "text_vector": found.text_vector,
        "context_vector": _or(found.context_vector, found.text_vector),
        "speaker": _speaker(found, scene.read),
        "telling": 1.0 - phrasing_signals.asking(found.ids, found.asking),
        "oneself": phrasing_signals.first_person(found.ids, found.asking)
        if scene.read.speakers
        else np.zeros(len(found.ids)),
        "time": _timely(found, scene),
        "dated": np.array(found.dated or np.zeros(len(found.ids)), dtype=np.float64),
        "rare": _rare(found, rare(scene), scene),
        "tag": np.array(found.tagged or np.zeros(len(found.ids)), dtype=np.float64),
        "entity": _entity(found, scene),
        "goal": _goal(found, scene),
    }
    return Columns(found.ids, signals, factors(found, scene))


def _or(column: Column, other: Column) -> Column:
    """What is known of a memory's context; one without context is its own."""
    return np.where(np.isnan(column), other, column)


def _speaker(found: Measures, read: ParsedQuery) -> Column:
    if not found.speaker and not found.role:
        return np.zeros(len(found.ids))
    nobody: Sequence[str | None] = [None] * len(found.ids)
    said = zip(found.speaker or nobody, found.role or nobody, strict=True)
    return np.array([matching.speaker_match(read, speaker, role) for speaker, role in said], dtype=np.float64)


def _timely(found: Measures, scene: Scene) -> Column:
    if scene.span is not None:
        return matching.relative_recency(found.timestamp, *scene.span)
    if scene.read.time is None:
        return np.zeros(len(found.ids))
    mentions = [[_mention(kept) for kept in told or ()] for told in found.mentions]
    return matching.time_match(scene.read.time, found.timestamp, mentions)


def _rare(found: Measures, groups: Collection[tuple[str, ...]], scene: Scene) -> Column:
    """How rare the rarest of these names, ids or words is that each text holds in full. Looked up from the words of the
    texts: a question may have ten thousand."""
    best = np.zeros(len(found.ids))
    sought: dict[int, list[tuple[list[int], float]]] = {}  # by the first word's number
    for group in groups:
        worth = max((scene.rarity.get(term, 0.0) for term in group), default=0.0)
        if worth > 0:
            numbers = [scene.terms.get(term, -1) for term in group]
            sought.setdefault(numbers[0], []).append((numbers, worth))
    if not sought:
        return best
    for at, terms in enumerate(map(frozenset, found.terms)):
        near = (each for first in sought.keys() & terms for each in sought[first])
        best[at] = max((worth for numbers, worth in near if terms.issuperset(numbers)), default=0.0)
    return best


def _entity(found: Measures, scene: Scene) -> Column:
    column = np.zeros(len(found.ids))
    if scene.names:
        for at, each in enumerate(found.ids):
            if named := scene.naming.memories.get(each):
                column[at] = matching.entity_match(named, scene.names, len(scene.naming.said))
    return column


def _goal(found: Measures, scene: Scene) -> Column:
    if not scene.goals:
        return np.zeros(len(found.ids))
    return np.array([scene.goals.get(each, 0.0) for each in found.ids], dtype=np.float64)


def factors(found: Measures, scene: Scene) -> dict[str, Column]:
    """What the sum is multiplied by; only what is switched on."""
    on, made = scene.ranking.factors, dict[str, Column]()
    standing = [scene.standing.get(each) for each in found.ids] if on.importance or on.salience else []
    if on.validity:
        made["validity"] = _validity(found, scene)
    if on.temporal_tag:
        made["temporal_tag"] = _tagged(found, scene)
    if on.importance:
        relevance = np.array([each.relevance if each else 1.0 for each in standing], dtype=np.float64)
        made["importance"] = _around(on.importance, np.array(found.importance, dtype=np.float64) * relevance)
    if on.salience:
        salience = np.array([each.salience if each else None for each in standing], dtype=np.float64)
        made["salience"] = _around(on.salience, salience)
    if on.recency:
        now = (scene.query.reference or scene.now).timestamp()
        days = [max(0.0, now - moment.timestamp()) / DAY_S for moment in found.timestamp]
        made["recency"] = _around(on.recency, np.exp2(-np.array(days, dtype=np.float64) / scene.ranking.half_life_days))
    return made


def _around(strength: float, value: Column) -> Column:
    """1 for a value of a half, up to 1 - strength and 1 + strength for 0 and 1."""
    return 1 + strength * (2 * np.clip(value, 0.0, 1.0) - 1)


def _tagged(found: Measures, scene: Scene) -> Column:
    """R7.15, unless the question asks about a time (B10), for what was, or for something to be done: an operation two
    years ago says as much about somebody as a habit."""
    read = scene.read
    timeless = read.time is None and not read.about_past and not read.is_request and scene.query.window.is_open
    if not timeless or scene.query.narrow.valid_at is not None:
        return np.ones(len(found.ids))
    return np.array([TAGGED.get(tag or "", 1.0) for tag in found.temporal_tag], dtype=np.float64)


def _validity(found: Measures, scene: Scene) -> Column:
    """R4.13: an expired memory ranks lower, unless the question asks about a time (B10)."""
    query = scene.query
    if query.validity == "ignore" or not query.window.is_open or scene.read.time is not None:
        return np.ones(len(found.ids))
    then = query.narrow.valid_at or scene.now
    over = [ended is not None and ended <= then for ended in found.ended]
    return np.where(np.array(over, dtype=bool), scene.ranking.expired_factor, 1.0)


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
