"""How is a question answered?

Who speaks in the scope is looked up (and remembered for some seconds), the question is taken apart, widened by the
techniques that are on, and embedded with nothing held. Then one short snapshot: candidates from every arm, all
measures of each, and the rows of the best. The ranking itself is pure (fusion.py) and can be recomputed from the
answer. A reranker is asked after that, again with nothing held.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from service.db import scopes
from service.db.engine import Session
from service.db.memories import memories, stats
from service.db.search import approximate, entity_arm, exact, features, visibility
from service.db.search.entity_arm import Naming
from service.db.search.exact import Ask, Candidates, Where
from service.db.search.features import Measures
from service.domain import column_ranges, filter_keys
from service.domain.memory import Hit, Memory
from service.domain.query import Explanation, Query, SearchDetails, SearchResult, TechniqueUse, VectorPath
from service.domain.text import CleanText
from service.language import lexemes
from service.resources import Resources, ScopeKey
from service.retrieval import absence, fusion, goals, metrics, query_parsing, rerank, signals, techniques
from service.retrieval.fusion import Ranked
from service.retrieval.likeness import likeness
from service.retrieval.query_parsing import ParsedQuery
from service.retrieval.signals import Scene
from service.retrieval.stopwatch import Stopwatch

V = TypeVar("V")

ARM = 100
"""Candidates of each arm, at least; an arm hands in twice what is asked for (R7.16)."""

PEOPLE_REMEMBERED_S = 10.0
WAY_REMEMBERED_S = 300.0

MANY_ROWS = 2_000
"""In a scope of so many, conditions that an index serves are looked up before all rows are read."""

ALIKE_POOL = 4
"""With diversity, so many times the wanted hits are looked at."""

MOST_SPREAD = 50
"""Hits that are chosen one by one with diversity: each is compared with all that are left."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question ready for the database."""

    read: ParsedQuery
    terms: Mapping[str, int]
    ask: Ask
    used: dict[str, TechniqueUse]
    warnings: tuple[str, ...]


async def search(query: Query, res: Resources) -> SearchResult:
    """At most `query.limit` hits, best first: exactly min(limit, matching rows). Without an embedder only the other
    signals count, and a warning says so."""
    narrow, used = await techniques.narrowed(query, res)
    ready, answer = await _answered(narrow, res, used)
    if not answer.ranked and narrow != query:
        # what was read out of the question matches nothing: better an answer than a clever silence
        note = f"{used['self_query'].note}; nothing matched, so left out"
        used["self_query"] = replace(used["self_query"], note=note)
        in_vain_ms = sum(ready.watch.ms.values())
        ready, answer = await _answered(query, res, used)
        ready.watch.ms["in_vain"] = round(in_vain_ms, 3)
    return await finish(ready, answer, res)


@dataclass(frozen=True, slots=True)
class Ready:
    """A search that needs nothing but the database any more."""

    query: Query
    where: Where
    prepared: Prepared
    watch: Stopwatch
    now: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database said: the hits in their order, the cosine of each to the question, their rows, and what is
    known of the one memory that the caller asks about."""

    ranked: Sequence[Ranked]
    cosines: Mapping[UUID, float | None]
    rows: Mapping[UUID, Memory]
    path: VectorPath
    counts: Mapping[str, int]
    texts: int
    why: Explanation | None
    entities: tuple[UUID, ...]


async def _answered(query: Query, res: Resources, used: dict[str, TechniqueUse]) -> tuple[Ready, Answer]:
    ready = await prepare(query, res, used)
    async with res.db.snapshot(query.scope.workspace_id) as session:
        return ready, await read(session, ready, res)


async def prepare(query: Query, res: Resources, used: dict[str, TechniqueUse]) -> Ready:
    """The question read, widened and embedded, with nothing held."""
    watch, now = Stopwatch(), res.clock()
    where = _where(query, res, now)
    return Ready(query, where, await _prepared(query, where, res, used, watch), watch, now)


async def within(session: Session, ready: Ready, res: Resources) -> SearchResult:
    """The hits, read in the caller's snapshot. A reranker is not asked: it would be waited for with the connection
    held. `read` here and `finish` afterwards ask it."""
    plain = replace(ready.query, ranking=replace(ready.query.ranking, rerank=False))
    ready = replace(ready, query=plain)
    return await finish(ready, await read(session, ready, res), res)


async def read(session: Session, ready: Ready, res: Resources) -> Answer:
    """The hits, read in the caller's snapshot; more than wanted when a reranker is to see them."""
    query, where, prepared, watch, now = ready.query, ready.where, ready.prepared, ready.watch, ready.now
    wide = max(ARM, query.limit * 2)
    found = await _candidates(session, query, where, prepared.ask, res, wide)
    watch.lap("candidates")
    naming = await _naming(session, where, query, prepared, wide, now)
    found = replace(found, arms={**found.arms, "entity": list(naming.memories)}) if naming.memories else found
    watch.lap("entities")
    scene = _scene(query, prepared, found, naming, now)
    ids = list(dict.fromkeys(each for arm in found.arms.values() for each in arm))
    worded = len(found.arms.get("text_lexical", ()))
    columns = signals.wanted(scene, worded)
    measured = await features.read(session, where, ids, prepared.ask, columns, own=scene.own, near=scene.near)
    scene = await _with_standing(session, scene, ids)
    scene = signals.with_odd(scene, measured, worded)
    pulls = goals.pulls(measured, res.embedder.similarity)
    scene = replace(scene, goals=pulls, span=signals.span(prepared.read, measured))
    watch.lap("signals")
    ranked = _rank(scene, measured, max(query.limit, rerank.wanted(query, res)))
    watch.lap("rank")
    why = (
        None if query.explain_id is None else await absence.why(session, where, prepared.ask, scene, measured, columns)
    )
    rows = await memories.get_many(session, query.scope.workspace_id, [_id(each) for each in ranked])
    watch.lap("rows")
    counts = {name: len(arm) for name, arm in found.arms.items()}
    return Answer(ranked, _cosines(measured), rows, found.path, counts, found.texts, why, naming.ids)


async def finish(ready: Ready, answer: Answer, res: Resources) -> SearchResult:
    """The hits as they are given, after the reranker has seen them; holds nothing."""
    query, prepared, watch = ready.query, ready.prepared, ready.watch
    ranked, warnings = list(answer.ranked), prepared.warnings
    if query.ranking.rerank:
        texts: dict[Hashable, str] = {each: row.text for each, row in answer.rows.items()}
        ranked, prepared.used["rerank"], told = await rerank.reranked(query, ranked, texts, res)
        warnings = (*warnings, *told)
        watch.lap("rerank")
    ranked = [each for each in ranked if each.score >= query.min_score and _id(each) in answer.rows][: query.limit]
    hits = tuple(_hit(each, answer.cosines[_id(each)], answer.rows[_id(each)], res) for each in ranked)
    _account(query, prepared, answer.counts, watch)
    explained = SearchDetails(answer.counts, answer.texts, watch.ms) if query.explain else None
    return SearchResult(
        hits, answer.path, warnings, prepared.used, explained, _placed(answer.why, ranked), answer.entities
    )


def _placed(why: Explanation | None, ranked: Sequence[Ranked]) -> Explanation | None:
    """What was said of one memory, put right by the hits themselves: diversity and a reranker move them."""
    if why is None:
        return None
    at = next((at for at, hit in enumerate(ranked, 1) if hit.key == why.id), None)
    if at is None:
        return replace(why, reasons=why.reasons or ("moved_down",))
    hit = ranked[at - 1]
    return replace(why, found=True, place=at, reasons=(), score=hit.score, terms=hit.terms, factors=hit.factors)


def _where(query: Query, res: Resources, now: datetime) -> Where:
    return Where(
        scopes.matching("m", query.scope, query.channels),
        scopes.matching("v", query.scope, query.channels),
        visibility.rows("m", query, now),
        res.generation,
        res.settings.exact_scope_rows,
        filter_keys.needed(query.narrow),
        column_ranges.needed(query.narrow, query.window),
    )


async def _prepared(
    query: Query, where: Where, res: Resources, used: dict[str, TechniqueUse], watch: Stopwatch
) -> Prepared:
    people, widened = await _people(query, where, res), await techniques.widened(query, res)
    timezone, subject = query.timezone or res.settings.timezone, query.scope.user_id
    read = await query_parsing.parse_off_loop(
        query.text, query.reference or res.clock(), timezone, people, subject, res
    )
    watch.lap("read")
    more = [CleanText(query_parsing.without_names(text, people, subject)) for text in widened.texts]
    embedded = await techniques.embedded(query, CleanText(read.embedding_text), more, res, request=read.is_request)
    watch.lap("embed")
    terms = {term: lexemes.term_id(term) for term in read.terms}
    ask = Ask(
        sorted(terms.values()), embedded.searched, read.time.middle if read.time else None, query.tags, embedded.plain
    )
    return Prepared(read, terms, ask, {**used, **widened.used, **embedded.used}, embedded.warnings)


async def _people(query: Query, where: Where, res: Resources) -> Sequence[str]:
    """Who speaks in the scope; a name that is seconds old may still be missing."""
    key = (query.scope, query.channels, where.exact_rows)
    known = _remembered(res.people, key)
    if known is not None:
        return known
    async with res.db.read(query.scope.workspace_id) as session:
        found = tuple(await exact.speakers(session, where))
    _remember(res.people, key, found, PEOPLE_REMEMBERED_S)
    return found


async def _candidates(session: Session, query: Query, where: Where, ask: Ask, res: Resources, wide: int) -> Candidates:
    """From every row of the scope, or by index in a large one. What a scope is like is remembered: to find out costs a
    walk over `exact_rows` rows; one that has shrunk meanwhile is answered by index as well. Where there are many rows
    to read, conditions that leave few come first; in a small scope to ask for them costs as much as it saves."""
    key = (query.scope, query.channels, where.exact_rows)
    way = _remembered(res.ways, key)
    found = await approximate.by_way(session, where, ask, arm=wide, wanted=query.limit, way=way)
    if found is None:
        way = await approximate.find_way(session, where, res.settings.signs_scope_rows)
        _remember(res.ways, key, way, WAY_REMEMBERED_S)
        return await approximate.candidates(session, where, ask, arm=wide, wanted=query.limit, way=way)
    if found.read >= MANY_ROWS:
        _remember(res.ways, key, "rows", WAY_REMEMBERED_S)
    return found


def _remembered(known: Mapping[ScopeKey, tuple[float, V]], key: ScopeKey) -> V | None:
    until, value = known.get(key, (0.0, None))
    return value if time.monotonic() < until else None


def _remember(known: dict[ScopeKey, tuple[float, V]], key: ScopeKey, value: V, seconds: float) -> None:
    if len(known) > 1_000:
        known.clear()
    known[key] = (time.monotonic() + seconds, value)


async def _naming(session: Session, where: Where, query: Query, prepared: Prepared, wide: int, now: datetime) -> Naming:
    """The entity arm. Speakers whom the question names are none: who speaks is a signal of its own."""
    names = sorted({phrase.casefold() for phrase in prepared.read.phrases})
    if not names or not query.ranking.techniques.entity_centric:
        return Naming()
    return await entity_arm.find(session, where.scope, where.rows, names, now=now, limit=wide)


def _scene(query: Query, prepared: Prepared, found: Candidates, naming: Naming, now: datetime) -> Scene:
    texts = found.texts
    return Scene(
        query,
        prepared.read,
        now,
        prepared.terms,
        # a word of the question that no text has belongs to what a full match would reach
        own={number: fusion.idf(texts, found.own.get(number, 0.0)) for number in prepared.terms.values()},
        near={number: fusion.idf(texts, found.near.get(number, 0.0)) for number in prepared.terms.values()},
        rarity={term: fusion.rarity(texts, found.own.get(number, 0.0)) for term, number in prepared.terms.items()},
        naming=naming,
        names=signals.worth(naming, texts),
        texts=texts,
    )


async def _with_standing(session: Session, scene: Scene, ids: Sequence[UUID]) -> Scene:
    """What jobs and reads made of the candidates, read only where a factor asks for it."""
    on = scene.ranking.factors
    if not (on.importance or on.salience) or not ids:
        return scene
    return replace(scene, standing=await stats.for_ranking(session, scene.query.scope.workspace_id, ids))


def _rank(scene: Scene, measured: Measures, limit: int) -> list[Ranked]:
    """The best of the candidates, best first."""
    ranking = scene.ranking
    spread = ranking.diversity > 0
    ranked = fusion.fuse(
        signals.of(measured, scene),
        signals.asked(scene),
        signals.weights(ranking),
        ranking.fusion,
        limit=limit * ALIKE_POOL if spread else limit,
        explain=scene.query.explain or scene.query.explain_id is not None,
    )
    if not spread:
        return ranked
    terms = dict(zip(measured.ids, measured.terms, strict=True))
    alike = likeness([terms[_id(each)] for each in ranked])
    return fusion.spread_out(ranked, alike, ranking.diversity, limit=limit, deep=MOST_SPREAD)


def _account(query: Query, prepared: Prepared, counts: Mapping[str, int], watch: Stopwatch) -> None:
    """What each technique took and gave (R7.23)."""
    on, used = query.ranking.techniques, prepared.used
    if on.hybrid:
        words = counts.get("text_lexical", 0) + counts.get("context_lexical", 0)
        used["hybrid"] = TechniqueUse(watch.ms["candidates"], words)
    if on.entity_centric:
        used["entity_centric"] = TechniqueUse(watch.ms["entities"], counts.get("entity", 0))
    metrics.note(used, watch.ms)


def _id(ranked: Ranked) -> UUID:
    assert isinstance(ranked.key, UUID), "memories are ranked by their ids"
    return ranked.key


def _cosines(measured: Measures) -> dict[UUID, float | None]:
    """By candidate: to the question's own vector, where another one was searched with."""
    if measured.plain:
        return dict(zip(measured.ids, measured.plain, strict=True))
    cosines = measured.text_vector.tolist()
    return {each: None if math.isnan(cosine) else cosine for each, cosine in zip(measured.ids, cosines, strict=True)}


def _hit(ranked: Ranked, cosine: float | None, memory: Memory, res: Resources) -> Hit:
    similarity = res.embedder.query_similarity(cosine) if cosine is not None else None
    return Hit(memory, ranked.score, similarity, ranked.terms, ranked.factors)
