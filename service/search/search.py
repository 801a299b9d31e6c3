"""Search: from a query to ranked memories, and turns that no memory repeats.

preparation.py parses, widens and embeds the query, holding no connection. `read_results` reads in one short snapshot
the candidates of every arm (search/statements/candidates.py), the features of each, and the rows of those that rank
best (signals.py, fusion.py; pure). `rerank_and_shape` asks a reranker, again holding no connection, and says how likely
the hits are the answer (answerability.py; pure).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from uuid import UUID

from prometheus_client import Histogram

from service.conversations.statements import turns
from service.domain.memory import Hit, LaterStatementItem, LeanMemory, SignalTerm, memory_of
from service.domain.query import Explanation, Query, SearchResult, TechniqueMetrics, is_probable
from service.memories import reading
from service.memories.statements import memories, recorded, sources, visibility
from service.memories.statements.recorded import RecordedScope
from service.observability import tracing
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.search import answerability, fusion, measuring, preparation, reordering, signals, techniques
from service.search.fusion import Ranked
from service.search.measuring import Measured
from service.search.preparation import PreparedSearch

LeanMemories = Mapping[UUID, LeanMemory]

MAX_WIDENED: Final = 64
"""If the page is short because messages were dropped in favour of their facts, four times as many candidates are
searched, up to this multiple of the wanted hits."""

DIVERSITY_OVERFETCH: Final = 4
"""With diversity, this multiple of the wanted hits is considered."""

MAX_DIVERSIFIED: Final = 50
"""Hits that are chosen one by one with diversity: each is compared with all that are left."""

BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
STAGES = Histogram("loxodon_search_stage_seconds", "Where the time of a search goes", ["stage"], buckets=BUCKETS_S)
TECHNIQUE_SECONDS = Histogram(
    "loxodon_search_technique_seconds", "What a technique took", ["technique"], buckets=BUCKETS_S
)
TECHNIQUE_RESULTS = Histogram(
    "loxodon_search_technique_results",
    "What a technique gave: candidates, texts or filters",
    ["technique"],
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500),
)


@dataclass(frozen=True, slots=True)
class ReadSearch:
    """What a search read in its snapshot: the best candidates in their order, and their rows without those that repeat
    others. `next_skip`: the `skip` for the hits that did not fit (None: all did); `is_short`: hits are missing only
    because others repeat them; `explanation`: why the memory of `explain_id` was found or not."""

    measured: Measured
    ranked: Sequence[Ranked]
    memories: LeanMemories
    next_skip: int | None
    is_short: bool
    explanation: Explanation | None = None


async def search(query: Query, res: Resources) -> SearchResult:
    """At most `query.limit` hits, best first. Without an embedder only the other signals count, and a warning says
    so. Without a query text, importance alone counts."""
    result = await (_search_text(query, res) if query.text else _most_important(query, res))
    if query.connected:
        ids = [hit.memory.id for hit in result.hits]
        connected = await reading.read_connected(query, ids, res)
        if len(connected) < len(ids):
            left_out = f"connected: only given for the first {len(connected)} hits, which fill the answer."
            result = replace(result, warnings=(*result.warnings, left_out))
        result = replace(result, connected=connected)
    return result


async def _search_text(query: Query, res: Resources) -> SearchResult:
    filtered, used = await techniques.with_self_query(query, res)
    prepared, results = await _prepare_and_read(filtered, res, used)
    if not results.ranked and filtered != query:
        # the filters read out of the query match nothing, so it is searched for without them
        note = f"{used['self_query'].note}; nothing matched, so left out"
        used["self_query"] = replace(used["self_query"], note=note)
        first_ms = sum(prepared.stopwatch.ms.values())
        prepared, results = await _prepare_and_read(query, res, used)
        prepared.stopwatch.ms["self_query_retry"] = round(first_ms, 3)
    return await rerank_and_shape(prepared, results, res)


async def _most_important(query: Query, res: Resources) -> SearchResult:
    """The most important first, then the latest; the score is the importance."""
    rows = visibility.conditions("m", query, query.as_of or res.clock())
    in_scope = scopes.readable("m", query.scope, query.channels)
    async with res.db.snapshot(query.scope.workspace_id) as session:
        if query.as_of is not None:
            then = RecordedScope(query.scope, query.as_of, rows, query.channels)
            ids = await visibility.most_important(session, then.condition, limit=query.limit, source=then.recorded)
        else:
            ids = await visibility.most_important(session, in_scope & rows, limit=query.limit)
        ids = ids[query.skip :]
        by_id, next_skip = await _memories(session, query, ids)
    scored = [(by_id[key], by_id[key].importance.value) for key in ids if key in by_id]
    hits = [
        Hit(memory, score, None, {"importance": SignalTerm(score, score, 1.0)})
        for memory, score in scored
        if score >= query.min_score
    ]
    candidates = {"important": len(ids)} if query.explain else None
    return SearchResult(tuple(hits), "none", candidates=candidates, next_skip=next_skip)


async def _prepare_and_read(
    query: Query, res: Resources, used: dict[str, TechniqueMetrics]
) -> tuple[PreparedSearch, ReadSearch]:
    prepared = await preparation.prepare(query, res, used)
    async with res.db.snapshot(query.scope.workspace_id, steady_plans=query.as_of is None) as session:
        return prepared, await read_results(session, prepared, res)


# -- inside the snapshot ----------------------------------------------------------------------------------------------


@tracing.trace("read")
async def read_results(session: Session, prepared: PreparedSearch, res: Resources) -> ReadSearch:
    """Measures and ranks the candidates, and reads the rows of the best; more than wanted when a reranker is to see
    them. While the page is short, more of the candidates are read, then more candidates are looked for."""
    query, plan = prepared.query, prepared.plan
    measure = measuring.measure if query.as_of is None else measuring.measure_recorded
    measured = await measure(session, prepared, plan, res)
    first_rows = rows = max(query.limit + reordering.LOOKAHEAD, reordering.count_shown(query, res))
    results = await _read_page(session, prepared, measured, rows)
    while results.is_short:
        if len(results.ranked) == rows:
            rows *= 2
        elif plan.limit <= min(len(measured.features.ids), query.limit * MAX_WIDENED):
            plan, rows = replace(plan, arm_limit=plan.arm_limit * 4, limit=plan.limit * 4), first_rows
            measured = await measure(session, prepared, plan, res)
        else:
            break
        results = await _read_page(session, prepared, measured, rows)
    if query.explain_id is None:
        return results
    return replace(results, explanation=await measuring.explain(session, query.explain_id, plan, measured))


async def _read_page(session: Session, prepared: PreparedSearch, measured: Measured, rows: int) -> ReadSearch:
    """The best `rows` candidates without the first `skip`, as many as fit a response."""
    query, stopwatch = prepared.query, prepared.stopwatch
    ranked = _rank(measured, rows)[query.skip :]
    stopwatch.lap("rank")
    by_id, next_skip = await _memories(session, query, [each.key for each in ranked])
    memories = await _drop_repeated(session, query, by_id)
    distinct = _drop_copies([hit for hit in ranked if hit.key in memories], memories)
    is_short = next_skip is None and not query.skip and len(distinct) < min(query.limit, len(by_id))
    stopwatch.lap("rows")
    return ReadSearch(measured, ranked, memories, next_skip, is_short)


async def _memories(session: Session, query: Query, ids: Sequence[UUID]) -> tuple[LeanMemories, int | None]:
    """The hits that fit a response, and the `skip` of the others."""
    by_id, count = await direct.page_of_ids(ids, partial(_memories_and_turns, session, query))
    return by_id, query.skip + count if count < len(ids) else None


async def _memories_and_turns(session: Session, query: Query, ids: Sequence[UUID]) -> dict[UUID, LeanMemory]:
    load: Callable[..., Awaitable[LeanMemories]] = memories.get_many if query.detail == "full" else memories.get_lean
    if query.as_of is not None:
        load = partial(recorded.get_many, moment=query.as_of)
    by_id = {**await load(session, ids)}
    if of_turns := [each for each in ids if each not in by_id]:
        found_turns = await turns.get_many(session, of_turns)
        by_id |= {key: memory_of(turn) for key, turn in found_turns.items()}
    return by_id


async def _drop_repeated(session: Session, query: Query, by_id: LeanMemories) -> LeanMemories:
    """The hits without the messages whose facts are among them: the message is only the source of the fact."""
    stored = {key: memory for key, memory in by_id.items() if memory.source == "memory"}
    messages = {key: memory.conversation_id for key, memory in stored.items() if memory.turn_index is not None}
    conversations = frozenset(messages.values())
    facts = [key for key, memory in stored.items() if key not in messages and memory.conversation_id in conversations]
    if not (messages and facts) or query.as_of is not None:
        return by_id
    stated = await sources.find_stated(session, facts, list(messages))
    return {key: memory for key, memory in by_id.items() if key not in stated}


def _rank(measured: Measured, limit: int) -> list[Ranked]:
    """The best of the candidates, best first."""
    query, diversity = measured.context.query, measured.context.ranking.diversity
    explain = query.explain or query.explain_id is not None
    wide = limit * DIVERSITY_OVERFETCH if diversity > 0 else limit
    ranked = fusion.fuse(measured.columns, measured.context, limit=wide, explain=explain)
    if diversity == 0:
        return ranked
    terms = dict(zip(measured.features.ids, measured.features.terms, strict=True))
    overlap = reordering.text_overlap([terms[each.key] for each in ranked])
    return reordering.diversify(ranked, overlap, diversity, limit=limit, one_by_one=MAX_DIVERSIFIED)


# -- after the snapshot -----------------------------------------------------------------------------------------------


@tracing.trace("finish")
async def rerank_and_shape(prepared: PreparedSearch, results: ReadSearch, res: Resources) -> SearchResult:
    """The final hits, after the reranker has seen them; holds no connection."""
    query, stopwatch, measured, by_id = prepared.query, prepared.stopwatch, results.measured, results.memories
    ranked, warnings = results.ranked, (*prepared.text.vectors.warnings, *measured.warnings)
    if query.ranking.rerank or reordering.count_shown(query, res):
        texts: dict[UUID, str] = {each: row.text for each, row in by_id.items()}
        ranked, prepared.used["rerank"], more = await reordering.rerank(query, ranked, texts, res)
        warnings = (*warnings, *more)
        stopwatch.lap("rerank")
    ranked = _choose_hits(prepared, ranked, by_id)
    hits, answer_probability = _shape_hits(ranked, measured, by_id, res)
    stopwatch.lap("later")
    probable = tuple(hit for hit in hits if is_probable(hit.answer_probability, query.min_probability))
    arm_counts = {name: len(arm) for name, arm in measured.candidates.arms.items()}
    _record(prepared, arm_counts)
    return SearchResult(
        hits=probable,
        vector_path=measured.candidates.path,
        warnings=warnings,
        techniques=prepared.used,
        candidates=arm_counts if query.explain else None,
        timings_ms=stopwatch.ms if query.explain else {},
        why=measuring.correct_explanation(results.explanation, hits, probable) if results.explanation else None,
        entities=measured.context.entities.ids,
        answer_probability=answer_probability,
        next_skip=results.next_skip if len(ranked) < query.limit else None,
    )


def _choose_hits(prepared: PreparedSearch, ranked: Sequence[Ranked], by_id: LeanMemories) -> list[Ranked]:
    """The hits of the answer, each text once; current memories come first, unless the query looks back."""
    query, parsed = prepared.query, prepared.text.parsed
    if not (parsed.looks_back or parsed.time):
        ranked = reordering.current_first(ranked, reordering.find_newer(by_id))
    ranked = [hit for hit in ranked if hit.score >= query.min_score and hit.key in by_id]
    return _drop_copies(ranked, by_id)[: query.limit]


def _drop_copies(ranked: Sequence[Ranked], by_id: LeanMemories) -> list[Ranked]:
    """The hits without those that rank higher in another channel: a memory and its promoted copy have the same text."""
    first_channel: dict[tuple[str | None, ...], str] = {}
    hits = []
    for hit in ranked:
        memory = by_id[hit.key]
        scope = memory.scope
        text = (memory.hash, scope.user_id, scope.agent_id, scope.run_id)
        if first_channel.setdefault(text, scope.channel) == scope.channel:
            hits.append(hit)
    return hits


def _shape_hits(
    ranked: Sequence[Ranked], measured: Measured, memories: LeanMemories, res: Resources
) -> tuple[tuple[Hit, ...], float | None]:
    """The hits with what was said later about the same thing (nothing for a search in the past) and how likely each is
    the answer; and how likely there is one. Of the best hits, what was said in conversations has the latest first,
    unless the query asks for the past; documents have no such order."""
    features, cosines = measured.features, signals.cosines(measured.features)
    answer = answerability.assess(measured.context, features, measured.columns, cosines)
    cosine_of = dict(zip(features.ids, cosines.tolist(), strict=True))
    later: Mapping[UUID, tuple[LaterStatementItem, ...]] = {}
    if measured.context.query.as_of is None:
        turn_ids = frozenset(measured.candidates.arms.get("turns", ()))
        least_cosine = reordering.same_thing_cosine(res.embedder.similarity)
        later = reordering.later_statements(features, [each.key for each in ranked], turn_ids, least_cosine)
        parsed = measured.context.parsed
        if not (parsed.about_past or parsed.time):
            said = {key: after for key, after in later.items() if memories[key].conversation_id is not None}
            ranked = reordering.latest_first(ranked, said)
    hits = tuple(
        Hit(
            memory=memories[(key := each.key)],
            score=each.score,
            similarity=None if math.isnan(cosine_of[key]) else res.embedder.query_similarity(cosine_of[key]),
            terms=each.terms,
            factors=each.factors,
            answer_probability=answer.of_hit(key, place) if answer else None,
            later=later.get(key, ()),
        )
        for place, each in enumerate(ranked)
    )
    return hits, answer.probability if answer else None


def _record(prepared: PreparedSearch, arm_counts: Mapping[str, int]) -> None:
    """Records the time and yield of each technique, in the response and in the metrics. Labels are names of stages and
    techniques, never a workspace or a user."""
    on, used, ms = prepared.query.ranking.techniques, prepared.used, prepared.stopwatch.ms
    if on.hybrid:
        lexical = arm_counts.get("text_lexical", 0) + arm_counts.get("context_lexical", 0)
        used["hybrid"] = TechniqueMetrics(ms["candidates"], lexical)
    if on.entity_centric:
        used["entity_centric"] = TechniqueMetrics(ms["entities"], arm_counts.get("entity", 0))
    for stage, took_ms in ms.items():
        STAGES.labels(stage).observe(took_ms / 1000)
    for name, use in used.items():
        TECHNIQUE_SECONDS.labels(name).observe(use.ms / 1000)
        TECHNIQUE_RESULTS.labels(name).observe(use.count)
