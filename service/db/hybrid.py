"""Which memories may answer a question, and what is measured of each?

`candidates`: in a scope of up to `exact_rows` rows every arm looks at all of them: own words and context words by
exact BM25, own vectors and context vectors by exact distance, the time asked for, tags, and the newest to fill up. The
scope is cut by its btree and held once; everything else is a filter, because under row-level security no GIN index is
used (A2). Document frequencies are counted in the same statement, so they are right after every update and delete.
`signals`: all measures of each candidate, with the very same weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector
from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy import DateTime, TextClause, bindparam, text

from service.db import goal_pull
from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.tables import TERM_DIMENSIONS

# The query's weights are put together in SQL, from counts of this very snapshot: a sparse vector of IDFs (Lucene's
# BM25). A row without context is its own context. `wanted` fills up what the arms leave over.
CANDIDATES = """
WITH scoped AS MATERIALIZED (
    SELECT m.id, m.terms, m.bm25, m."timestamp", m.created_at, m.tag_prefixes,
           CASE WHEN m.context_bm25 IS NULL THEN m.terms ELSE m.context_terms END AS near_terms,
           coalesce(m.context_bm25, m.bm25) AS near_bm25
    FROM memory m WHERE {scope} AND {rows} LIMIT :exact_rows + 1
), counted AS (
    SELECT count(*)::float8 AS texts FROM scoped
), small AS (
    SELECT texts <= :exact_rows AS holds FROM counted
), own AS (
    SELECT t AS term, count(*)::float8 AS found FROM scoped, unnest(terms) t
    WHERE terms && CAST(:terms AS integer[]) AND t = ANY (CAST(:terms AS integer[])) GROUP BY t
), near AS (
    SELECT t AS term, count(*)::float8 AS found FROM scoped, unnest(near_terms) t
    WHERE near_terms && CAST(:terms AS integer[]) AND t = ANY (CAST(:terms AS integer[])) GROUP BY t
), asked_own AS (
    SELECT ('{{' || string_agg(term || ':' || ln(1 + (texts - found + 0.5) / (found + 0.5)), ',' ORDER BY term)
            || '}}/{dimensions}')::sparsevec AS weights FROM own, counted
), asked_near AS (
    SELECT ('{{' || string_agg(term || ':' || ln(1 + (texts - found + 0.5) / (found + 0.5)), ',' ORDER BY term)
            || '}}/{dimensions}')::sparsevec AS weights FROM near, counted
), vectors AS (
    SELECT v.memory_id, v.kind, (v.embedding <=> :question) + 0 AS distance
    FROM memory_vector v JOIN scoped s ON s.id = v.memory_id
    WHERE (SELECT holds FROM small) AND {vectors} AND v.generation = {generation} AND v.kind IN ('text', 'context')
)
SELECT 'texts' AS arm, CAST(NULL AS uuid) AS id, CAST(NULL AS integer) AS term, texts AS value FROM counted
UNION ALL SELECT 'own', NULL, term, found FROM own
UNION ALL SELECT 'near', NULL, term, found FROM near
UNION ALL (SELECT 'text_lexical', s.id, NULL, 0 FROM scoped s, asked_own a
    WHERE (SELECT holds FROM small) AND s.terms && CAST(:terms AS integer[])
    ORDER BY s.bm25 <#> a.weights, s.id LIMIT :arm)
UNION ALL (SELECT 'context_lexical', s.id, NULL, 0 FROM scoped s, asked_near a
    WHERE (SELECT holds FROM small) AND s.near_terms && CAST(:terms AS integer[])
    ORDER BY s.near_bm25 <#> a.weights, s.id LIMIT :arm)
UNION ALL (SELECT 'text_vector', memory_id, NULL, 0 FROM vectors WHERE kind = 'text'
    ORDER BY distance, memory_id LIMIT :arm)
UNION ALL (SELECT 'context_vector', memory_id, NULL, 0 FROM vectors WHERE kind = 'context'
    ORDER BY distance, memory_id LIMIT :arm)
UNION ALL (SELECT 'time', s.id, NULL, 0 FROM scoped s
    WHERE (SELECT holds FROM small) AND CAST(:asked_at AS timestamptz) IS NOT NULL
    ORDER BY abs(extract(epoch FROM s."timestamp" - CAST(:asked_at AS timestamptz))), s.id LIMIT :arm)
UNION ALL (SELECT 'tag', s.id, NULL, 0 FROM scoped s
    WHERE (SELECT holds FROM small) AND s.tag_prefixes && CAST(:tags AS text[])
    ORDER BY s.created_at DESC, s.id LIMIT :arm)
UNION ALL (SELECT 'newest', s.id, NULL, 0 FROM scoped s WHERE (SELECT holds FROM small)
    ORDER BY s.created_at DESC, s.id LIMIT :wanted)
"""

SIGNALS = """
WITH {active_goals}
SELECT m.id, m.content, m.terms, m.speaker, m.role, m."timestamp", m.mentions, m.tag_prefixes,
       m.valid_until, m.t_invalid, m.importance, m.temporal_tag,
       -(m.bm25 <#> :asked_own) AS text_lexical,
       CASE WHEN m.context_bm25 IS NULL THEN NULL ELSE -(m.context_bm25 <#> :asked_near) END AS context_lexical,
       1 - (t.embedding <=> :question) AS text_vector,
       1 - (c.embedding <=> :question) AS context_vector, pull.goal_tied, pull.goal_near
FROM memory m
LEFT JOIN memory_vector t ON t.workspace_id = m.workspace_id AND t.memory_id = m.id AND t.generation = {generation}
    AND t.kind = 'text'
LEFT JOIN memory_vector c ON c.workspace_id = m.workspace_id AND c.memory_id = m.id AND c.generation = {generation}
    AND c.kind = 'context'
{goal_pull}
WHERE m.workspace_id = :workspace AND m.id = ANY (:ids) AND {scope} AND {rows}
"""

SPEAKERS = """
SELECT DISTINCT s.speaker FROM (
    SELECT m.speaker FROM memory m WHERE {scope} AND m.speaker IS NOT NULL ORDER BY m.created_at DESC LIMIT :exact_rows
) s ORDER BY s.speaker LIMIT 200
"""


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look: the scope on `memory m` and on `memory_vector v`, what else a row must be, which vectors count."""

    scope: Condition
    vectors: Condition
    rows: Condition
    generation: int
    exact_rows: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as the arms need it. `vector` None: no embedder. `asked_at`: middle of the time asked for."""

    terms: Sequence[int]
    vector: NDArray[np.float32] | None
    asked_at: datetime | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """`arms`: ids by arm, best first. `texts`: rows of the scope, counted up to one above the exact limit. `own`,
    `near`: in how many texts, and in how many contexts, a term stands."""

    texts: int
    own: Mapping[int, float]
    near: Mapping[int, float]
    arms: Mapping[str, Sequence[UUID]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """One candidate with its measures; BM25 >= 0, cosines -1..1, None where there is nothing to measure.
    `goal_tied`: to an active goal; `goal_near`: the cosine to the nearest of them."""

    id: UUID
    text: str
    terms: frozenset[int]
    speaker: str | None
    role: str | None
    timestamp: datetime
    mentions: Sequence[Mapping[str, Any]]
    tag_prefixes: Sequence[str]
    valid_until: datetime | None
    t_invalid: datetime | None
    importance: float
    temporal_tag: str | None
    text_lexical: float
    context_lexical: float | None
    text_vector: float | None
    context_vector: float | None
    goal_tied: bool | None = None
    goal_near: float | None = None


async def speakers(session: Session, where: Where) -> list[str]:
    """Who speaks in the scope, by the names that clients gave."""
    found = await session.execute(_speakers(where.scope.sql), {**where.scope.values, "exact_rows": where.exact_rows})
    return [row.speaker for row in found]


async def candidates(session: Session, where: Where, ask: Ask, *, arm: int, wanted: int) -> Candidates:
    """At most `arm` ids of each arm and the `wanted` newest; no ids in a scope of more than `exact_rows` rows."""
    shape = _candidates(where.scope.sql, where.vectors.sql, where.rows.sql, where.generation)
    values = {
        **where.scope.values,
        **where.vectors.values,
        **where.rows.values,
        "exact_rows": where.exact_rows,
        "terms": list(ask.terms),
        "question": ask.vector.tolist() if ask.vector is not None else None,
        "asked_at": ask.asked_at,
        "tags": list(ask.tags),
        "arm": arm,
        "wanted": wanted,
    }
    counts: dict[str, dict[int, float]] = {"own": {}, "near": {}}
    arms: dict[str, list[UUID]] = {}
    texts = 0
    for row in await session.execute(shape, values):
        if row.arm == "texts":
            texts = int(row.value)
        elif row.id is None:
            counts[row.arm][row.term] = row.value
        else:
            arms.setdefault(row.arm, []).append(row.id)
    return Candidates(texts, counts["own"], counts["near"], arms)


async def signals(
    session: Session,
    where: Where,
    ids: Sequence[UUID],
    ask: Ask,
    *,
    own: Mapping[int, float],
    near: Mapping[int, float],
) -> list[Measured]:
    """All measures of the candidates that the scope and the rules let through; `own` and `near`: IDF by term."""
    values = {
        **where.scope.values,
        **where.rows.values,
        "ids": list(ids),
        "question": ask.vector.tolist() if ask.vector is not None else None,
        "asked_own": SparseVector(dict(own), TERM_DIMENSIONS),
        "asked_near": SparseVector(dict(near), TERM_DIMENSIONS),
    }
    rows = await session.execute(_signals(where.scope.sql, where.rows.sql, where.generation), values)
    return [
        Measured(
            row.id,
            row.content,
            frozenset(row.terms),
            row.speaker,
            row.role,
            row.timestamp,
            row.mentions,
            row.tag_prefixes,
            row.valid_until,
            row.t_invalid,
            row.importance,
            row.temporal_tag,
            max(row.text_lexical or 0.0, 0.0),
            row.context_lexical,
            row.text_vector,
            row.context_vector,
            row.goal_tied,
            row.goal_near,
        )
        for row in rows
    ]


@lru_cache(maxsize=256)
def _candidates(scope: str, vectors: str, rows: str, generation: int) -> TextClause:
    shape = CANDIDATES.format(
        scope=scope, vectors=vectors, rows=rows, generation=int(generation), dimensions=TERM_DIMENSIONS
    )
    return typed(text(shape)).bindparams(
        bindparam("question", type_=HALFVEC()), bindparam("asked_at", type_=DateTime(timezone=True))
    )


@lru_cache(maxsize=256)
def _signals(scope: str, rows: str, generation: int) -> TextClause:
    goals = {"active_goals": goal_pull.active(scope, generation), "goal_pull": goal_pull.PULL}
    shape = typed(text(SIGNALS.format(scope=scope, rows=rows, generation=int(generation), **goals)))
    sparse = SPARSEVEC(TERM_DIMENSIONS)
    return shape.bindparams(
        bindparam("question", type_=HALFVEC()),
        bindparam("asked_own", type_=sparse),
        bindparam("asked_near", type_=sparse),
    )


@lru_cache(maxsize=64)
def _speakers(scope: str) -> TextClause:
    return typed(text(SPEAKERS.format(scope=scope)))
