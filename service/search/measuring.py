"""Measures the candidates of a search inside its snapshot: memories, turns, and memories as they once were.

Memories as they were recorded at a moment have no index: all of the scope are read, and their words are weighed here,
so that they rank like present ones. An explanation why one memory was found or not checks the rules of visibility one
by one, and measures a memory that meets them all like a candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from service.conversations.statements.turns import TurnFilter
from service.domain import sizes
from service.domain.memory import Hit
from service.domain.query import EVER, Explanation, Query
from service.domain.text import CleanText
from service.language import lexemes
from service.memories.statements import recorded, visibility
from service.memories.statements.recorded import RecordedScope
from service.memories.statements.visibility import RuleCheck
from service.observability import tracing
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.runtime.resources import Resources
from service.runtime.statements import stats
from service.runtime.statements.stats import RankingStats
from service.search import fusion, signals
from service.search.fusion import Columns, QueryContext
from service.search.preparation import PreparedSearch
from service.search.statements import candidates, features, turn_candidates
from service.search.statements.candidates import EntityMatches
from service.search.statements.features import Features, TermIdf
from service.search.statements.search_plan import Candidates, SearchPlan
from service.search.statements.turn_candidates import ContextScores, TurnQuery


@dataclass(frozen=True, slots=True)
class Measured:
    """The candidates of a search with their features, signals and factors, and what ranking knows about the query."""

    candidates: Candidates
    context: QueryContext
    features: Features
    columns: Columns
    wanted: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


async def measure(session: Session, prepared: PreparedSearch, plan: SearchPlan, res: Resources) -> Measured:
    """The candidates of the plan, memories and turns, with their features."""
    query, stopwatch = prepared.query, prepared.stopwatch
    with tracing.span("candidates"):
        chosen = await candidates.find(session, plan, prepared.scope_rows, binary_rows=sizes.BINARY_ROWS)
    stopwatch.lap("candidates")
    with tracing.span("entities"):
        entities = await _entities(session, prepared, plan)
    if entities.memories:
        chosen = replace(chosen, arms={**chosen.arms, "entity": list(entities.memories)})
    stopwatch.lap("entities")
    ids = list(dict.fromkeys(each for arm in chosen.arms.values() for each in arm))
    matching_texts = len(chosen.arms.get("text_lexical", ()))
    spoken: Features | None = None
    contexts: list[ContextScores] = []
    if prepared.has_turns:
        with tracing.span("turns"):
            chosen, spoken, contexts = await _turns(session, prepared, plan, chosen, res)
        matching_texts += int(np.count_nonzero(spoken.text_lexical))
        stopwatch.lap("turns")
    context = fusion.query_context(query, prepared.text.parsed, prepared.now, chosen, entities)
    wanted = signals.choose_features(context, matching_texts)
    if plan.original_vector is not None:
        wanted |= {"original_cosine"}
    of_candidates = await features.read(session, plan, ids, context.idf, wanted)
    if spoken is not None:
        of_candidates = features.join(features.with_contexts(of_candidates, contexts), spoken, wanted)
    if (query.ranking.factors.importance or query.ranking.factors.salience) and ids:
        context = replace(context, stats=await stats.for_ranking(session, ids))
    context = signals.with_features(context, of_candidates, matching_texts, res.embedder.similarity)
    columns = signals.columns(of_candidates, context)
    stopwatch.lap("signals")
    return Measured(chosen, context, of_candidates, columns, wanted)


async def _turns(
    session: Session, prepared: PreparedSearch, plan: SearchPlan, chosen: Candidates, res: Resources
) -> tuple[Candidates, Features, list[ContextScores]]:
    """Adds the turns that may answer to the candidates; returns these, the features of the turns, and the context that
    turns give to the memories read from them. Turns that only ask are left out."""
    query = prepared.query
    chosen, spoken, contexts = await turn_candidates.read(
        session,
        TurnFilter(
            query.scope,
            query.window.start,
            query.window.end,
            channels=query.channels,
            stored_by=query.as_of,
            now=res.clock(),
        ),
        TurnQuery(plan.terms, plan.vector, plan.asked_at, plan.original_vector),
        generation=res.generation,
        candidate_limit=plan.arm_limit,
        newest=0 if plan.vector is not None else plan.limit,
        memories=chosen,
    )
    spoken = features.choose(spoken, signals.asking_share(spoken.ids, spoken.phrasing) < 1)
    return replace(chosen, arms={**chosen.arms, "turns": spoken.ids}), spoken, contexts


async def measure_recorded(session: Session, prepared: PreparedSearch, plan: SearchPlan, res: Resources) -> Measured:
    """All memories as recorded at a moment, with their features."""
    query, stopwatch = prepared.query, prepared.stopwatch
    scope = RecordedScope(query.scope, prepared.now, plan.conditions, query.channels)
    texts = await read_past_texts(session, scope, plan, res)
    chosen = texts.candidates(plan)
    matching_texts = len(chosen.arms["text_lexical"])
    stopwatch.lap("candidates")
    stopwatch.lap("entities")
    spoken: Features | None = None
    if prepared.has_turns:
        chosen, spoken, _ = await _turns(session, prepared, plan, chosen, res)
        matching_texts += int(np.count_nonzero(spoken.text_lexical))
    context = fusion.query_context(query, prepared.text.parsed, prepared.now, chosen, EntityMatches())
    of_candidates, context = texts.features(context.idf), replace(context, stats=texts.stats)
    if spoken is not None:
        of_candidates = features.join(of_candidates, spoken, RECORDED)
    context = signals.with_features(context, of_candidates, matching_texts, res.embedder.similarity)
    columns = signals.columns(of_candidates, context)
    stopwatch.lap("signals")
    warnings = (AS_OF_CUT,) if texts.is_cut else ()
    return Measured(chosen, context, of_candidates, columns, warnings=warnings)


async def _entities(session: Session, prepared: PreparedSearch, plan: SearchPlan) -> EntityMatches:
    """The entities that the query names, without its speakers: the speaker is a separate signal."""
    names = sorted({phrase.casefold() for phrase in prepared.text.parsed.phrases})
    if not names or not prepared.query.ranking.techniques.entity_centric:
        return EntityMatches()
    return await candidates.find_entities(session, plan, names, now=prepared.now)


# -- memories as they were --------------------------------------------------------------------------------------------

MAX_PAST_TEXTS: Final = 10_000
"""Memories that are read; of more, the newest. Weighing their words takes a second in a thread."""

RECORDED: Final = frozenset(features.OPTIONAL) - {"original_cosine"}
"""The optional features that memories of a past moment have."""

AS_OF_CUT: Final = f"as_of_cut: only the newest {MAX_PAST_TEXTS:,} memories of that time were searched."


@dataclass(frozen=True, slots=True)
class PastTexts:
    """The memories of a past moment, and for each the weights of its terms. `is_cut`: whether there were more."""

    rows: Sequence[Any]
    weights: Sequence[Mapping[int, float]]
    is_cut: bool

    def candidates(self, plan: SearchPlan) -> Candidates:
        """All the memories as candidates, and in "text_lexical" those that have a term of the query."""
        sought = frozenset(plan.terms)
        frequencies = Counter(term for weight in self.weights for term in sought & weight.keys())
        counts = {term: float(times) for term, times in frequencies.items()}
        lexical = [row.id for row, weights in zip(self.rows, self.weights, strict=True) if sought & weights.keys()]
        arms = {"as_of": [row.id for row in self.rows], "text_lexical": lexical}
        return Candidates(len(self.rows), counts, counts, arms, "none" if plan.vector is None else "exact")

    def features(self, idf: TermIdf) -> Features:
        """The features of the memories. A memory is its own context, and serves no present goal."""
        scores = [sum(idf.of_texts.get(term, 0.0) * weight for term, weight in each.items()) for each in self.weights]
        cosines = [np.nan if row.cosine is None else row.cosine for row in self.rows]
        unknown: NDArray[np.float64] = np.full(len(self.rows), np.nan)
        return Features(
            [row.id for row in self.rows],
            np.array(scores, dtype=np.float64),
            unknown,
            np.array(cosines, dtype=np.float64),
            unknown,
            goal_linked=[None] * len(self.rows),
            goal_cosine=[None] * len(self.rows),
            phrasing=[row.content for row in self.rows],
            speaker=[row.speaker for row in self.rows],
            role=[row.role for row in self.rows],
            timestamp=[row.timestamp for row in self.rows],
            vectors=[None] * len(self.rows),
            mentions=[row.mentions for row in self.rows],
            dated=[bool(row.mentions) for row in self.rows],
            tagged=[bool(row.tagged) for row in self.rows],
            terms=[list(each) for each in self.weights],
            ended=[row.ended for row in self.rows],
            temporal_tag=[row.temporal_tag for row in self.rows],
            importance=[row.importance for row in self.rows],
        )

    @property
    def stats(self) -> dict[Any, RankingStats]:
        """Statistics without any use, because use is not recorded by time."""
        return {row.id: RankingStats(1.0, row.importance) for row in self.rows}


async def read_past_texts(session: Session, scope: RecordedScope, plan: SearchPlan, res: Resources) -> PastTexts:
    """The memories of that time that meet the conditions."""
    vector = HalfVector(plan.vector) if plan.vector is not None else None
    limit = MAX_PAST_TEXTS + 1
    rows = await recorded.list_texts(session, scope, vector, plan.tags, generation=res.generation, limit=limit)
    kept = rows[:MAX_PAST_TEXTS]
    weights = await res.rules.run(_weights, [CleanText(row.content) for row in kept])
    return PastTexts(kept, weights, is_cut=len(rows) > len(kept))


def _weights(texts: Sequence[CleanText]) -> list[dict[int, float]]:
    return [lexemes.weights(text) for text in texts]


# -- why one memory was found or not ----------------------------------------------------------------------------------


async def explain(session: Session, memory_id: UUID, plan: SearchPlan, measured: Measured) -> Explanation:
    """Explains the memory among the candidates of this search. An id of another scope is unknown."""
    context, of_candidates = measured.context, measured.features
    query = context.query
    narrow = visibility.filter_rows("m", replace(query.narrow, valid_at=None), EVER, Condition("true"))
    rules = await visibility.check(session, plan.scope, plan.conditions, narrow, memory_id)
    if rules is None:
        return Explanation(memory_id, found=False, place=None, reasons=("unknown",))
    if not rules.is_visible:
        return Explanation(memory_id, found=False, place=None, reasons=_list_exclusions(rules, query, context.now))
    reasons = () if rules.embedding_status == "stored" else ("no_vector_yet",)
    if memory_id not in of_candidates.ids:
        reasons = (*reasons, "not_a_candidate")
        own = await features.read(session, plan, [memory_id], context.idf, measured.wanted)
        of_candidates = features.join(own, of_candidates, measured.wanted)
    ranked = fusion.fuse(signals.columns(of_candidates, context), context)
    place = next((at for at, each in enumerate(ranked, 1) if each.key == memory_id), None)
    if place is None:  # it has just been deleted
        return Explanation(memory_id, found=False, place=None, reasons=("unknown",))
    hit = ranked[place - 1]
    if hit.score < query.min_score:
        reasons = (*reasons, "below_min_score")
    if place > query.limit:
        reasons = (*reasons, "below_limit")
    return Explanation(memory_id, False, place, reasons, hit.score, hit.terms, hit.factors)


def correct_explanation(known: Explanation, hits: Sequence[Hit], shown: Collection[Hit]) -> Explanation:
    """The explanation corrected by the final hits: diversity and a reranker change their order. `shown`: those with the
    requested probability."""
    at = next((at for at, hit in enumerate(hits, 1) if hit.memory.id == known.id), None)
    if at is None:
        return replace(known, reasons=known.reasons or ("moved_down",))
    hit = hits[at - 1]
    is_hit = hit in shown
    reasons = () if is_hit else ("below_min_probability",)
    return replace(
        known,
        found=is_hit,
        place=at,
        reasons=reasons,
        score=hit.score,
        terms=hit.terms,
        factors=hit.factors,
    )


def _list_exclusions(rules: RuleCheck, query: Query, now: datetime) -> tuple[str, ...]:
    """Every rule that the memory does not meet, as a code."""
    at, window = query.narrow.valid_at or now, query.window
    checks_start = query.narrow.valid_at is not None or (window.is_open and query.validity != "ignore")
    checks_end = query.narrow.valid_at is not None or query.validity == "exclude"
    excluded = {
        "archived": rules.archived and not query.include_archived,
        "expired": rules.expires_at is not None and rules.expires_at <= now,
        "awaits_review": rules.review_status is not None,
        "not_yet_valid": checks_start and rules.t_valid is not None and rules.t_valid > at,
        "no_longer_valid": checks_start and checks_end and rules.t_invalid is not None and rules.t_invalid <= at,
        "before_window": window.start is not None and rules.timestamp < window.start,
        "after_window": window.end is not None and rules.timestamp >= window.end,
        "filtered_out": not rules.is_wanted,
    }
    return tuple(name for name, holds in excluded.items() if holds)
