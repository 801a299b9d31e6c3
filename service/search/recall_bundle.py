"""Cuts the results of recall to the token budget; parts compete by share times relevance plus a share of recency."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from service.cognition.values import Goal, ProfileResponse, StrategyMatch
from service.domain.conversation import Turn, TurnPlace
from service.domain.memory import Hit
from service.domain.query import SearchResult, TechniqueMetrics
from service.domain.ranking import HALF_LIFE_DAYS, RecallWeights
from service.language.lexemes import lexemes
from service.language.prompt_text import one_line
from service.language.talk.dates import as_said
from service.language.talk.quotes import ASSISTANT_ROLES
from service.search import prompt_block
from service.search.prompt_block import PromptBlock, PromptLine, PromptPiece, cap_groups, format_turn, pack
from service.search.values import (
    PARTS,
    Bundle,
    EntityItem,
    FactItem,
    PartName,
    RecallPartMetrics,
    RecallQuery,
    TurnItem,
)

LONG_CHARS = 1_000
"""A longer message is shown by its passages that are memories, if there are any."""

BEST, FEW, LIKELY = 3, 6, 0.1
"""In a block with more than FEW turns up to BEST come first: those that are the answer with a probability of LIKELY or
more, and at least a third as probable as the first."""

PASSES = 3
"""The number of times a block is packed: its lines make others shorter or unnecessary, which leaves room for more."""

_TAKEN_UP: Final = re.compile(r" (?:asked|said): ")


@dataclass(frozen=True, slots=True)
class Message:
    """A memory with the text of a message, or of a passage of it from character `start` on. `own`: its words, with
    dates; `context`: the quotation before them of what it refers to ("Assistant asked: Shall we say Friday?")."""

    hit: Hit
    own: str
    start: int = 0
    context: str = ""

    @property
    def takes_up(self) -> str:
        """The words of the previous turn that the message refers to."""
        return _TAKEN_UP.split(self.context)[-1] if self.context else ""


def plain(text: str) -> str:
    """The words without the dates that were added to them."""
    return " ".join(as_said(text).split())


@dataclass(frozen=True, slots=True)
class RecallResults:
    """The parts of a recall before they are cut, each best first. `matches`: places of the turns that answer, with the
    best hit of each; `turns`: those turns and their context windows; `answer_probability`: that there is an answer
    (0..1, None if unknown). `messages`: the memories that keep these turns as they were said; `read_from`: a turn that
    each fact was read from; `later`: by id of a hit, it and the last that was said after it about the same thing."""

    matches: Mapping[TurnPlace, Hit]
    turns: Mapping[TurnPlace, Turn]
    facts: Sequence[Hit]
    entities: Sequence[EntityItem]
    strategies: Sequence[StrategyMatch]
    goals: Sequence[Goal]
    profile: ProfileResponse | None
    answer_probability: float | None = None
    messages: Mapping[TurnPlace, Sequence[Message]] = field(default_factory=dict)
    read_from: Mapping[UUID, TurnPlace] = field(default_factory=dict)
    later: Mapping[UUID, tuple[Hit, Hit]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scoring:
    """Scores that are comparable between parts."""

    shares: RecallWeights
    now: datetime

    def share(self, part: float) -> float:
        """The part's share of all, 0..1."""
        shares = self.shares
        total = math.fsum((shares.turns, shares.facts, shares.entities, shares.strategies, shares.recency))
        return part / total if total else 0.0

    def score(self, part: float, relevance: float, at: datetime) -> float:
        """Share times relevance, plus the share of recency, which halves every HALF_LIFE_DAYS."""
        days = max(0.0, (self.now - at).total_seconds() / 86_400)
        recency = self.share(self.shares.recency) * math.exp2(-days / HALF_LIFE_DAYS)
        return self.share(part) * relevance + recency

    def of_fact(self, hit: Hit) -> float:
        return self.score(self.shares.facts, min(1.0, hit.score), hit.memory.timestamp)


def bundle(
    query: RecallQuery,
    results: RecallResults,
    result: SearchResult,
    warnings: Sequence[str],
    ms: Mapping[str, float],
    now: datetime,
) -> Bundle:
    """Returns the results that fit into `query.max_tokens`. `ms`: milliseconds by part."""
    scoring = _Scoring(query.shares, now)
    several = len({conversation_id for conversation_id, _ in results.turns}) > 1
    places: dict[UUID, set[TurnPlace]] = {}
    for place, messages in results.messages.items():
        for message in messages:
            places.setdefault(message.hit.memory.id, set()).add(place)
    lines = _Lines(results, _likeliest(results), ZoneInfo(query.timezone or "UTC"), now, several, places)
    bare = {item.entity.id for item in results.entities if not (item.entity.description or item.relations)}
    others = [
        prompt_block.entity(item, scoring.share(query.shares.entities))
        for item in results.entities
        if item.entity.id not in bare
    ]
    others += [
        prompt_block.strategy(match, scoring.share(query.shares.strategies) * match.score)
        for match in results.strategies
    ]
    always = [prompt_block.goal(goal, now) for goal in results.goals]  # with the user first: they are short
    always += prompt_block.user_context(results.profile) if results.profile else []
    taken = set[Hashable]()
    for _ in range(PASSES):
        passages, facts = _passages(query, results, scoring, lines), _facts(results, scoring, lines)
        block = PromptBlock(prompt_block.HEADINGS, query.max_tokens)
        pack(always, block)
        pieces = [*passages, *facts, *others]
        first = pack([piece for piece in pieces if piece.keys in taken], block)
        taken = {piece.keys for piece in (*first, *pack(pieces, block))}
        lines = replace(lines, known=block.lines)
    kept = {part: block.lines.get(part, {}) for part in PARTS}
    known = _fact_items(results, scoring, block)
    entities = tuple(item for item in results.entities if item.entity.id in bare | kept["entities"].keys())
    return Bundle(
        turns=_turn_items(results, passages, block),
        facts=known,
        entities=entities,
        strategies=tuple(match for match in results.strategies if match.strategy.id in kept["strategies"]),
        goals=tuple(goal for goal in results.goals if goal.id in kept["goals"]),
        profile=results.profile if kept["user_context"] else None,
        text=block.text(PARTS),
        tokens=block.tokens,
        metrics=_metrics(query, results, block, ms, {"facts": len(known), "entities": len(entities)}),
        vector_path=result.vector_path,
        techniques=dict[str, TechniqueMetrics](result.techniques),
        warnings=tuple(warnings),
        answer_probability=results.answer_probability,
    )


@dataclass(frozen=True, slots=True)
class _Lines:
    """How turns and facts of one or `several` conversations are written. `places`: the turns that each memory is kept
    of; `known`: the block's lines, by part."""

    results: RecallResults
    likeliest: Sequence[TurnPlace]
    zone: ZoneInfo
    now: datetime
    several: bool
    places: Mapping[UUID, set[TurnPlace]]
    known: Mapping[str, Mapping[Hashable, object]] = field(default_factory=dict)

    def day(self, at: datetime) -> date:
        return at.astimezone(self.zone).date()

    def of_turn(self, turn: Turn) -> PromptLine:
        """A message in its own words, after the quotation of what it refers to, unless that is above it in the block
        or the message is only there for the reply to it."""
        place, first = (turn.conversation_id, turn.index), self._comes_first(turn)
        kept = sorted(self.results.messages.get(place, ()), key=lambda each: each.start)
        text = format_turn(turn)
        if len(kept) == 1 and plain(kept[0].own) == plain(turn.text):
            text = format_turn(turn, kept[0].own)
            replied_to = first and place not in self.likeliest
            if kept[0].context and not (replied_to or self._is_above(turn, kept[0].takes_up)):
                text = f"{self._without_above(turn, kept[0].context)} {text}"
        elif kept and len(turn.text) > LONG_CHARS:
            text = format_turn(turn, " \u2026 ".join(message.own for message in kept))
        marks = dict.fromkeys(self.marks(message.hit) for message in kept)
        marks |= dict.fromkeys(self.marks(message.hit, repeated=True) for message in self._repeated_in(turn))
        return prompt_block.turn_line(turn, text + "".join(marks), self.zone, named=self.several, first=first)

    def _comes_first(self, turn: Turn) -> bool:
        """Whether a turn of a long block probably answers, or is what such a turn replies to."""
        ahead = range(1 + ("?" in turn.text or turn.role not in ASSISTANT_ROLES))
        return self._is_long and any((turn.conversation_id, turn.index + more) in self.likeliest for more in ahead)

    def _is_above(self, turn: Turn, words: str) -> bool:
        """Whether an earlier turn of the conversation says this in the block, except for what the quotation leaves out
        of it."""
        parts, first = [part.strip() for part in plain(words).split("\u2026")], self._comes_first(turn)
        return any(
            each.index < turn.index and all(part in plain(each.text) for part in parts)
            for place, each in self.results.turns.items()
            if place in self.known.get("turns", {}) and each.conversation_id == turn.conversation_id
            if not first or self._comes_first(each)
        )

    def _without_above(self, turn: Turn, context: str) -> str:
        """A quotation of two turns without the first one if that is above it in the block."""
        place = (turn.conversation_id, turn.index - 2)
        if place in self.known.get("turns", {}) and not self._comes_first(turn):
            return plain(context).partition(f": {plain(self.results.turns[place].text)} ")[2] or one_line(context)
        return one_line(context)

    def _repeated_in(self, turn: Turn) -> list[Message]:
        """The statements that an answer of the assistant repeats: "9:45, got it." is outdated with what it answers."""
        before = self.results.messages.get((turn.conversation_id, turn.index - 1), ())
        words = set(lexemes(turn.text)) if before and turn.role == "assistant" else set()
        return [message for message in before if words and not words.isdisjoint(lexemes(message.own))]

    def marks(self, hit: Hit, *, repeated: bool = False) -> str:
        """Whether a statement is no longer valid, and on which days the block has a later or an earlier one.
        `repeated`: for a line that says it again, only what outdates it."""
        memory, marks = hit.memory, list[str]()
        if memory.t_invalid is not None and memory.t_invalid <= self.now:
            marks.append(f"no longer so, {self.day(memory.t_invalid)}")
        for older, newer in self.results.later.values():
            is_change = newer.memory.id in (*older.memory.superseded_by, *older.memory.may_be_outdated_by)
            if memory.id not in (older.memory.id, newer.memory.id) or not self._names(older, newer, is_change):
                continue
            if repeated and not (is_change and memory.id == older.memory.id):
                continue
            then, now = self.day(older.memory.timestamp), self.day(newer.memory.timestamp)
            if memory.id == older.memory.id:
                seen = f"{now}" if then != now else "later that day"
                marks.append(f"{'may have changed' if is_change else 'more on this'}: see {seen}")
            else:
                when = f"{then}" if then != now else "earlier that day"
                marks.append(f"{'may change' if is_change else 'more on'} what was said {when}")
        return f" ({'; '.join(dict.fromkeys(marks))})" if marks else ""

    def _names(self, older: Hit, newer: Hit, is_change: bool) -> bool:
        """Whether two statements about one thing name each other's days: both are in the block. In a long block they
        are from two days or conversations, since others are read in their order anyway, and both are among the
        likeliest, or one of a change."""
        if not (self._has(older) and self._has(newer)):
            return False
        if not self._is_long:
            return True
        days = {(self.day(hit.memory.timestamp), hit.memory.conversation_id) for hit in (older, newer)}
        kept = [self.places.get(hit.memory.id, set()) for hit in (older, newer)]
        likely = [not each or not each.isdisjoint(self.likeliest) for each in kept]
        return len(days) > 1 and (any(likely) if is_change else all(likely))

    def _has(self, hit: Hit) -> bool:
        """Whether a statement is in the block."""
        facts, turns = self.known.get("facts", {}), self.known.get("turns", {})
        return hit.memory.id in facts or any(place in turns for place in self.places.get(hit.memory.id, ()))

    @property
    def _is_long(self) -> bool:
        return len(self.known.get("turns", {})) > FEW


def _likeliest(results: RecallResults) -> list[TurnPlace]:
    """The turns that are most likely the answer, at most BEST."""
    of_turns = sorted(((hit.answer_probability or 0.0, place) for place, hit in results.matches.items()), reverse=True)
    return [place for chance, place in of_turns[:BEST] if chance >= max(LIKELY, of_turns[0][0] / 3)]


def _passages(query: RecallQuery, results: RecallResults, scoring: _Scoring, lines: _Lines) -> list[PromptPiece]:
    """Each turn that matches with its context window; an answer of the assistant with what it answers."""
    passages, since = [], query.window.start
    for place, hit in results.matches.items():
        if place not in results.turns:
            continue
        conversation_id, index = place
        before = max(query.context_window, results.turns[place].role in ASSISTANT_ROLES)
        window = range(index - before, index + query.context_window + 1)
        turns = [turn for each in window if (turn := results.turns.get((conversation_id, each))) is not None]
        recent = [turn for turn in turns if since is None or turn.timestamp >= since]
        score = scoring.score(query.shares.turns, min(1.0, hit.score), results.turns[place].timestamp)
        texts = tuple(lines.of_turn(turn) for turn in recent)
        passages.append(PromptPiece("turns", score, texts, group=conversation_id))
    return cap_groups(passages, query.per_conversation)


def _facts(results: RecallResults, scoring: _Scoring, lines: _Lines) -> list[PromptPiece]:
    """Facts that are not messages and whose turn is not in the block, those about one topic next to each other."""
    known = {message.hit.memory.id for kept in results.messages.values() for message in kept}
    known |= {key for key, place in results.read_from.items() if place in lines.known.get("turns", {})}
    first: dict[UUID, datetime] = {}
    for hit in results.facts:
        topic = results.later.get(hit.memory.id, (hit, hit))[1].memory.id
        first[topic] = min(first.get(topic, hit.memory.timestamp), hit.memory.timestamp)
    facts = []
    for hit in results.facts:
        if (memory := hit.memory).id not in known:
            topic = results.later.get(memory.id, (hit, hit))[1].memory.id
            score, day, order = scoring.of_fact(hit), lines.day(memory.timestamp), (first[topic], str(topic))
            facts.append(prompt_block.fact(memory, score, day, lines.marks(hit), order))
    return facts


def _turn_items(results: RecallResults, passages: Sequence[PromptPiece], block: PromptBlock) -> tuple[TurnItem, ...]:
    """The turns in the block, best first; one of several passages has the score of the best."""
    taken = block.lines.get("turns", {})
    scores = {line.key: piece.score for piece in reversed(passages) for line in piece.lines}
    items = [
        TurnItem(turn, scores[place], results.matches.get(place))
        for place, turn in results.turns.items()
        if place in taken
    ]
    return tuple(sorted(items, key=lambda each: (-each.score, each.hit is None, each.turn.index)))


def _fact_items(results: RecallResults, scoring: _Scoring, block: PromptBlock) -> tuple[FactItem, ...]:
    """The facts in the block, also those that are there as the turn that says them."""
    places = [(place, message.hit.memory.id) for place, kept in results.messages.items() for message in kept]
    places += [(place, key) for key, place in results.read_from.items()]
    seen = {key for place, key in places if place in block.lines.get("turns", {})} | block.lines.get("facts", {}).keys()
    return tuple(FactItem(hit, scoring.of_fact(hit)) for hit in results.facts if hit.memory.id in seen)


def _metrics(
    query: RecallQuery, results: RecallResults, block: PromptBlock, ms: Mapping[str, float], shown: dict[PartName, int]
) -> dict[PartName, RecallPartMetrics]:
    counts = {
        "turns": len(results.turns),
        "facts": len(results.facts),
        "entities": len(results.entities),
        "strategies": len(results.strategies),
        "goals": len(results.goals),
        "user_context": 1 if results.profile else 0,
    }
    kept = {part: len(block.lines.get(part, {})) for part in PARTS} | shown
    return {
        part: RecallPartMetrics(found=counts[part], kept=kept[part], tokens=block.tokens_of(part), ms=ms.get(part, 0.0))
        for part in PARTS
        if part in query.include
    }
