"""How is a question answered?

Who speaks in the scope is looked up (and remembered for some seconds), the question is taken apart and embedded with
nothing held. Then one short snapshot: candidates from every arm, all measures of each, and the rows of the best. The
ranking itself is pure (fusion.py) and can be recomputed from the answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from service.db import hybrid, important, lexical, memories, nearest, scopes, visible
from service.db.engine import Session
from service.db.hybrid import Ask, Candidates, Measured, Where
from service.domain.memory import Hit, Memory
from service.domain.query import Explained, Found, Query, VectorPath
from service.domain.temporal import Mention
from service.domain.text import CleanText
from service.errors import EmbeddingError
from service.language import lexemes
from service.language.context import asking
from service.providers.protocols import Vector
from service.resources import Resources
from service.retrieval import fusion, question
from service.retrieval.fusion import Asking, Ranked, Signals
from service.retrieval.question import Question

ARM = 100
"""Candidates of each arm, at least; an arm hands in twice what is asked for (R7.16)."""

PEOPLE_REMEMBERED_S = 10.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question ready for the database."""

    read: Question
    terms: Mapping[str, int]
    ask: Ask
    warnings: tuple[str, ...]


async def search(query: Query, res: Resources) -> Found:
    """At most `query.limit` hits, best first: exactly min(limit, matching rows). Without an embedder only the other
    signals count, and a warning says so."""
    now = res.clock()
    where = _where(query, res, now)
    prepared = await _prepared(query, where, res)
    wide = max(ARM, query.limit * 2)
    async with res.db.snapshot(query.scope.workspace_id) as session:
        found = await hybrid.candidates(session, where, prepared.ask, arm=wide, wanted=query.limit)
        path: VectorPath = "exact" if prepared.ask.vector is not None else "none"
        if found.texts > where.exact_rows:
            found, path = await _large(session, where, prepared, found, wide)
        own, near = _idf(found.own, found.texts), _idf(found.near, found.texts)
        ids = list(dict.fromkeys(each for arm in found.arms.values() for each in arm))
        if found.texts > where.exact_rows and len(ids) < query.limit:  # rows whose vector is still to come
            more = await important.ids(session, where.scope & where.rows, limit=query.limit)
            ids = list(dict.fromkeys((*ids, *more)))
        measured = await hybrid.signals(session, where, ids, prepared.ask, own=own, near=near)
        ranked = _rank(query, prepared, found, measured, own, near, res, now)
        ranked = [each for each in ranked if each.score >= query.min_score]
        by_id = {each.id: each for each in measured}
        best = [(by_id[UUID(str(each.key))], each) for each in ranked]
        rows = await memories.get_many(session, query.scope.workspace_id, [each.id for each, _ in best])
    hits = tuple(_hit(rank, each, rows[each.id], res) for each, rank in best if each.id in rows)
    counts = {name: len(arm) for name, arm in found.arms.items()}
    return Found(hits, path, prepared.warnings, Explained(counts, found.texts) if query.explain else None)


def _where(query: Query, res: Resources, now: datetime) -> Where:
    return Where(
        scopes.matching("m", query.scope, query.channels),
        scopes.matching("v", query.scope, query.channels),
        visible.rows("m", query, now),
        res.generation,
        res.settings.exact_scope_rows,
    )


async def _prepared(query: Query, where: Where, res: Resources) -> Prepared:
    people = await _people(query, where, res)
    zone = ZoneInfo(query.timezone or res.settings.timezone)
    read = await res.threads.run(question.read, query.text, query.reference or res.clock(), zone, people)
    vector, warnings = await _vector(query, CleanText(read.embed), res)
    terms = {term: lexemes.term_id(term) for term in read.terms}
    asked = read.asked
    ends = [edge for edge in (asked.begins_at, asked.ends_at) if edge is not None] if asked else []
    middle = ends[0] + (ends[-1] - ends[0]) / 2 if ends else None
    return Prepared(read, terms, Ask(sorted(terms.values()), vector, middle, query.tags), warnings)


async def _people(query: Query, where: Where, res: Resources) -> Sequence[str]:
    """Who speaks in the scope; a name that is seconds old may still be missing."""
    key = (query.scope, query.channels, where.exact_rows)
    until, known = res.people.get(key, (0.0, ()))
    if time.monotonic() < until:
        return known
    async with res.db.read(query.scope.workspace_id) as session:
        found = tuple(await hybrid.speakers(session, where))
    if len(res.people) > 1_000:
        res.people.clear()
    res.people[key] = (time.monotonic() + PEOPLE_REMEMBERED_S, found)
    return found


async def _vector(query: Query, text: CleanText, res: Resources) -> tuple[Vector | None, tuple[str, ...]]:
    try:
        return await res.embedder.embed_query(query.scope.workspace_id, text), ()
    except EmbeddingError:
        return None, ("embedding_unavailable: vectors were not searched.",)


async def _large(
    session: Session, where: Where, prepared: Prepared, found: Candidates, wide: int
) -> tuple[Candidates, nearest.Path]:
    """Candidates in a scope too large to look at row by row: vectors by their index, words of rows without one."""
    target = nearest.Target(where.vectors, where.rows, where.generation)
    vector = prepared.ask.vector
    near = (
        [] if vector is None else await nearest.find(session, target, vector, limit=wide, exact_rows=where.exact_rows)
    )
    words = dict.fromkeys(prepared.ask.terms, 1.0)
    waiting = await lexical.waiting(session, where.scope & where.rows, words, limit=wide)
    arms = {"text_vector": [each.id for each in near], "text_lexical": [each.id for each in waiting]}
    return replace(found, arms=arms), near[0].path if near else "hnsw"


def _idf(counts: Mapping[int, float], texts: int) -> dict[int, float]:
    return {term: fusion.idf(texts, found) for term, found in counts.items()}


def _rank(
    query: Query,
    prepared: Prepared,
    found: Candidates,
    measured: Sequence[Measured],
    own: Mapping[int, float],
    near: Mapping[int, float],
    res: Resources,
    now: datetime,
) -> list[Ranked]:
    rarity = {term: fusion.rarity(found.texts, found.own.get(number, 0.0)) for term, number in prepared.terms.items()}
    signals = [_signals(each, query, prepared, rarity, res, now) for each in measured]
    read = prepared.read
    applies = {
        "speaker": bool(read.named) or read.role is not None,
        "time": read.asked is not None,
        "rare": bool(read.rare),
        "tag": bool(query.tags),
        "entity": False,
    }
    asked = Asking(
        sum(own.values()), sum(near.values()), read.only_time, frozenset(name for name in applies if not applies[name])
    )
    return fusion.fuse(signals, asked, limit=query.limit)


def _signals(
    each: Measured, query: Query, prepared: Prepared, rarity: Mapping[str, float], res: Resources, now: datetime
) -> Signals:
    read = prepared.read
    held = {term for term, number in prepared.terms.items() if number in each.terms}
    mentions = [_mention(kept) for kept in each.mentions] if read.asked else ()
    return Signals(
        key=each.id,
        text_lexical=each.text_lexical,
        context_lexical=each.context_lexical,
        text_vector=each.text_vector,
        context_vector=each.context_vector,
        speaker=question.speaker_match(read, each.speaker, each.role),
        asking=asking(each.text),
        time=question.time_match(read.asked, each.timestamp, mentions),
        rare=question.rare_match(read, held, rarity),
        tag=float(any(tag in each.tag_prefixes for tag in query.tags)),
        factors={"validity": _validity(each, query, read, res, now)},
    )


def _validity(each: Measured, query: Query, read: Question, res: Resources, now: datetime) -> float:
    """R4.13: an expired memory ranks lower, unless the question asks about a time (B10)."""
    if query.validity == "ignore" or not query.window.is_open or read.asked is not None:
        return 1.0
    then = query.narrow.valid_at or now
    over = any(moment is not None and moment <= then for moment in (each.valid_until, each.t_invalid))
    return res.settings.expired_factor if over else 1.0


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


def _hit(ranked: Ranked, measured: Measured, memory: Memory, res: Resources) -> Hit:
    cosine = measured.text_vector
    similarity = res.embedder.query_similarity(cosine) if cosine is not None else None
    return Hit(memory, ranked.score, similarity, ranked.terms, ranked.factors)
