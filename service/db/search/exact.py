"""Which memories may answer a question?

`candidates`: in a scope of up to `exact_rows` rows every arm looks at all of them: own words and context words by
exact BM25, own vectors and context vectors by their signs and the nearest of those by exact distance, the time asked
for, tags, and the newest to fill up. The
scope is cut by its btree and read once; everything else is a filter, because under row-level security no GIN index is
used (A2). Document frequencies are counted in the same statement, so they are right after every update and delete. For
a larger scope see large.py, and measures.py for what is measured of each candidate, with the very same weights.
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
from pgvector import HalfVector
from sqlalchemy import DateTime, TextClause, bindparam, text

from service.db import direct
from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.search import bm25
from service.db.vectors import Half
from service.domain.column_ranges import ColumnRange
from service.domain.filter_keys import NO_FILTER_KEYS, FilterKeys
from service.domain.query import VectorPath

# The scope is read once, into one row of lists (`scan`): a table of it would be written and read several times. Rows
# that the caller's conditions hide count as read, so that the reading ends. For words see bm25.py; where no row has a
# context, its arm would only repeat that of the texts. Vectors: how many signs differ is read from the scope's btree
# alone (migration 0021), with as many to spare as rows are `hidden`, which makes joining the scope needless and loses
# none; the `close` ones are compared exactly. `wanted` of the newest fill up what the vectors cannot: rows without one.
CANDIDATES = """
WITH {asked}, scan AS MATERIALIZED (
    SELECT count(*) AS read, count(*) FILTER (WHERE seen) AS texts,
           array_agg(id) FILTER (WHERE seen IS NOT TRUE) AS hidden,
           {hits}{lists}
    FROM (SELECT * FROM ({every}) every LIMIT :exact_rows + 1) scoped
), counted AS MATERIALIZED (
    SELECT read, texts, read <= :exact_rows AS small, contexts,
           greatest(:least_close, least(:close, read / {close_share})) AS close
    FROM scan
), {weighed}, {text_near}, {context_near}, text_vector AS MATERIALIZED (
    SELECT v.memory_id AS id FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.memory_id = ANY (ARRAY(SELECT id FROM text_close))
      AND v.generation = {generation} AND v.kind = 'text'
    ORDER BY (v.embedding <=> :question) + 0, v.memory_id LIMIT :arm
)
SELECT 'read' AS arm, CAST(NULL AS uuid) AS id, CAST(NULL AS integer) AS term, read::float8 AS own, 0::float8 AS near
FROM counted
UNION ALL SELECT 'texts', NULL, NULL, texts, texts FROM counted
UNION ALL SELECT 'found', NULL, term, own, near FROM found
{lexical}
UNION ALL SELECT 'text_vector', id, NULL, 0, 0 FROM text_vector
UNION ALL (SELECT 'context_vector', v.memory_id, NULL, 0, 0 FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.memory_id = ANY (ARRAY(SELECT id FROM context_close))
      AND v.generation = {generation} AND v.kind = 'context'
    ORDER BY (v.embedding <=> :question) + 0, v.memory_id LIMIT :arm)
{more}
UNION ALL (SELECT 'newest', m.id, NULL, 0, 0 FROM memory m
    WHERE (SELECT small FROM counted) AND (SELECT count(*) FROM text_vector) < :wanted AND {newest}
    ORDER BY m.created_at DESC, m.id LIMIT :wanted)
"""

# Rows with up to SHORT words are read from an index that has all of them (migration 0023), as long as the caller's
# conditions ask for nothing else; the longer ones would not fit into it.
EVERY = """
    SELECT m.id, {rows} AS seen, {words}{columns}
    FROM memory m WHERE {scope}"""

WORDS, SHORT = "cardinality(m.terms) + cardinality(m.context_terms)", 120
"""Of a text and its context with at most so many words both have room in the scope's index, whatever its ids."""

KNOWN_LIST = ", array_agg(id) AS ids"
KNOWN = "m.workspace_id = :workspace AND m.id = ANY ((SELECT ids FROM scan)::uuid[])"
"""The rows that were found before (`whole` is false), by their ids."""

APART = "v.binary_embedding <~> (SELECT binary_quantize(CAST(:question AS halfvec)))"
"""How many signs of a vector differ from the question's."""

# Of one kind: the nearest by signs, without those that the caller's conditions hide (NOT IN is asked of a hash table,
# however many these are).
NEAR = """
{kind}_signs AS MATERIALIZED (
    SELECT v.memory_id AS id, {apart} AS apart FROM memory_vector v
    WHERE (SELECT small FROM counted) AND {vectors} AND v.generation = {generation} AND v.kind = '{kind}'
    ORDER BY apart, v.memory_id LIMIT (SELECT close + read - texts FROM counted)
), {kind}_close AS (
    SELECT id FROM {kind}_signs WHERE id NOT IN (SELECT unnest(hidden) FROM scan)
    ORDER BY apart, id LIMIT (SELECT close FROM counted)
)"""

OVERFETCH, CLOSE, CLOSE_SHARE = 4, 800, 40
"""By their signs so many times an arm's size are taken, in larger scopes a fortieth of the rows up to so many: of the
ten nearest in 3,000, 20,000 and 100,000 vectors all were among the first 200, 400 and 800 (200 questions, 384
components)."""

TIMED_LISTS = """,
           array_agg(id) FILTER (WHERE seen) AS timed_ids, array_agg(moment) FILTER (WHERE seen) AS moments"""
TIMED = """
UNION ALL (SELECT 'time', t.id, NULL, 0, 0
    FROM (SELECT unnest(timed_ids) AS id, unnest(moments) AS moment FROM scan) t WHERE (SELECT small FROM counted)
    ORDER BY abs(extract(epoch FROM t.moment - CAST(:asked_at AS timestamptz))), t.id LIMIT :arm)
"""

TAGGED_LISTS = """,
           array_agg(id) FILTER (WHERE tagged AND seen) AS tagged_ids,
           array_agg(created_at) FILTER (WHERE tagged AND seen) AS tagged_since"""
TAGGED = """
UNION ALL (SELECT 'tag', t.id, NULL, 0, 0
    FROM (SELECT unnest(tagged_ids) AS id, unnest(tagged_since) AS since FROM scan) t WHERE (SELECT small FROM counted)
    ORDER BY t.since DESC, t.id LIMIT :arm)
"""

# ix_memory_user_speaker and its likes, one step per name
SPEAKERS = """
WITH RECURSIVE named AS (
    (SELECT m.speaker FROM memory m WHERE {scope} AND m.speaker IS NOT NULL ORDER BY m.speaker LIMIT 1)
    UNION ALL
    SELECT next.speaker FROM named CROSS JOIN LATERAL (
        SELECT m.speaker FROM memory m WHERE {scope} AND m.speaker > named.speaker ORDER BY m.speaker LIMIT 1
    ) next
) SELECT speaker FROM named LIMIT 200
"""


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look: the scope on `memory m` and on `memory_vector v`, what else a row must be, which vectors count.
    `filter_keys`: the keys a row must carry to be what `rows` asks for, `column_ranges`: bounds of
    columns with a btree. `whole`: every row of the scope counts, not a few of them that were found before."""

    scope: Condition
    vectors: Condition
    rows: Condition
    generation: int
    exact_rows: int
    filter_keys: FilterKeys = NO_FILTER_KEYS
    column_ranges: tuple[ColumnRange, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as the arms need it. `vector` None: no embedder. `asked_at`: middle of the time asked for.
    `plain`: the question's own vector, where another one is searched with."""

    terms: Sequence[int]
    vector: NDArray[np.float32] | None
    asked_at: datetime | None = None
    tags: Sequence[str] = ()
    plain: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """`arms`: ids by arm, best first. `texts`: how many rows may be seen; in a large scope about how many texts the
    workspace has. `own`, `near`: in how many texts, and in how many contexts, a term stands. `path`: how vectors were
    searched. `read`: how many rows were read one by one, seen or not."""

    texts: int
    own: Mapping[int, float]
    near: Mapping[int, float]
    arms: Mapping[str, Sequence[UUID]] = field(default_factory=dict)
    path: VectorPath = "none"
    read: int = 0


async def speakers(session: Session, where: Where) -> list[str]:
    """Who speaks in the scope, by the names that clients gave: the first 200 by the alphabet."""
    found = await direct.fetch(session, speakers_statement(where), where.scope.values)
    return [row.speaker for row in found]


def passing(read: str, rows: str, *, close: str, deep: str = "") -> str:
    """SQL of the ids of the nearest by signs that conditions let through. What is `read` comes from the scope's btree
    alone, the nearest (a LIMIT `deep` of them, if given) held against `rows` one by one in their order (OFFSET 0 keeps
    the planner from reading the scope instead) until as many as the parameter `close` says have passed."""
    return f"""ARRAY(SELECT seen.id FROM (
        SELECT v.memory_id, {APART} AS apart FROM memory_vector v WHERE {read} ORDER BY apart, v.memory_id {deep}
    ) by_signs CROSS JOIN LATERAL (
        SELECT m.id FROM memory m WHERE m.workspace_id = :workspace AND m.id = by_signs.memory_id AND {rows} OFFSET 0
    ) seen LIMIT :{close})"""  # noqa: S608 - pieces of our own


def speakers_statement(where: Where) -> TextClause:
    """The statement, so that tests can EXPLAIN it; its values are those of the scope."""
    return _speakers(where.scope.sql)


async def candidates(session: Session, where: Where, ask: Ask, *, arm: int, wanted: int) -> Candidates | None:
    """At most `arm` ids of each arm; at least `wanted` different ones, or all there are. None for a scope of more than
    `exact_rows` rows."""
    shape, values = statement(where, ask, arm=arm, wanted=wanted)
    own: dict[int, float] = {}
    near: dict[int, float] = {}
    arms: dict[str, list[UUID]] = {}
    texts = read = 0
    for row in await direct.fetch(session, shape, values):
        if row.arm == "read":
            read = int(row.own)
            if read > where.exact_rows:
                return None
        elif row.arm == "texts":
            texts = int(row.own)
        elif row.arm == "found":
            own[row.term], near[row.term] = row.own, row.near
        else:
            arms.setdefault(row.arm, []).append(row.id)
    return Candidates(texts, own, near, arms, "exact" if ask.vector is not None else "none", read)


def statement(where: Where, ask: Ask, *, arm: int, wanted: int) -> tuple[TextClause, dict[str, Any]]:
    """The statement and its values, so that tests can EXPLAIN it."""
    shape = _candidates(
        where.scope.sql,
        where.vectors.sql,
        where.rows.sql,
        where.generation,
        timed=ask.asked_at is not None,
        tagged=bool(ask.tags),
        wide=bm25.width(len(ask.terms)),
        whole=where.whole,
    )
    values = {
        **where.scope.values,
        **where.vectors.values,
        **where.rows.values,
        "exact_rows": where.exact_rows,
        **bm25.values(ask.terms),
        "question": HalfVector(ask.vector) if ask.vector is not None else None,
        "arm": arm,
        "least_close": arm * OVERFETCH,
        "close": CLOSE,
        "wanted": wanted,
        **({"asked_at": ask.asked_at} if ask.asked_at is not None else {}),
        **({"tags": list(ask.tags)} if ask.tags else {}),
    }
    return shape, values


@lru_cache(maxsize=256)
def _candidates(
    scope: str, vectors: str, rows: str, generation: int, *, timed: bool, tagged: bool, wide: int, whole: bool
) -> TextClause:
    columns = ', m."timestamp" AS moment' if timed else ""
    columns += ", m.created_at, m.tag_prefixes && CAST(:tags AS text[]) AS tagged" if tagged else ""
    every = EVERY.format(scope=scope, rows=rows, words=bm25.ROW, columns=columns)
    short, long = f"{WORDS} <= {SHORT}", f"{WORDS} > {SHORT}"
    shape = CANDIDATES.format(
        asked=bm25.asked(wide, f"{scope} AND {short}" if whole else None),
        hits=bm25.HITS,
        lists=(TIMED_LISTS if timed else "") + (TAGGED_LISTS if tagged else "") + ("" if whole else KNOWN_LIST),
        every=f"{every} AND {short} UNION ALL {every} AND {long}" if whole else every,
        close_share=CLOSE_SHARE,
        weighed=bm25.weighed(wide),
        text_near=NEAR.format(kind="text", apart=APART, vectors=vectors, generation=int(generation)),
        context_near=NEAR.format(kind="context", apart=APART, vectors=vectors, generation=int(generation)),
        generation=int(generation),
        lexical=bm25.ARMS,
        more=(TIMED if timed else "") + (TAGGED if tagged else ""),
        newest=f"{scope} AND {rows}" if whole else KNOWN,
    )
    times = [bindparam("asked_at", type_=DateTime(timezone=True))] if timed else []
    return typed(text(shape)).bindparams(bindparam("question", type_=Half()), *times)


@lru_cache(maxsize=64)
def _speakers(scope: str) -> TextClause:
    return typed(text(SPEAKERS.format(scope=scope)))
