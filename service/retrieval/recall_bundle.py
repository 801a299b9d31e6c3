"""Cuts what recall has read to its token budget; parts compete by share times relevance plus a share of recency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from service.domain.bundle import (
    PARTS,
    Bundle,
    EntityItem,
    FactItem,
    PartMetrics,
    PartName,
    RecallQuery,
    TurnItem,
)
from service.domain.conversation import Turn
from service.domain.goal import Goal
from service.domain.memory import Hit
from service.domain.procedure import StrategyMatch
from service.domain.profile import Profile
from service.domain.query import SearchResult, TechniqueUse
from service.domain.ranking import RecallWeights
from service.retrieval import prompt_block
from service.retrieval.prompt_block import PromptBlock, PromptPiece, cap_groups, pack

TurnPlace = tuple[UUID, int]
"""A conversation and the turn's index in it."""


@dataclass(frozen=True, slots=True)
class RecallResults:
    """What was read before it is cut to size, each part best first. `matches`: places of the turns that answer, with
    their scores (0..1); `turns`: those turns and their context windows; `probabilities`: how likely each of them
    answers, `answer_probability`: how likely anything does (0..1, None where it cannot be told)."""

    matches: Sequence[tuple[TurnPlace, float]]
    turns: Mapping[TurnPlace, Turn]
    facts: Sequence[Hit]
    entities: Sequence[EntityItem]
    strategies: Sequence[StrategyMatch]
    goals: Sequence[Goal]
    profile: Profile | None
    probabilities: Mapping[TurnPlace, float | None] = field(default_factory=dict)
    answer_probability: float | None = None


@dataclass(frozen=True, slots=True)
class _Scoring:
    """Scores that are comparable between parts."""

    shares: RecallWeights
    half_life_days: float
    now: datetime

    def share(self, part: float) -> float:
        """The part's share of all, 0..1."""
        shares = self.shares
        total = math.fsum((shares.turns, shares.facts, shares.entities, shares.strategies, shares.recency))
        return part / total if total else 0.0

    def score(self, part: float, relevance: float, at: datetime) -> float:
        """Share times relevance, plus the share of recency, which halves every `half_life_days`."""
        days = max(0.0, (self.now - at).total_seconds() / 86_400)
        recency = self.share(self.shares.recency) * math.exp2(-days / self.half_life_days)
        return self.share(part) * relevance + recency


def bundle(
    query: RecallQuery,
    results: RecallResults,
    found: SearchResult,
    warnings: Sequence[str],
    ms: Mapping[str, float],
    now: datetime,
) -> Bundle:
    """Returns what of the results fits into `query.max_tokens`. `ms`: milliseconds by part."""
    scoring = _Scoring(query.shares, query.ranking.half_life_days, now)
    passages = cap_groups(_passages(query, results, scoring), query.per_conversation)
    facts = [_fact(hit, scoring) for hit in results.facts]
    entities = [prompt_block.entity(each, scoring.share(query.shares.entities)) for each in results.entities]
    strategies = [
        prompt_block.strategy(each, scoring.share(query.shares.strategies) * each.score) for each in results.strategies
    ]
    always = [prompt_block.goal(each, now) for each in results.goals]
    always += prompt_block.user_context(results.profile) if results.profile else []
    block = PromptBlock(prompt_block.HEADINGS, query.max_tokens)
    pack(always, block)  # user and goals come first: they are short
    pack([*passages, *facts, *entities, *strategies], block)
    taken = {part: block.lines.get(part, {}) for part in PARTS}
    return Bundle(
        turns=_turn_items(results, passages, block),
        facts=_fact_items(results, facts, block),
        entities=tuple(each for each in results.entities if each.entity.id in taken["entities"]),
        strategies=tuple(each for each in results.strategies if each.strategy.id in taken["strategies"]),
        goals=tuple(each for each in results.goals if each.id in taken["goals"]),
        profile=results.profile if taken["user_context"] else None,
        text=block.text(PARTS),
        tokens=block.tokens,
        metrics=_metrics(query, results, block, ms),
        vector_path=found.vector_path,
        techniques=dict[str, TechniqueUse](found.techniques),
        warnings=tuple(warnings),
        answer_probability=results.answer_probability,
    )


def _passages(query: RecallQuery, results: RecallResults, scoring: _Scoring) -> list[PromptPiece]:
    """Each turn that matches with its context window."""
    passages = []
    for place, relevance in results.matches:
        if place not in results.turns:
            continue
        conversation_id, index = place
        window = range(index - query.context_window, index + query.context_window + 1)
        turns = [turn for each in window if (turn := results.turns.get((conversation_id, each))) is not None]
        recent = [turn for turn in turns if query.since is None or turn.timestamp >= query.since]
        score = scoring.score(query.shares.turns, relevance, results.turns[place].timestamp)
        passages.append(prompt_block.passage(recent, score))
    return passages


def _fact(hit: Hit, scoring: _Scoring) -> PromptPiece:
    score = scoring.score(scoring.shares.facts, min(1.0, hit.score), hit.memory.timestamp)
    return prompt_block.fact(hit.memory, score)


def _turn_items(results: RecallResults, passages: Sequence[PromptPiece], block: PromptBlock) -> tuple[TurnItem, ...]:
    """The turns in the block, best first; one of several passages has the score of the best."""
    matches, taken = dict(results.matches), block.lines.get("turns", {})
    scores = {line.key: piece.score for piece in reversed(passages) for line in piece.lines}
    items = [
        TurnItem(
            turn,
            scores[place],
            matches.get(place, 0.0),
            place not in matches,
            results.probabilities.get(place) if place in matches else None,
        )
        for place, turn in results.turns.items()
        if place in taken
    ]
    return tuple(sorted(items, key=lambda each: (-each.score, each.is_context, each.turn.index)))


def _fact_items(results: RecallResults, facts: Sequence[PromptPiece], block: PromptBlock) -> tuple[FactItem, ...]:
    taken = block.lines.get("facts", {})
    scores = {piece.lines[0].key: piece.score for piece in facts}
    return tuple(
        FactItem(hit.memory, scores[hit.memory.id], hit.score, hit.similarity, hit.answer_probability)
        for hit in results.facts
        if hit.memory.id in taken
    )


def _metrics(
    query: RecallQuery, results: RecallResults, block: PromptBlock, ms: Mapping[str, float]
) -> dict[PartName, PartMetrics]:
    counts = {
        "turns": len(results.turns),
        "facts": len(results.facts),
        "entities": len(results.entities),
        "strategies": len(results.strategies),
        "goals": len(results.goals),
        "user_context": 1 if results.profile else 0,
    }
    return {
        part: PartMetrics(counts[part], len(block.lines.get(part, {})), block.tokens_of(part), ms.get(part, 0.0))
        for part in PARTS
        if part in query.include
    }
