"""Which turns may answer a question, and what is measured of each?

One statement looks at the newest `exact_rows` turns of the scope: exact BM25 and exact distances, and of each turn also
what its context says. A turn is often found by the question before it, so its own measures are taken together with
those of the turns just before it in the same conversation, by a window over what is measured anyway: no second vector
is kept, and an erased turn leaves nothing in its neighbours (A12). A turn that is kept as a memory too (infer=false)
takes the context that is kept with the memory, which is better. In a scope of more turns the generation's HNSW index
hands in the older ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import DateTime, TextClause, bindparam, text

from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.episodes.turns import Turns
from service.db.tables import TERM_DIMENSIONS
from service.db.vectors import Half

# ix_turn_user, _agent or _run cuts the scope and gives the order. The weights are IDFs over what was looked at
# (Lucene's BM25); the places of a sparse vector begin at 1 when written out, at 0 in the driver. A turn without a
# vector has no cosine, and is found by its words and those before it.
MEASURED = """
WITH scoped AS MATERIALIZED (
    SELECT t.id, t.conversation_id, t.turn_index, t.terms, t.bm25, t."timestamp"
    FROM turn t WHERE {scope} AND {rows} ORDER BY t."timestamp" DESC LIMIT :exact_rows
), counted AS (
    SELECT count(*)::float8 AS texts FROM scoped
), own AS (
    SELECT term, count(*)::float8 AS found FROM scoped, unnest(terms) term
    WHERE terms && CAST(:terms AS integer[]) AND term = ANY (CAST(:terms AS integer[])) GROUP BY term
), asked AS (
    SELECT ('{{' || string_agg((term + 1) || ':' || ln(1 + (texts - found + 0.5) / (found + 0.5)), ',' ORDER BY term)
            || '}}/{dimensions}')::sparsevec AS weights
    FROM own, counted
), told AS (
    SELECT o.turn_id, max(greatest(-(m.context_bm25 <#> a.weights), 0)) AS words,
           max(1 - (c.embedding <=> :question)) AS cosine
    FROM scoped s CROSS JOIN asked a
    JOIN memory_source o ON o.workspace_id = :workspace AND o.turn_id = s.id
    JOIN memory m ON m.workspace_id = :workspace AND m.id = o.memory_id AND m.context_bm25 IS NOT NULL
    LEFT JOIN memory_vector c ON c.workspace_id = :workspace AND c.memory_id = m.id
        AND c.generation = {generation} AND c.kind = 'context'
    GROUP BY o.turn_id
), alone AS (
    SELECT s.id, s.conversation_id, s.turn_index, s."timestamp",
           CASE WHEN s.terms && CAST(:terms AS integer[]) THEN greatest(-(s.bm25 <#> a.weights), 0) ELSE 0 END AS words,
           1 - (v.embedding <=> :question) AS cosine
    FROM scoped s CROSS JOIN asked a
    LEFT JOIN turn_vector v ON v.workspace_id = :workspace AND v.turn_id = s.id AND v.generation = {generation}
), measured AS MATERIALIZED (
    SELECT alone.*, coalesce(told.words, alone.words + coalesce(sum(alone.words) OVER before, 0)) AS near_words,
           coalesce(told.cosine, (2 * alone.cosine + coalesce(lag(alone.cosine) OVER said, alone.cosine)) / 3)
               AS near_cosine
    FROM alone LEFT JOIN told ON told.turn_id = alone.id
    WINDOW said AS (PARTITION BY conversation_id ORDER BY turn_index),
           before AS (PARTITION BY conversation_id ORDER BY turn_index ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)
), picked AS (
    (SELECT id FROM measured WHERE words > 0 ORDER BY words DESC, id LIMIT :arm)
    UNION (SELECT id FROM measured WHERE near_words > 0 ORDER BY near_words DESC, id LIMIT :arm)
    UNION (SELECT id FROM measured WHERE cosine IS NOT NULL ORDER BY cosine DESC, id LIMIT :arm)
    UNION (SELECT id FROM measured WHERE near_cosine IS NOT NULL ORDER BY near_cosine DESC, id LIMIT :arm)
    UNION (SELECT id FROM measured WHERE CAST(:asked_at AS timestamptz) IS NOT NULL
           ORDER BY abs(extract(epoch FROM "timestamp" - CAST(:asked_at AS timestamptz))), id LIMIT :arm)
    UNION (SELECT id FROM measured ORDER BY "timestamp" DESC, id LIMIT :wanted)
)
SELECT m.id, m.words, m.near_words, m.cosine, m.near_cosine, m."timestamp", t.conversation_id, t.turn_index,
       t.content, t.terms, t.speaker, t.role, (SELECT texts FROM counted) AS texts,
       (SELECT json_object_agg(term, found)::text FROM own) AS found_in
FROM picked p JOIN measured m ON m.id = p.id
JOIN turn t ON t.workspace_id = :workspace AND t.id = m.id
"""

# ix_turn_vector_hnsw_<generation>; the rows are filtered behind it, with over-fetch.
OLDER = """
WITH near AS MATERIALIZED (
    SELECT v.turn_id, v.embedding::halfvec({dimension}) <=> CAST(:question AS halfvec({dimension})) AS distance
    FROM turn_vector v JOIN turn t ON t.workspace_id = v.workspace_id AND t.id = v.turn_id
    WHERE {vectors} AND v.generation = {generation} AND {scope} AND {rows}
    ORDER BY v.embedding::halfvec({dimension}) <=> CAST(:question AS halfvec({dimension})) LIMIT :wide
)
SELECT turn_id FROM near ORDER BY distance + 0 LIMIT :arm
"""

SPEAKERS = """
SELECT DISTINCT s.speaker FROM (
    SELECT t.speaker FROM turn t WHERE {scope} AND t.speaker IS NOT NULL ORDER BY t."timestamp" DESC LIMIT 2000
) s ORDER BY s.speaker LIMIT 200
"""

OVERFETCH = 4


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as the statement needs it. `vector` None: no embedder. `asked_at`: middle of the time asked for."""

    terms: Sequence[int]
    vector: NDArray[np.float32] | None
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate with its measures: BM25 >= 0, cosines -1..1; `near_*` with the turns just before it."""

    id: UUID
    conversation_id: UUID
    index: int
    text: str
    terms: frozenset[int]
    speaker: str | None
    role: str
    timestamp: datetime
    words: float
    near_words: float
    cosine: float | None
    near_cosine: float | None


@dataclass(frozen=True, slots=True)
class Looked:
    """Candidates, out of how many turns, and in how many of them each term id stands."""

    measured: tuple[Measured, ...]
    texts: int
    found_in: Mapping[int, float]


async def speakers(session: Session, wanted: Turns) -> list[str]:
    """Who speaks in the newest turns of the scope, by the names that clients gave."""
    found = await session.execute(_speakers(wanted.place("t").sql), wanted.place("t").values)
    return [row.speaker for row in found]


async def look(
    session: Session, wanted: Turns, ask: Ask, *, generation: int, arm: int, limit: int, exact_rows: int
) -> Looked:
    """The best `arm` turns by each measure and the `limit` newest, with all measures of each."""
    found = await _measured(session, wanted, wanted.rows("t"), ask, generation, arm, limit, exact_rows)
    if found.texts < exact_rows or ask.vector is None:
        return found
    values: dict[str, object] = {
        **wanted.place("t").values,
        **wanted.place("v").values,
        **wanted.rows("t").values,
        "question": ask.vector,
        "wide": min(arm * OVERFETCH, 200),
        "arm": arm,
    }
    shape = _older(wanted.place("t").sql, wanted.place("v").sql, wanted.rows("t").sql, len(ask.vector), generation)
    seen = {each.id for each in found.measured}
    ids = [each for each in await session.scalars(shape, values) if each not in seen]
    if not ids:
        return found
    these = wanted.rows("t") & Condition("t.id = ANY (CAST(:ids AS uuid[]))", {"ids": ids})
    more = await _measured(session, wanted, these, ask, generation, arm, 0, len(ids))
    return replace(found, measured=(*found.measured, *more.measured))


async def _measured(
    session: Session, wanted: Turns, rows: Condition, ask: Ask, generation: int, arm: int, limit: int, exact_rows: int
) -> Looked:
    values = {
        **wanted.place("t").values,
        **rows.values,
        "workspace": wanted.scope.workspace_id,
        "terms": list(ask.terms),
        "question": ask.vector,
        "asked_at": ask.asked_at,
        "exact_rows": exact_rows,
        "arm": arm,
        "wanted": limit,
    }
    listed = (await session.execute(_shape(wanted.place("t").sql, rows.sql, generation), values)).all()
    if not listed:
        return Looked((), 0, {})
    measured = tuple(
        Measured(
            row.id,
            row.conversation_id,
            row.turn_index,
            row.content,
            frozenset(row.terms),
            row.speaker,
            row.role,
            row.timestamp,
            row.words or 0.0,
            row.near_words or 0.0,
            row.cosine,
            row.near_cosine,
        )
        for row in listed
    )
    first = listed[0]
    found_in = {int(term): float(count) for term, count in json.loads(first.found_in or "{}").items()}
    return Looked(measured, int(first.texts), found_in)


@lru_cache(maxsize=256)
def _shape(scope: str, rows: str, generation: int) -> TextClause:
    filled = MEASURED.format(scope=scope, rows=rows, generation=int(generation), dimensions=TERM_DIMENSIONS)
    return typed(text(filled)).bindparams(
        bindparam("question", type_=Half()), bindparam("asked_at", type_=DateTime(timezone=True))
    )


@lru_cache(maxsize=256)
def _older(scope: str, vectors: str, rows: str, dimension: int, generation: int) -> TextClause:
    filled = OLDER.format(scope=scope, vectors=vectors, rows=rows, dimension=int(dimension), generation=int(generation))
    return typed(text(filled)).bindparams(bindparam("question", type_=Half()))


@lru_cache(maxsize=64)
def _speakers(scope: str) -> TextClause:
    return typed(text(SPEAKERS.format(scope=scope)))


def held(measured: Measured, terms: Mapping[str, int]) -> set[str]:
    """The words of the question that stand in the turn itself."""
    return {term for term, number in terms.items() if number in measured.terms}
