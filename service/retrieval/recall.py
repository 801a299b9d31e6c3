"""What does an agent need to know before it answers? Turns, facts, entities, goals and who it speaks to, as one bundle.

The question is read and embedded with nothing held. Then every part is read in one snapshot, each by a reader of its
own. Turns that are kept as memories too are ranked as memories, which know their context; the others keep the place
that the search of turns gave them. Parts compete for the room by share times relevance plus a little for being recent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from service.db.cognition import goals, strategies
from service.db.engine import Session
from service.db.episodes.turns import Turns
from service.db.search import surroundings
from service.db.tenants import users
from service.domain.bundle import (
    PARTS,
    Bundle,
    EntityItem,
    FactItem,
    PartMetrics,
    PartName,
    Recall,
    Shares,
    TurnItem,
)
from service.domain.conversation import Turn, TurnHit
from service.domain.goal import Goal
from service.domain.memory import Hit
from service.domain.procedure import StrategyMatch
from service.domain.profile import Profile
from service.domain.query import Narrow, Query, SearchResult, TechniqueUse, Window
from service.errors import EmbeddingError
from service.providers.protocols import Vector
from service.resources import Resources
from service.retrieval import phrasing, search, techniques
from service.retrieval import strategies as fitting
from service.retrieval import turns as turn_search
from service.retrieval.packing import Block, cap, pack
from service.retrieval.stopwatch import Stopwatch

MOST_GOALS = 20
MOST_STRATEGIES = 5
ALIKE = 0.5
"""Similarity from which a strategy is about the task, calibrated."""

AT_LEAST = 50
"""Hits that are looked at however few are wanted: facts and turns come from one search."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was found, before it is cut to size; each part best first. `spoken`: places of the turns that answer, with
    how well (0..1). `told`: those turns and what stands around them."""

    spoken: Sequence[tuple[tuple[UUID, int], float]] = ()
    told: Mapping[tuple[UUID, int], Turn] = field(default_factory=dict)
    facts: Sequence[Hit] = ()
    entities: Sequence[EntityItem] = ()
    strategies: Sequence[StrategyMatch] = ()
    goals: Sequence[Goal] = ()
    profile: Profile | None = None


async def recall(asked: Recall, res: Resources) -> Bundle:
    """The bundle, within `asked.max_tokens`. Without an embedder only words, names and times count, and a warning says
    so."""
    limit = max(AT_LEAST, asked.top_k)
    query, used = await techniques.narrowed(_query(asked, limit), res)
    ready = await search.prepare(query, res, used)
    wanted = Turns(asked.scope, asked.since, channels=asked.channels)
    prepared = await turn_search.prepare(wanted, asked.text, res)
    task = await _task(asked, prepared, res)
    watch = Stopwatch()
    async with res.db.snapshot(asked.scope.workspace_id) as session:
        with watch.measure("facts"):
            found = await search.within(session, ready, res)
        spoken: list[tuple[tuple[UUID, int], float]] = []
        told: Mapping[tuple[UUID, int], Turn] = {}
        if "turns" in asked.include:
            with watch.measure("turns"):
                hits = await turn_search.ranked(session, wanted, prepared, limit, res)
                spoken = interleaved(hits, [hit for hit in found.hits if is_turn(hit)])[: asked.top_k]
                places = [place for place, _ in spoken]
                told = await surroundings.said(session, asked.scope.workspace_id, places, around=asked.around)
        read = Read(
            spoken,
            told,
            _facts(found, asked),
            await _entities(session, asked, (*ready.prepared.read.phrases, *prepared.read.speakers), res, watch),
            await _strategies(session, asked, task, res, watch),
            await _goals(session, asked, watch),
            await _profile(session, asked, watch),
        )
    warnings = tuple(dict.fromkeys((*found.warnings, *prepared.warnings)))
    return await res.threads.run(bundle, asked, read, found, warnings, watch.ms, res.clock())


async def _task(asked: Recall, prepared: turn_search.Prepared, res: Resources) -> Vector | None:
    """The vector of the whole question: names that became conditions are part of a task."""
    if "strategies" not in asked.include or prepared.ask.vector is None or prepared.read.embedding_text == asked.text:
        return prepared.ask.vector
    try:
        return await res.embedder.embed_query(asked.scope.workspace_id, asked.text)
    except EmbeddingError:
        return None


def _query(asked: Recall, limit: int) -> Query:
    return Query(
        asked.scope,
        asked.text,
        limit,
        Window(asked.since, None),
        narrow=Narrow(min_confidence=asked.min_confidence),
        channels=asked.channels,
        ranking=asked.ranking,
    )


async def _entities(
    session: Session, asked: Recall, names: Sequence[str], res: Resources, watch: Stopwatch
) -> list[EntityItem]:
    """What the question names, with what is known of it and what it is tied to (R7.19)."""
    if "entities" not in asked.include:
        return []
    with watch.measure("entities"):
        named = await surroundings.named(session, asked.scope, names)
        tied = await surroundings.relations(
            session, asked.scope.workspace_id, [each.id for each in named], now=res.clock()
        )
    return [EntityItem(each, 1.0, tuple(tied.get(each.id, ()))) for each in named[: asked.top_k]]


async def _strategies(
    session: Session, asked: Recall, vector: Vector | None, res: Resources, watch: Stopwatch
) -> list[StrategyMatch]:
    """What has worked in tasks like this one."""
    if "strategies" not in asked.include:
        return []
    with watch.measure("strategies"):
        found = await strategies.nearest(
            session,
            asked.scope,
            vector,
            generation=res.generation,
            limit=fitting.CANDIDATES,
            channels=asked.channels,
        )
        ranked = fitting.rank(found, res.embedder.query_similarity, limit=min(MOST_STRATEGIES, asked.top_k))
    return [each for each in ranked if each.similarity is None or each.similarity >= ALIKE]


async def _goals(session: Session, asked: Recall, watch: Stopwatch) -> list[Goal]:
    if "goals" not in asked.include:
        return []
    with watch.measure("goals"):
        return await goals.active(session, asked.scope, limit=min(MOST_GOALS, asked.top_k))


async def _profile(session: Session, asked: Recall, watch: Stopwatch) -> Profile | None:
    if "user_context" not in asked.include or asked.scope.user_id is None:
        return None
    with watch.measure("user_context"):
        return await users.profile(session, asked.scope.workspace_id, asked.scope.user_id)


def is_turn(hit: Hit) -> bool:
    """Is this memory a turn, kept as it was said?"""
    return hit.memory.conversation_id is not None and hit.memory.turn_index is not None


def interleaved(hits: Sequence[TurnHit], records: Sequence[Hit]) -> list[tuple[tuple[UUID, int], float]]:
    """Places of turns with how well they answer, best first: where the search of turns has one that is a memory too,
    the next best of those memories stands. Their scores stay theirs; a turn between two takes the higher one's, at
    most its own."""
    ranked = {_place(hit): hit.score for hit in records}
    slots = [(hit.turn.conversation_id, hit.turn.index) for hit in hits]
    waiting = iter(sorted(ranked, key=lambda place: -ranked[place]))
    found: list[tuple[tuple[UUID, int], float]] = []
    above = 1.0
    for place, hit in zip(slots, hits, strict=True):
        if place in ranked:
            place = next(waiting)
            above = ranked[place]
            found.append((place, above))
        else:
            found.append((place, min(hit.score, above)))
    found += [(place, ranked[place]) for place in waiting]
    return found


def _place(hit: Hit) -> tuple[UUID, int]:
    assert hit.memory.conversation_id is not None, "a turn has a place"
    assert hit.memory.turn_index is not None, "a turn has a place"
    return hit.memory.conversation_id, hit.memory.turn_index


def _facts(found: SearchResult, asked: Recall) -> list[Hit]:
    """Memories that are no turns, each text once: a promoted copy says the same in another channel (R2.06)."""
    if "facts" not in asked.include:
        return []
    once: dict[str, Hit] = {}
    for hit in found.hits:
        if not is_turn(hit):
            once.setdefault(hit.memory.hash, hit)
    return list(once.values())[: asked.top_k]


def bundle(
    asked: Recall,
    read: Read,
    found: SearchResult,
    warnings: Sequence[str],
    ms: Mapping[str, float],
    now: datetime,
) -> Bundle:
    """What of all that was found fits into the room. Pure."""
    shares, half_life = asked.shares, asked.ranking.half_life_days
    best = dict(read.spoken)
    passages = [
        phrasing.passage(
            [
                turn
                for index in range(place[1] - asked.around, place[1] + asked.around + 1)
                if (turn := read.told.get((place[0], index))) is not None
                and (asked.since is None or turn.timestamp >= asked.since)
            ],
            _score(shares.turns, relevance, read.told[place].timestamp, shares, now, half_life),
        )
        for place, relevance in read.spoken
        if place in read.told
    ]
    kept = cap(passages, lambda piece: piece.group and piece.group[0], asked.per_conversation)
    facts = [
        phrasing.fact(
            hit.memory, _score(shares.facts, min(1.0, hit.score), hit.memory.timestamp, shares, now, half_life)
        )
        for hit in read.facts
    ]
    entities = [phrasing.entity(each, _share(shares.entities, shares)) for each in read.entities]
    ways = [phrasing.strategy(each, _share(shares.strategies, shares) * each.score) for each in read.strategies]
    fixed = [phrasing.goal(each, now) for each in read.goals]
    fixed += phrasing.context(read.profile) if read.profile else []
    block = Block(phrasing.HEADINGS, asked.max_tokens)
    pack(fixed, block)  # who is spoken to and what for comes first: it is short
    pack([*kept, *facts, *entities, *ways], block)
    taken = {part: block.lines.get(part, {}) for part in PARTS}
    scores = {line.key: piece.score for piece in reversed(kept) for line in piece.lines}  # the best passage counts
    turns = [
        TurnItem(turn, scores[place], best.get(place, 0.0), place not in best)
        for place, turn in read.told.items()
        if place in taken["turns"]
    ]
    by_score = {piece.lines[0].key: piece.score for piece in facts}
    metrics = _metrics(asked, read, block, ms)
    return Bundle(
        turns=tuple(sorted(turns, key=lambda each: (-each.score, each.around, each.turn.index))),
        facts=tuple(
            FactItem(hit.memory, by_score[hit.memory.id], hit.score, hit.similarity)
            for hit in read.facts
            if hit.memory.id in taken["facts"]
        ),
        entities=tuple(each for each in read.entities if each.entity.id in taken["entities"]),
        strategies=tuple(each for each in read.strategies if each.strategy.id in taken["strategies"]),
        goals=tuple(each for each in read.goals if each.id in taken["goals"]),
        profile=read.profile if taken["user_context"] else None,
        text=block.text(PARTS),
        tokens=block.tokens,
        metrics=metrics,
        vector_path=found.vector_path,
        techniques=dict[str, TechniqueUse](found.techniques),
        warnings=tuple(warnings),
    )


def _metrics(asked: Recall, read: Read, block: Block, ms: Mapping[str, float]) -> dict[PartName, PartMetrics]:
    count = {
        "turns": len(read.told),
        "facts": len(read.facts),
        "entities": len(read.entities),
        "strategies": len(read.strategies),
        "goals": len(read.goals),
        "user_context": 1 if read.profile else 0,
    }
    return {
        part: PartMetrics(count[part], len(block.lines.get(part, {})), block.tokens_of(part), ms.get(part, 0.0))
        for part in PARTS
        if part in asked.include
    }


def _share(own: float, shares: Shares) -> float:
    whole = math.fsum((shares.turns, shares.facts, shares.entities, shares.strategies, shares.recency))
    return own / whole if whole else 0.0


def _score(own: float, relevance: float, at: datetime, shares: Shares, now: datetime, half_life_days: float) -> float:
    """Share times relevance, plus the share of recency for what is new: half of it after so many days (R7.13)."""
    days = max(0.0, (now - at).total_seconds() / 86_400)
    return _share(own, shares) * relevance + _share(shares.recency, shares) * math.exp2(-days / half_life_days)
