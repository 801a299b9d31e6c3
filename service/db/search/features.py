"""What is measured of each candidate of a search?

One row per candidate and one column per measure, so that ranking is arithmetic on columns: a few hundred objects with
twenty fields each cost more than the statement. What only some questions need is selected for those alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector
from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import TextClause, bindparam, text

from service.db import direct
from service.db.conditions import typed
from service.db.engine import Session
from service.db.search import goal_pull
from service.db.search.exact import Ask, Where
from service.db.tables import TERM_DIMENSIONS
from service.db.vectors import Half
from service.language.context import QUESTION_MARKS

Column = NDArray[np.float64]
"""A number for each candidate, NaN where there is nothing to measure."""

ASKS = " OR ".join(f"strpos(m.content, '{mark}') > 0" for mark in QUESTION_MARKS)

ALWAYS: Mapping[str, str] = {
    "ids": "m.id",
    "text_lexical": "-(m.bm25 <#> :asked_own)",
    "context_lexical": "-(m.context_bm25 <#> :asked_near)",
    "text_vector": "1 - (t.embedding <=> :question)",
    "context_vector": "1 - (c.embedding <=> :question)",
    "goal_tied": "pull.goal_tied",
    "goal_near": "pull.goal_near",
    "asking": f"CASE WHEN {ASKS} THEN m.content END",
}

SPOKEN, SPOKEN_BYTES = "spoken", 2_000
"""Wanted, it widens `asking` to all texts of up to so many bytes. Longer ones are no talk between two, are stored out
of line, and are too much to hand over for each candidate."""

SOMETIMES: Mapping[str, str] = {
    "plain": "1 - (t.embedding <=> :plain)",
    "speaker": "m.speaker",
    "role": "m.role",
    "timestamp": 'm."timestamp"',
    "mentions": "NULLIF(m.mentions, '[]')",
    "dated": "m.mentions <> '[]'",
    "tagged": "m.tag_prefixes && CAST(:tags AS text[])",
    "terms": "m.terms",
    "ended": "least(m.valid_until, m.t_invalid)",
    "temporal_tag": "m.temporal_tag",
    "importance": "m.importance",
}

# The candidates are found by their ids alone (OFFSET 0): with the scope beside them the planner would rather read the
# scope's whole btree, 3 ms in one of 20,000 rows.
MEASURED = """
WITH {active_goals}
SELECT {columns}
FROM (SELECT * FROM memory m WHERE m.workspace_id = :workspace AND m.id = ANY (:ids) OFFSET 0) m
LEFT JOIN memory_vector t ON t.workspace_id = m.workspace_id AND t.memory_id = m.id AND t.generation = {generation}
    AND t.kind = 'text'
LEFT JOIN memory_vector c ON c.workspace_id = m.workspace_id AND c.memory_id = m.id AND c.generation = {generation}
    AND c.kind = 'context'
{goal_pull}
WHERE {scope} AND {rows}
"""


@dataclass(frozen=True, slots=True)
class Measures:
    """The candidates with their measures, all columns in one order; one that was not wanted is empty.

    BM25 >= 0, cosines -1..1, NaN where there is nothing to measure. `goal_tied`: to an active goal, None without one;
    `goal_near`: the cosine to the nearest of them. `asking`: the texts that hold a question mark, with SPOKEN the short
    ones, too. `plain`: the cosine to the question's own vector, where another one is searched with. `ended`: when it
    was over, by either of its ends. `dated`: whether it names a time.
    """

    ids: Sequence[UUID]
    text_lexical: Column
    context_lexical: Column
    text_vector: Column
    context_vector: Column
    goal_tied: Sequence[bool | None] = ()
    goal_near: Sequence[float | None] = ()
    asking: Sequence[str | None] = ()
    plain: Sequence[float | None] = ()
    speaker: Sequence[str | None] = ()
    role: Sequence[str | None] = ()
    timestamp: Sequence[datetime] = ()
    mentions: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    dated: Sequence[bool] = ()
    tagged: Sequence[bool] = ()
    terms: Sequence[Sequence[int]] = ()
    ended: Sequence[datetime | None] = ()
    temporal_tag: Sequence[str | None] = ()
    importance: Sequence[float] = ()


async def read(
    session: Session,
    where: Where,
    ids: Sequence[UUID],
    ask: Ask,
    wanted: frozenset[str] = frozenset(),
    *,
    own: Mapping[int, float],
    near: Mapping[int, float],
) -> Measures:
    """The measures of the candidates that the scope and the rules let through; `own` and `near`: IDF by term,
    `wanted`: which of SOMETIMES, and SPOKEN."""
    shape, values = statement(where, ids, ask, wanted, own=own, near=near)
    found: dict[str, Any] = await direct.columns(session, shape, values) or dict.fromkeys(ALWAYS, ())
    for name in NUMBERS:
        found[name] = np.array(found[name], dtype=np.float64)
    found["text_lexical"] = np.fmax(found["text_lexical"], 0.0)  # a text without words: 0
    return Measures(**found)


def statement(
    where: Where,
    ids: Sequence[UUID],
    ask: Ask,
    wanted: frozenset[str] = frozenset(),
    *,
    own: Mapping[int, float],
    near: Mapping[int, float],
) -> tuple[TextClause, dict[str, Any]]:
    """The statement and its values, so that tests can EXPLAIN it."""
    if ask.plain is not None:
        wanted |= {"plain"}
    values = {
        **where.scope.values,
        **where.rows.values,
        "ids": list(ids),
        "question": HalfVector(ask.vector) if ask.vector is not None else None,
        "asked_own": SparseVector(dict(own), TERM_DIMENSIONS),
        "asked_near": SparseVector(dict(near), TERM_DIMENSIONS),
        "plain": HalfVector(ask.plain) if ask.plain is not None else None,
        "tags": list(ask.tags),
    }
    return _shape(where.scope.sql, where.rows.sql, where.generation, wanted), values


NUMBERS = ("text_lexical", "context_lexical", "text_vector", "context_vector")


@lru_cache(maxsize=1024)
def _shape(scope: str, rows: str, generation: int, wanted: frozenset[str]) -> TextClause:
    chosen = {**ALWAYS, **SOMETIMES}
    if SPOKEN in wanted:
        chosen["asking"] = f"CASE WHEN octet_length(m.content) <= {SPOKEN_BYTES} OR {ASKS} THEN m.content END"
    shape = MEASURED.format(
        columns=", ".join(f"{each} AS {name}" for name, each in chosen.items() if name in ALWAYS or name in wanted),
        scope=scope,
        rows=rows,
        generation=int(generation),
        active_goals=goal_pull.active(scope, generation),
        goal_pull=goal_pull.PULL,
    )
    sparse = SPARSEVEC(TERM_DIMENSIONS)
    vectors = [bindparam(name, type_=Half()) for name in ("question", "plain") if f":{name}" in shape]
    return typed(text(shape)).bindparams(
        *vectors, bindparam("asked_own", type_=sparse), bindparam("asked_near", type_=sparse)
    )
