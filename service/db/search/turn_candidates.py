"""Candidates among the turns of a scope, with their features.

One statement reads the newest `exact_rows` turns of the scope, with exact BM25 and exact distances. A turn is often
found by the question before it, so its context scores combine its own with those of the turns just before it in the
conversation, by a window over rows that are scored anyway: no second vector is stored, and an erased turn leaves
nothing in its neighbours (docs/decisions/014-context-columns.md). A turn that is stored as a memory too (infer=false)
takes the context scores of the memory, which are better. In a larger scope the HNSW index of the generation adds older
turns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import DateTime, TextClause, bindparam, text

from service.db import direct
from service.db.engine import Session
from service.db.episodes.turns import TurnFilter
from service.db.scopes import Condition, typed
from service.db.search import features
from service.db.search.features import Features
from service.db.search.plan import Candidates
from service.db.tables import TERM_DIMENSIONS
from service.db.vectors import Half, cosine, graph_distance
from service.domain.bm25 import IDF_SQL

# ix_turn_user, _agent or _run restricts the scope and gives the order. The weights are IDFs over the rows that were
# read (as in Lucene's BM25); the indexes of a sparse vector begin at 1 in SQL, at 0 in the driver. A turn without a
# vector has no cosine, and is found by its words and those before it.
SCORED = """
WITH scoped AS MATERIALIZED (
    SELECT t.id, t.conversation_id, t.turn_index, t.terms, t.bm25, t."timestamp"
    FROM {turns} {newest}
), counted AS (
    SELECT count(*)::float8 AS total FROM scoped
), frequency AS (
    SELECT term, count(*)::float8 AS turns FROM scoped, unnest(terms) term
    WHERE terms && CAST(:terms AS integer[]) AND term = ANY (CAST(:terms AS integer[])) GROUP BY term
), query AS (
    SELECT ('{{' || string_agg((term + 1) || ':' || {idf}, ',' ORDER BY term)
            || '}}/{dimensions}')::sparsevec AS weights
    FROM frequency, counted
), memory_context AS (
    SELECT o.turn_id, max(greatest(-(m.context_bm25 <#> q.weights), 0)) AS lexical,
           max({context_cosine}) AS cosine
    FROM scoped s CROSS JOIN query q
    JOIN memory_source o ON o.workspace_id = :workspace AND o.turn_id = s.id
    JOIN memory m ON m.workspace_id = :workspace AND m.id = o.memory_id AND m.context_bm25 IS NOT NULL
    LEFT JOIN memory_vector c ON c.workspace_id = :workspace AND c.memory_id = m.id
        AND c.generation = {generation} AND c.kind = 'context'
    GROUP BY o.turn_id
), own AS (
    SELECT s.id, s.conversation_id, s.turn_index, s."timestamp",
           CASE WHEN s.terms && CAST(:terms AS integer[]) THEN greatest(-(s.bm25 <#> q.weights), 0) ELSE 0 END
               AS text_lexical,
           {text_cosine} AS text_cosine
    FROM scoped s CROSS JOIN query q
    LEFT JOIN turn_vector v ON v.workspace_id = :workspace AND v.turn_id = s.id AND v.generation = {generation}
), scored AS MATERIALIZED (
    SELECT own.*,
           coalesce(c.lexical, own.text_lexical + coalesce(sum(own.text_lexical) OVER two_before, 0))
               AS context_lexical,
           coalesce(c.cosine, (2 * own.text_cosine + coalesce(lag(own.text_cosine) OVER conversation, own.text_cosine))
               / 3) AS context_cosine
    FROM own LEFT JOIN memory_context c ON c.turn_id = own.id
    WINDOW conversation AS (PARTITION BY conversation_id ORDER BY turn_index),
           two_before AS (PARTITION BY conversation_id ORDER BY turn_index ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)
), candidate AS (
    (SELECT id FROM scored WHERE text_lexical > 0 ORDER BY text_lexical DESC, id LIMIT :candidate_limit)
    UNION (SELECT id FROM scored WHERE context_lexical > 0 ORDER BY context_lexical DESC, id LIMIT :candidate_limit)
    UNION (SELECT id FROM scored WHERE text_cosine IS NOT NULL ORDER BY text_cosine DESC, id LIMIT :candidate_limit)
    UNION (SELECT id FROM scored WHERE context_cosine IS NOT NULL ORDER BY context_cosine DESC, id
           LIMIT :candidate_limit)
    UNION (SELECT id FROM scored WHERE CAST(:time AS timestamptz) IS NOT NULL
           ORDER BY abs(date_part('epoch', "timestamp") - date_part('epoch', CAST(:time AS timestamptz))), id
           LIMIT :candidate_limit)
    UNION (SELECT id FROM scored ORDER BY "timestamp" DESC, id LIMIT :newest)
)
SELECT s.id AS ids, s.text_lexical, s.context_lexical, s.text_cosine AS text_vector,
       s.context_cosine AS context_vector, s."timestamp", coalesce(t.shown, t.content) AS phrasing, t.terms,
       t.speaker, t.role, (SELECT total FROM counted) AS total,
       (SELECT json_object_agg(term, turns)::text FROM frequency) AS frequencies
FROM candidate c JOIN scored s ON s.id = c.id
JOIN turn t ON t.workspace_id = :workspace AND t.id = s.id
"""

# ix_turn_vector_hnsw_<generation>; rows are filtered after it, so more are read than wanted.
OLDER = """
WITH nearest AS MATERIALIZED (
    SELECT v.turn_id, {graph_distance} AS distance
    FROM turn_vector v JOIN turn t ON t.workspace_id = v.workspace_id AND t.id = v.turn_id
    WHERE {vectors} AND v.generation = {generation} AND {scope} AND {rows}
    ORDER BY {graph_distance} LIMIT :scan_limit
)
SELECT turn_id FROM nearest ORDER BY distance + 0 LIMIT :candidate_limit
"""

SPEAKERS = """
SELECT DISTINCT s.speaker FROM (
    SELECT t.speaker FROM {turns} {newest}
) s ORDER BY s.speaker LIMIT 200
"""

OVERFETCH = 4
TURNS = "turn t"
NEWEST = 'ORDER BY t."timestamp" DESC LIMIT :exact_rows'
NEWEST_NAMED = 'ORDER BY t."timestamp" DESC LIMIT 2000'


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """A query as the statements need it: term ids, its vector (None: no embedder), and the middle of the time asked
    for."""

    terms: Sequence[int]
    vector: NDArray[np.float32] | None
    time: datetime | None = None


async def speakers(session: Session, wanted: TurnFilter) -> list[str]:
    """Returns the names, as clients gave them, of those who speak in the newest turns of the scope."""
    named = wanted.place("t") & Condition("t.speaker IS NOT NULL")
    statement = _speakers_statement(named.source(TURNS, NEWEST_NAMED))
    return [row.speaker for row in await session.execute(statement, named.values)]


async def read(
    session: Session,
    wanted: TurnFilter,
    query: TurnQuery,
    *,
    generation: int,
    candidate_limit: int,
    newest: int,
    exact_rows: int,
) -> tuple[Candidates, Features]:
    """Returns the best `candidate_limit` turns by each score and the `newest` ones, and the features of each. A turn's
    context scores are together with the turns just before it."""
    values = {
        **wanted.place("t").values,
        "workspace": wanted.scope.workspace_id,
        "terms": list(query.terms),
        "vector": query.vector,
        "time": query.time,
        "candidate_limit": candidate_limit,
    }
    rows = wanted.rows("t")
    found = await _scored(session, wanted, rows, values | {"exact_rows": exact_rows, "newest": newest}, generation)
    texts = int(found.pop("total", (0,))[0])
    counted = json.loads(found.pop("frequencies", (None,))[0] or "{}")
    if texts >= exact_rows and query.vector is not None:
        older = await _older(session, wanted, query.vector, candidate_limit, generation)
        if ids := list(set(older).difference(found["ids"])):
            rows &= Condition("t.id = ANY (CAST(:ids AS uuid[]))", {"ids": ids})
            more = await _scored(session, wanted, rows, values | {"exact_rows": len(ids), "newest": 0}, generation)
            found = {name: (*column, *more.get(name, ())) for name, column in found.items()}
    frequencies = {int(term): float(turns) for term, turns in counted.items()}
    return Candidates(texts, frequencies, frequencies), features.of_columns(found)


async def _scored(
    session: Session, wanted: TurnFilter, rows: Condition, values: Mapping[str, object], generation: int
) -> dict[str, tuple[Any, ...]]:
    statement = _scored_statement((wanted.place("t") & rows).source(TURNS, NEWEST), generation)
    return await direct.columns(session, statement, {**values, **rows.values})


async def _older(
    session: Session, wanted: TurnFilter, vector: NDArray[np.float32], candidate_limit: int, generation: int
) -> Sequence[UUID]:
    scope, vectors, rows = wanted.place("t"), wanted.place("v"), wanted.rows("t")
    values: dict[str, object] = {
        **scope.values,
        **vectors.values,
        **rows.values,
        "vector": vector,
        "scan_limit": min(candidate_limit * OVERFETCH, 200),
        "candidate_limit": candidate_limit,
    }
    statement = _older_statement(scope.sql, vectors.sql, rows.sql, len(vector), generation)
    return (await session.scalars(statement, values)).all()


@lru_cache(maxsize=256)
def _scored_statement(turns: str, generation: int) -> TextClause:
    filled = SCORED.format(
        turns=turns,
        newest=NEWEST,
        generation=int(generation),
        dimensions=TERM_DIMENSIONS,
        idf=IDF_SQL.format(texts="total", frequency="turns"),
        text_cosine=cosine("v.embedding", ":vector"),
        context_cosine=cosine("c.embedding", ":vector"),
    )
    return typed(text(filled)).bindparams(
        bindparam("vector", type_=Half()), bindparam("time", type_=DateTime(timezone=True))
    )


@lru_cache(maxsize=256)
def _older_statement(scope: str, vectors: str, rows: str, dimension: int, generation: int) -> TextClause:
    filled = OLDER.format(
        scope=scope,
        vectors=vectors,
        rows=rows,
        generation=int(generation),
        graph_distance=graph_distance(dimension, ":vector"),
    )
    return typed(text(filled)).bindparams(bindparam("vector", type_=Half()))


@lru_cache(maxsize=64)
def _speakers_statement(turns: str) -> TextClause:
    return typed(text(SPEAKERS.format(turns=turns, newest=NEWEST_NAMED)))
