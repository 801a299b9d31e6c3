"""Candidates among the turns of a scope, with their features.

One statement reads the newest `exact_rows` turns of the scope, with exact BM25 and exact distances. A turn is often
found by the question before it, so its context scores combine its own with those of the turns just before it in the
conversation, by a window over rows that are scored anyway: no second vector is stored, and an erased turn leaves
nothing in its neighbours (docs/decisions/014-context-columns.md). Where memories are candidates as well, turns that
they quote for the most part are left out, and memories without a context take that of their turns. In a larger scope
the HNSW index of the generation adds older turns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import compress
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.conversations.statements.turns import TurnFilter
from service.domain import sizes
from service.domain.bm25 import IDF_SQL
from service.memories.statements.near_memories import graph_limit
from service.postgres import direct
from service.postgres.engine import Session, use_custom_plans, use_steady_plans
from service.postgres.scopes import Condition, by_key
from service.postgres.template import Template
from service.postgres.vectors import cosine, graph_distance
from service.search.statements import features
from service.search.statements.features import Features
from service.search.statements.search_plan import Candidates

HELD_SHARE = 0.8
"""A turn is no candidate when memories quote at least this share of its characters."""

TURNS = "turn t"
NEWEST = 'ORDER BY t."timestamp" DESC LIMIT :exact_rows'
NEWEST_NAMED = 'ORDER BY t."timestamp" DESC LIMIT 2000'

# ix_turn_user, _agent or _run restricts the scope and gives the order; vectors and sources are looked up by the ids,
# all at once, and joined by FULL JOIN, which alone is hashed where hash joins are switched off (Plans.steady). The
# weights are IDFs over the rows that were read (as in Lucene's BM25). A turn without a vector has no cosine, and is
# found by its words and those before it. A memory may come from the whole turn, and two of them from one sentence.
SCORED = Template(
    """
WITH any_term AS MATERIALIZED (
    SELECT sparse_vector(string_agg(sparse_entry(term, 1), ',' ORDER BY term)) AS vector
    FROM unnest(CAST(:terms AS integer[])) term
), latest AS MATERIALIZED (
    SELECT t.id, t.conversation_id, t.turn_index, t."timestamp", char_length(t.content) AS chars,
           t.terms, CASE WHEN t.bm25 <#> (SELECT vector FROM any_term) < 0 THEN t.bm25 END AS bm25
    FROM {turns} {newest}
), scoped AS MATERIALIZED (
    SELECT l.*, source.memory_ids, near.text_cosine, near.original_cosine,
           coalesce(spans @> int4range(0, chars) OR (
               SELECT sum(upper(span) - lower(span)) FROM unnest(spans * int4multirange(int4range(0, chars))) span
           ) >= {share} * chars, false) AS held
    FROM latest l FULL JOIN (
        SELECT o.turn_id, range_agg(int4range(coalesce(o.start, 0), greatest(o.start, coalesce(o."end", {endless}))))
                   AS spans,
               array_agg(o.memory_id) FILTER (WHERE o.memory_id IN (SELECT unnest(CAST(:among AS uuid[]))))
                   AS memory_ids
        FROM memory_source o
        WHERE o.workspace_id = :workspace AND CAST(:among AS uuid[]) IS NOT NULL
          AND o.turn_id = ANY (ARRAY(SELECT id FROM latest))
        GROUP BY o.turn_id
    ) source ON source.turn_id = l.id FULL JOIN (
        SELECT v.turn_id, {text_cosine} AS text_cosine, {original_cosine} AS original_cosine FROM turn_vector v
        WHERE v.workspace_id = :workspace AND v.turn_id = ANY (ARRAY(SELECT id FROM latest))
          AND v.generation = {generation} OFFSET 0
    ) near ON near.turn_id = l.id
), counted AS (
    SELECT count(*) FILTER (WHERE NOT held) + CAST(:memories AS float8) AS total, count(*) AS turns FROM scoped
), frequency AS (
    SELECT term, sum(texts)::float8 AS texts FROM (
        SELECT term, 1::float8 AS texts FROM scoped, unnest(terms) term
        WHERE bm25 IS NOT NULL AND NOT held AND term = ANY (CAST(:terms AS integer[]))
        UNION ALL SELECT * FROM unnest(CAST(:known AS integer[]), CAST(:known_in AS float8[]))
    ) counts GROUP BY term
), query AS MATERIALIZED (
    SELECT sparse_vector(string_agg(sparse_entry(term, {idf}), ',' ORDER BY term)) AS weights
    FROM frequency, counted
), scored AS MATERIALIZED (
    SELECT id, held, memory_ids, "timestamp", text_lexical,
           text_lexical + (lag(text_lexical, 2, 0) OVER turn + lag(text_lexical, 1, 0) OVER turn) AS context_lexical,
           text_cosine, (2 * text_cosine + coalesce(lag(text_cosine) OVER turn, text_cosine)) / 3 AS context_cosine,
           original_cosine
    FROM (
        SELECT *, greatest(-(bm25 <#> (SELECT weights FROM query)), 0) AS text_lexical FROM scoped OFFSET 0
    ) own
    WINDOW turn AS (PARTITION BY conversation_id ORDER BY turn_index)
), free AS (
    SELECT id, "timestamp", text_lexical, context_lexical, text_cosine, context_cosine, original_cosine
    FROM scored WHERE NOT held
), candidate AS (
    (SELECT * FROM free WHERE text_lexical > 0 ORDER BY text_lexical DESC, id LIMIT :candidate_limit)
    UNION (SELECT * FROM free WHERE context_lexical > 0 ORDER BY context_lexical DESC, id LIMIT :candidate_limit)
    UNION (SELECT * FROM free WHERE text_cosine IS NOT NULL ORDER BY text_cosine DESC, id LIMIT :candidate_limit)
    UNION (SELECT * FROM free WHERE context_cosine IS NOT NULL ORDER BY context_cosine DESC, id
           LIMIT :candidate_limit)
    UNION (SELECT * FROM free WHERE CAST(:asked_at AS timestamptz) IS NOT NULL
           ORDER BY abs(date_part('epoch', "timestamp") - date_part('epoch', CAST(:asked_at AS timestamptz))), id
           LIMIT :candidate_limit)
    UNION (SELECT * FROM free ORDER BY "timestamp" DESC, id LIMIT :newest)
)
SELECT c.id AS ids, c.text_lexical, c.context_lexical, c.text_cosine AS text_vector,
       c.context_cosine AS context_vector, c.original_cosine, c."timestamp",
       CASE WHEN octet_length(t.content) <= {short} THEN coalesce(t.shown, t.content) END AS phrasing, t.terms,
       t.speaker, t.role, (SELECT halfvec_send(v.embedding) FROM ({vector}) v) AS vectors, counted.total, counted.turns,
       CASE WHEN row_number() OVER () = 1 THEN (SELECT json_object_agg(term, texts)::text FROM frequency) END
           AS frequencies,
       CASE WHEN row_number() OVER () = 1 THEN (
           SELECT json_agg(json_build_array(memory_id, context_lexical, context_cosine))::text
           FROM scored, unnest(memory_ids) memory_id
       ) END AS contexts
FROM counted LEFT JOIN (candidate c CROSS JOIN LATERAL ({turn}) t) ON true
""",
    newest=NEWEST,
    share=HELD_SHARE,
    endless=2**31 - 1,
    turn=by_key("turn", "c.id"),
    idf=IDF_SQL.format(texts="total", frequency="texts"),
    text_cosine=cosine("v.embedding"),
    original_cosine=cosine("v.embedding", ":original_vector"),
    short=features.SHORT_BYTES,
)

# ix_turn_vector_hnsw_<generation>; rows are filtered after it, so more are read than wanted.
OLDER = Template("""
WITH nearest AS MATERIALIZED (
    SELECT v.turn_id, {graph_distance} AS distance
    FROM turn_vector v JOIN turn t ON t.workspace_id = v.workspace_id AND t.id = v.turn_id
    WHERE {vectors} AND v.generation = {generation} AND {scope} AND {rows}
    ORDER BY {graph_distance} LIMIT :scan_limit
)
SELECT turn_id FROM nearest ORDER BY distance + 0 LIMIT :candidate_limit
""")

SPEAKERS = Template("""
SELECT DISTINCT s.speaker FROM (
    SELECT t.speaker FROM {turns} {newest}
) s ORDER BY s.speaker LIMIT 200
""")


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """A query as the statements need it: term ids, the vector to search with (None: no embedder), the middle of the
    time asked for, and the unexpanded query's vector, if the query was expanded."""

    terms: Sequence[int]
    vector: NDArray[np.float32] | None
    time: datetime | None = None
    original: NDArray[np.float32] | None = None


ContextScores = tuple[UUID, float, float | None]
"""A memory, and the context scores of a turn that it came from: BM25 and cosine."""

NO_MEMORIES = Candidates(0, {}, {})


async def speakers(session: Session, wanted: TurnFilter) -> list[str]:
    """Returns the names, as clients gave them, of those who speak in the newest turns of the scope."""
    named = wanted.in_scope("t") & Condition("t.speaker IS NOT NULL")
    statement = SPEAKERS.fill(turns=named.source(TURNS, NEWEST_NAMED), newest=NEWEST_NAMED)
    return [row.speaker for row in await session.execute(statement, named.values)]


async def read(
    session: Session,
    wanted: TurnFilter,
    query: TurnQuery,
    *,
    generation: int,
    candidate_limit: int,
    newest: int,
    memories: Candidates = NO_MEMORIES,
) -> tuple[Candidates, Features, list[ContextScores]]:
    """Returns the best `candidate_limit` turns by each score and the `newest` ones, and the features of each. A turn's
    context scores include the turns just before it. `memories`: those that are also candidates; turns that they
    keep are left out, terms are counted in both, and the context scores of their turns are returned, too."""
    exact_rows = max(sizes.EXACT_ROWS, 1)
    values = {
        **wanted.in_scope("t").values,
        "terms": list(query.terms),
        "query_vector": query.vector,
        "original_vector": query.original,
        "asked_at": query.time,
        "candidate_limit": candidate_limit,
        "memories": float(memories.text_count),
        "known": list(memories.text_df),
        "known_in": [*map(float, memories.text_df.values())],
        "among": None if memories is NO_MEMORIES else list({each for arm in memories.arms.values() for each in arm}),
    }
    read_scored = partial(_score, session, wanted, generation=generation)
    columns = await read_scored(wanted.conditions("t"), values | {"exact_rows": exact_rows, "newest": newest})
    texts, turns, counted, contexts = (columns.pop(each)[0] for each in ("total", "turns", "frequencies", "contexts"))
    if query.original is None:
        columns.pop("original_cosine")
    if turns >= exact_rows and query.vector is not None:
        await use_custom_plans(session)
        older = await _older(session, wanted, query.vector, candidate_limit, generation)
        await use_steady_plans(session)
        if ids := list(set(older).difference(columns["ids"])):
            rows = wanted.conditions("t") & Condition("t.id = ANY (CAST(:ids AS uuid[]))", {"ids": ids})
            more = await read_scored(rows, values | {"exact_rows": len(ids), "newest": 0})
            columns = {name: (*column, *more[name]) for name, column in columns.items()}
    is_turn = [each is not None for each in columns["ids"]]  # the counts come with an empty row where no turn is found
    columns = {name: tuple(compress(column, is_turn)) for name, column in columns.items()}
    text_df = {**memories.text_df, **{int(term): float(each) for term, each in json.loads(counted or "{}").items()}}
    new = {term: each - memories.text_df.get(term, 0.0) for term, each in text_df.items()}
    context_df = {
        **memories.context_df,
        **{term: memories.context_df.get(term, 0.0) + each for term, each in new.items()},
    }
    both = replace(memories, text_count=texts, text_df=text_df, context_df=context_df)
    scores = [(UUID(memory), lexical, cosine) for memory, lexical, cosine in json.loads(contexts or "[]")]
    return both, features.of_columns(columns), scores


async def _score(
    session: Session, wanted: TurnFilter, rows: Condition, values: Mapping[str, object], *, generation: int
) -> dict[str, tuple[Any, ...]]:
    statement = SCORED.fill(
        turns=(wanted.in_scope("t") & rows).source(TURNS, NEWEST),
        vector=by_key("turn_vector", "c.id", key="turn_id", more=f" AND generation = {generation}"),
        generation=generation,
    )
    return await direct.columns(session, statement, {**values, **rows.values})


async def _older(
    session: Session, wanted: TurnFilter, vector: NDArray[np.float32], candidate_limit: int, generation: int
) -> Sequence[UUID]:
    scope, vectors, rows = wanted.in_scope("t"), wanted.in_scope("v"), wanted.conditions("t")
    values: dict[str, object] = {
        **scope.values,
        **vectors.values,
        **rows.values,
        "query_vector": vector,
        "scan_limit": graph_limit(candidate_limit),
        "candidate_limit": candidate_limit,
    }
    statement = OLDER.fill(
        scope=scope.sql,
        vectors=vectors.sql,
        rows=rows.sql,
        generation=generation,
        graph_distance=graph_distance(len(vector)),
    )
    return [row.turn_id for row in await direct.fetch(session, statement, values)]
