"""The features of each candidate of a search, as columns.

One row per candidate and one column per feature, so that ranking is arithmetic on columns: a few hundred objects with
twenty fields each cost more than the statement. What only some queries need is selected for those alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import compress
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector
from sqlalchemy import TextClause

from service.language.context import QUESTION_MARKS
from service.memories.statements.visibility import ENDED
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.scopes import by_key, by_keys
from service.postgres.template import Template
from service.postgres.vectors import TERM_DIMENSIONS, cosine
from service.search.statements.search_plan import SearchPlan

Column = NDArray[np.float64]
"""A number for each candidate; NaN if there is nothing to measure."""

NUMBERS = ("text_lexical", "context_lexical", "text_vector", "context_vector")

MAX_GOALS = 8
"""Number of active goals that are used, by priority. More would be close to everything."""

HAS_QUESTION = " OR ".join(f"strpos(m.content, '{mark}') > 0" for mark in QUESTION_MARKS)

ALWAYS: Mapping[str, str] = {
    "ids": "m.id",
    "text_lexical": "-(m.bm25 <#> :text_idf)",
    "context_lexical": "-(m.context_bm25 <#> :context_idf)",
    "text_vector": "near.text_vector",
    "context_vector": "near.context_vector",
    "goal_linked": """(SELECT bool_or(EXISTS (SELECT FROM goal_memory gm WHERE gm.workspace_id = m.workspace_id
            AND gm.goal_id = a.id AND gm.memory_id = m.id)) FROM active_goals a)""",
    "goal_cosine": "near.goal_cosine",
    "phrasing": f"CASE WHEN {HAS_QUESTION} THEN m.content END",
    "timestamp": 'm."timestamp"',
    "vectors": "near.vector",
}

SHORT_TEXTS, SHORT_BYTES = "short_texts", 2_000
"""A wanted feature that widens `phrasing` to all texts of up to this many bytes. Longer ones are documents rather than
messages, are stored out of line, and are too large to return for each candidate."""

OPTIONAL: Mapping[str, str] = {
    "original_cosine": "near.original_cosine",
    "speaker": "m.speaker",
    "role": "m.role",
    "mentions": "NULLIF(m.mentions, '[]')",
    "dated": "m.mentions <> '[]'",
    "tagged": "m.tag_prefixes && CAST(:tags AS text[])",
    "terms": "m.terms",
    "ended": ENDED,
    "temporal_tag": "m.temporal_tag",
    "importance": "m.importance",
}

# The candidates are found by their keys alone, the vectors of each in one step by theirs: with the scope next to them
# the planner would rather read the scope's whole btree, 3 ms in one of 20,000 rows. The active goals of the scope are
# read once; a memory is linked to one by hand, or close to its description. Without active goals both columns are NULL.
FEATURES = Template(
    """
WITH active_goals AS MATERIALIZED (
    SELECT g.id, gv.embedding FROM (
        SELECT * FROM (
            SELECT * FROM goal g WHERE {goal_scope} AND g.status = 'active' ORDER BY g.created_at DESC OFFSET 0
        ) g ORDER BY g.priority DESC, g.created_at DESC, g.id LIMIT {max_goals}
    ) g LEFT JOIN LATERAL ({goal_vector}) gv ON true
)
SELECT {columns}
FROM ({memories}) m
CROSS JOIN LATERAL (
    SELECT max({cosine}) FILTER (WHERE v.kind = 'text') AS text_vector,
           max({cosine}) FILTER (WHERE v.kind = 'context') AS context_vector,
           max({original}) FILTER (WHERE v.kind = 'text') AS original_cosine,
           string_agg(halfvec_send(v.embedding), ''::bytea) FILTER (WHERE v.kind = 'text') AS vector,
           max((SELECT max({goal_cosine}) FROM active_goals a)) FILTER (WHERE v.kind = 'text') AS goal_cosine
    FROM ({vectors}) v
) near
WHERE {scope} AND {rows}
""",
    cosine=cosine("v.embedding"),
    original=cosine("v.embedding", ":original_vector"),
    goal_cosine=cosine("a.embedding", "v.embedding"),
    max_goals=MAX_GOALS,
    memories=by_keys("memory", "CAST(:ids AS uuid[])"),
)


@dataclass(frozen=True, slots=True)
class Features:
    """The candidates with their features, all columns in one order; one that was not wanted is empty.

    BM25 >= 0, cosines -1..1, NaN where there is nothing to measure. `goal_linked`: to an active goal by hand, None
    without one; `goal_cosine`: to the nearest of them. `phrasing`: the texts that hold a question mark, with
    SHORT_TEXTS the short ones, too. `original_cosine`: to the unexpanded query's vector, if the query was expanded.
    `ended`: when it stopped being true, by either of its ends; None for a statement about a time that was already past.
    `dated`: whether it names a time. `vectors`: those of the texts, as Postgres sends them
    (vectors.read_many).
    """

    ids: Sequence[UUID]
    text_lexical: Column
    context_lexical: Column
    text_vector: Column
    context_vector: Column
    goal_linked: Sequence[bool | None] = ()
    goal_cosine: Sequence[float | None] = ()
    phrasing: Sequence[str | None] = ()
    timestamp: Sequence[datetime] = ()
    vectors: Sequence[bytes | None] = ()
    original_cosine: Sequence[float | None] = ()
    speaker: Sequence[str | None] = ()
    role: Sequence[str | None] = ()
    mentions: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    dated: Sequence[bool] = ()
    tagged: Sequence[bool] = ()
    terms: Sequence[Sequence[int]] = ()
    ended: Sequence[datetime | None] = ()
    temporal_tag: Sequence[str | None] = ()
    importance: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class TermIdf:
    """The IDF of each term of a query, over texts and over contexts, by term id."""

    of_texts: Mapping[int, float]
    of_contexts: Mapping[int, float]


async def read(
    session: Session, plan: SearchPlan, ids: Sequence[UUID], idf: TermIdf, wanted: frozenset[str] = frozenset()
) -> Features:
    """The features of the candidates that meet the scope and the conditions; `wanted`: those of OPTIONAL, and
    SHORT_TEXTS."""
    shape, values = statement(plan, ids, idf, wanted)
    return of_columns(await direct.columns(session, shape, values))


def of_columns(columns: Mapping[str, Sequence[Any]]) -> Features:
    """Features from the columns of a statement; empty without a row."""
    numbers = {name: np.array(columns.get(name, ()), dtype=np.float64) for name in NUMBERS}
    numbers["text_lexical"] = np.fmax(numbers["text_lexical"], 0.0)  # a text without terms: 0
    known: dict[str, Any] = {"ids": (), **columns, **numbers}
    return Features(**known)


UNKNOWN: Mapping[str, object] = {"dated": False, "tagged": False, "importance": 0.5}
"""The value that turns have for features of memories; None for other features."""


def join(memories: Features, more: Features, wanted: frozenset[str]) -> Features:
    """The features of memories, then those of more candidates, such as turns. `wanted`: the features read for
    memories."""
    columns: dict[str, Any] = {name: np.concatenate([getattr(memories, name), getattr(more, name)]) for name in NUMBERS}
    for name in (ALWAYS.keys() | wanted) - {*NUMBERS, SHORT_TEXTS}:
        others = getattr(more, name) or [UNKNOWN.get(name)] * len(more.ids)
        columns[name] = [*getattr(memories, name), *others]
    return Features(**columns)


def with_contexts(features: Features, contexts: Sequence[tuple[UUID, float, float | None]]) -> Features:
    """The features, with the best of these for memories without a context."""
    best: dict[UUID, Column] = {}
    for each, *scores in contexts:
        best[each] = np.fmax(best.get(each, np.full(2, np.nan)), np.array(scores, dtype=np.float64))
    lexical, cosines = np.array([best.get(key, np.full(2, np.nan)) for key in features.ids]).reshape(-1, 2).T
    return replace(
        features,
        context_lexical=np.where(np.isnan(features.context_lexical), lexical, features.context_lexical),
        context_vector=np.where(np.isnan(features.context_vector), cosines, features.context_vector),
    )


def choose(features: Features, keep: NDArray[np.bool_]) -> Features:
    """The features of some of the candidates."""
    columns: dict[str, Any] = {field.name: getattr(features, field.name) for field in fields(features)}
    for name, each in columns.items():
        columns[name] = each[keep] if name in NUMBERS else [*compress(each, keep)]
    return Features(**columns)


def statement(
    plan: SearchPlan, ids: Sequence[UUID], idf: TermIdf, wanted: frozenset[str] = frozenset()
) -> tuple[TextClause, dict[str, Any]]:
    """The statement and its values, so that tests can EXPLAIN it."""
    values = {
        **plan.values,
        "ids": list(ids),
        "text_idf": SparseVector(dict(idf.of_texts), TERM_DIMENSIONS),
        "context_idf": SparseVector(dict(idf.of_contexts), TERM_DIMENSIONS),
    }
    chosen = {**ALWAYS, **{name: each for name, each in OPTIONAL.items() if name in wanted}}
    if SHORT_TEXTS in wanted:
        chosen["phrasing"] = f"CASE WHEN octet_length(m.content) <= {SHORT_BYTES} OR {HAS_QUESTION} THEN m.content END"
    of_generation = f" AND generation = {plan.generation}"
    shape = FEATURES.fill(
        columns=",\n       ".join(f"{each} AS {name}" for name, each in chosen.items()),
        scope=plan.scope.sql,
        rows=plan.conditions.sql,
        goal_scope=plan.goal_scope.sql,
        vectors=by_key("memory_vector", "m.id", key="memory_id", more=of_generation, most=3),
        goal_vector=by_key("goal_vector", "g.id", key="goal_id", more=of_generation),
    )
    return shape, values
