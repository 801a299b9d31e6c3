"""What do the measures of a candidate mean for this question? From rows to signals and factors; pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from uuid import UUID

from service.db.hybrid import Measured
from service.db.named import Naming
from service.db.stats import Standing
from service.domain.query import Query
from service.domain.ranking import Ranking, Weights
from service.domain.temporal import Mention
from service.language.context import asking
from service.retrieval import fusion, question
from service.retrieval.fusion import Asking, Signals
from service.retrieval.question import Question

TAGGED = {"current": 1.2, "past": 0.7}
"""R7.15; what is to come counts as it is."""

NEXT = 0.5
"""What an entity next to one that is asked for counts, at full strength of the relation."""

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
    read: Question
    now: datetime
    terms: Mapping[str, int]
    own: Mapping[int, float]
    near: Mapping[int, float]
    rarity: Mapping[str, float]
    naming: Naming = field(default_factory=Naming)
    names: Mapping[str, float] = field(default_factory=dict)
    standing: Mapping[UUID, Standing] = field(default_factory=dict)
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


def with_odd(scene: Scene, measured: Iterable[Measured], worded: int) -> Scene:
    """The scene, knowing whether an odd word stands in one of the hardly any texts (`worded`) that have a word of the
    question."""
    if not 0 < worded <= few(scene.texts):
        return scene
    found = (question.rare_match(scene.read.odd, _held(each, scene), scene.rarity) for each in measured)
    return replace(scene, only_rare=any(value > 0 for value in found))


def rare(scene: Scene) -> Collection[tuple[str, ...]]:
    """What has to be found to the letter."""
    return scene.read.odd if scene.only_rare else scene.read.rare


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
        "speaker": bool(read.named) or read.role is not None,
        "time": read.asked is not None or scene.span is not None,
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
        bool(scene.names) and question.only_names(read, chain.from_iterable(scene.naming.said.values())),
        scene.only_rare,
    )


SHORTEST_SPAN = timedelta(days=1)
"""Of what was stored in one go the last is not the newest."""


def span(read: Question, measured: Sequence[Measured]) -> tuple[datetime, datetime] | None:
    """The times of the oldest and the newest candidate; None unless the question asks for the present."""
    if not read.present or not measured:
        return None
    times = [each.timestamp for each in measured]
    oldest, newest = min(times), max(times)
    return (oldest, newest) if newest - oldest >= SHORTEST_SPAN else None


def of(each: Measured, scene: Scene) -> Signals:
    """The signals and factors of one candidate."""
    read = scene.read
    mentions = [_mention(kept) for kept in each.mentions] if read.asked else []
    return Signals(
        key=each.id,
        text_lexical=each.text_lexical,
        context_lexical=each.context_lexical,
        text_vector=each.text_vector,
        context_vector=each.context_vector,
        speaker=question.speaker_match(read, each.speaker, each.role),
        asking=_asking(each),
        time=_timely(each, scene, mentions),
        rare=question.rare_match(rare(scene), _held(each, scene), scene.rarity),
        tag=float(any(tag in each.tag_prefixes for tag in scene.query.tags)),
        entity=question.entity_match(scene.naming.memories.get(each.id, ()), scene.names, len(scene.naming.said)),
        goal=scene.goals.get(each.id, 0.0),
        factors=factors(each, scene),
    )


def _held(each: Measured, scene: Scene) -> set[str]:
    """The question's words that the text has."""
    return {term for term, number in scene.terms.items() if number in each.terms}


def _timely(each: Measured, scene: Scene, mentions: Sequence[Mention]) -> float:
    if scene.span is not None:
        return question.newness(each.timestamp, *scene.span)
    return question.time_match(scene.read.asked, each.timestamp, mentions)


_seen: dict[tuple[UUID, int], float] = {}
MOST_SEEN = 50_000
"""How much of a text asks is worked out once per text and process: of all signals it alone costs more than counting.
Kept by id and hash, never by text."""


def _asking(each: Measured) -> float:
    key = (each.id, hash(each.text))
    found = _seen.get(key)
    if found is None:
        if len(_seen) >= MOST_SEEN:
            _seen.clear()
        found = _seen[key] = asking(each.text)
    return found


def factors(each: Measured, scene: Scene) -> dict[str, float]:
    """What the sum is multiplied by; only what is switched on."""
    on, found = scene.ranking.factors, dict[str, float]()
    if on.validity:
        found["validity"] = _validity(each, scene)
    if on.temporal_tag:
        found["temporal_tag"] = _tagged(each, scene)
    standing = scene.standing.get(each.id)
    if on.importance:
        found["importance"] = _around(on.importance, each.importance * (standing.relevance if standing else 1.0))
    if on.salience and standing:
        found["salience"] = _around(on.salience, standing.salience)
    if on.recency:
        age = max(timedelta(), (scene.query.reference or scene.now) - each.timestamp)
        found["recency"] = _around(on.recency, math.exp2(-(age / timedelta(days=scene.ranking.half_life_days))))
    return found


def _around(strength: float, value: float) -> float:
    """1 for a value of a half, up to 1 - strength and 1 + strength for 0 and 1."""
    return 1 + strength * (2 * min(1.0, max(0.0, value)) - 1)


def _tagged(each: Measured, scene: Scene) -> float:
    """R7.15, unless the question asks about a time (B10), for what was, or for something to be done: an operation two
    years ago says as much about somebody as a habit."""
    read = scene.read
    if read.asked is not None or read.looks_back or read.request or not scene.query.window.is_open:
        return 1.0
    if scene.query.narrow.valid_at is not None:
        return 1.0
    return TAGGED.get(each.temporal_tag or "", 1.0)


def _validity(each: Measured, scene: Scene) -> float:
    """R4.13: an expired memory ranks lower, unless the question asks about a time (B10)."""
    query = scene.query
    if query.validity == "ignore" or not query.window.is_open or scene.read.asked is not None:
        return 1.0
    then = query.narrow.valid_at or scene.now
    over = any(moment is not None and moment <= then for moment in (each.valid_until, each.t_invalid))
    return scene.ranking.expired_factor if over else 1.0


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
