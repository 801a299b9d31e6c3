"""Which memories share words with a question?

Exact BM25 inside Postgres: `terms` says which rows have a word in common, the inner product of `bm25` with a query
vector is the score (dependencies 8). Here only for rows whose vector is still to come: they must be found by text at
once (B21), so every word counts the same and the score is the share of what the row could have reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from pgvector import SparseVector
from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import TextClause, bindparam, text

from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.tables import TERM_DIMENSIONS


@dataclass(frozen=True, slots=True)
class Match:
    """A row and its BM25 score, above 0 and without an upper bound."""

    id: UUID
    score: float


# The wanted rows are few, so the scope's btree and a filter are enough (a GIN index is dead under the policy, A2).
WAITING = """
SELECT m.id, m.bm25 <#> :asked AS distance FROM memory m
WHERE m.embedding_status <> 'stored' AND m.terms && CAST(:terms AS integer[]) AND {rows}
ORDER BY distance, m.id LIMIT :wanted
"""


async def waiting(session: Session, rows: Condition, question: Mapping[int, float], *, limit: int) -> list[Match]:
    """Rows without a vector that hold a word of the question (term id to IDF), best first."""
    if not question:
        return []
    asked = SparseVector(dict(question), TERM_DIMENSIONS)
    values = {**rows.values, "asked": asked, "terms": sorted(question), "wanted": limit}
    return [Match(row.id, -row.distance) for row in await session.execute(_waiting(rows.sql), values)]


@lru_cache(maxsize=64)
def _waiting(rows: str) -> TextClause:
    shape = typed(text(WAITING.format(rows=rows)))
    return shape.bindparams(bindparam("asked", type_=SPARSEVEC(TERM_DIMENSIONS)))
