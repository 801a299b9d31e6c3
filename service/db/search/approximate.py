"""Which memories may answer a question in a scope too large to look at row by row?

Every arm opens its candidates by an index of its own. Vectors: all signs of the scope in a middling one, the HNSW graph
of the generation with over-fetch in a very large one, and where the caller's conditions leave too few of what that
gives, an exact scan of the scope after all, which sees rows without a vector too. Words and tags: SECURITY DEFINER
functions over GIN (A2), whose ids are joined back here under row-level security. Time: the rows on both sides of the
moment asked for. Names are found by equality, which row-level security leaves an index (named.py).

Conditions on tags, categories and metadata that leave few rows make a small scope of a large one (prefilter.py), and
nothing of this is run.

Words in more than 2 % of the texts score but open nothing, unless the question has none rarer (A11), and then together;
how common a word is stands in `term_stat`. An arm that the question does not ask for is not in the statement: planning
costs too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from pgvector import HalfVector, SparseVector
from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import DateTime, Text, TextClause, bindparam, text
from sqlalchemy.types import ARRAY

from service.db import direct
from service.db.conditions import typed
from service.db.engine import Session
from service.db.search import exact, prefilter, term_statistics
from service.db.search.exact import CLOSE, Ask, Candidates, Where, passing
from service.db.tables import TERM_DIMENSIONS
from service.db.vectors import Half
from service.domain.query import ScopeWay, VectorPath, VectorWay

OVERFETCH: Final = 2
"""The graph is asked for so many times an arm's size: of a million vectors twice gave the same ten nearest as four
times, in three quarters of the time (60 questions without a condition and 60 that half of the rows meet)."""

MAX_CANDIDATES: Final = 400
"""What the graph is asked for at most unless more hits are wanted; hnsw.ef_search on the role is as large."""

REACH: Final = 20_000
"""Rows that a function over words or tags looks at, at most: what bounds a question of frequent words only."""

SIGNS_DEEP: Final = 20_000
"""Nearest by signs that are held against the caller's conditions; `exact.CLOSE` of them are compared exactly."""

ENOUGH: Final[Mapping[VectorWay, int]] = {"signs": 1, "hnsw": 5}
"""That part of an arm has to be found: of fewer, the nearest ten may lie beyond where the search has ended."""

DEEP: Final = 5
"""Words and tags hand in so many times the arm's size before the caller's conditions are looked at."""

# ix_memory_vector_hnsw_<generation> serves the graph; `+ 0` keeps the exact scan off it and makes its sort real. The
# exact scan (prefilter.scanned) starts from memory, so that rows without a vector are there too, behind all others. It
# looks up vectors for those rows alone that the conditions let through (OFFSET 0): the planner takes these for hundreds
# of thousands, of which the graph would have found enough, and would read all vectors of the scope.
VECTORS = """
{tables}, fallback AS MATERIALIZED (
    SELECT met.id, v.distance
    FROM ({scanned} OFFSET 0) met LEFT JOIN LATERAL (
        SELECT (v.embedding <=> :question) + 0 AS distance FROM memory_vector v
        WHERE v.workspace_id = :workspace AND v.memory_id = met.id AND v.generation = {generation} AND v.kind = 'text'
        OFFSET 0
    ) v ON true
    ORDER BY v.distance, met.id LIMIT :arm
)
"""

TOO_FEW: Final = "(SELECT count(*) FROM approximate) < :enough"

GRAPH = """
    SELECT v.memory_id AS id, v.embedding::halfvec({dimension}) <=> CAST(:question AS halfvec({dimension})) AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE {vectors} AND v.generation = {generation} AND v.kind = 'text' AND {rows}{among}
    ORDER BY v.embedding::halfvec({dimension}) <=> CAST(:question AS halfvec({dimension})) LIMIT :wide
"""

APPROXIMATE: Final = "approximate AS MATERIALIZED ({})"

SIGNS = """
    SELECT v.memory_id AS id, (v.embedding <=> :question) + 0 AS distance FROM memory_vector v
    WHERE v.workspace_id = :workspace AND {these} AND v.memory_id = ANY ({passing}) ORDER BY distance, id LIMIT :{size}
"""

COUNTED = """
SELECT count(*) <= :most FROM (
    SELECT FROM memory_vector v WHERE {vectors} AND v.generation = {generation} AND v.kind = 'text' LIMIT :most + 1
) few
"""

VECTOR_ARMS = """
(SELECT '{way}' AS arm, id, distance AS place FROM approximate
    WHERE (SELECT count(*) FROM approximate) >= :enough ORDER BY distance + 0, id LIMIT :arm)
UNION ALL (SELECT 'fallback', id, distance FROM fallback ORDER BY distance, id)
"""

CONTEXT_ARM = """
UNION ALL (SELECT 'context_vector', id, distance FROM ({context}) contexts)
"""

# Without a vector the newest fill up: the scope's btree is in their order.
NEWEST_ARM = """
(SELECT 'newest' AS arm, m.id, CAST(0 AS float8) AS place FROM memory m WHERE {scope} AND {rows}
    ORDER BY m.created_at DESC, m.id LIMIT :wanted)
"""

WORD_ARMS = """
UNION ALL (SELECT 'text_lexical', m.id, l.place
    FROM lexical_ids(:of_user, :of_agent, :of_run, :of_channels, false, CAST(:open_own AS integer[]),
                     CAST(:beside_own AS integer[]), :asked_own, :reach, :deep, :few) WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id WHERE {scope} AND {rows} ORDER BY l.place LIMIT :arm)
UNION ALL (SELECT 'context_lexical', m.id, l.place
    FROM lexical_ids(:of_user, :of_agent, :of_run, :of_channels, true, CAST(:open_near AS integer[]),
                     CAST(:beside_near AS integer[]), :asked_near, :reach, :deep, :few) WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id WHERE {scope} AND {rows} ORDER BY l.place LIMIT :arm)
"""

TAG_ARM = """
UNION ALL (SELECT 'tag', m.id, l.place
    FROM tag_ids(:of_user, :of_agent, :of_run, :of_channels, CAST(:tags AS text[]), :reach, :deep)
        WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id WHERE {scope} AND {rows} ORDER BY l.place LIMIT :arm)
"""

# ix_memory_timestamp, read in both directions
TIME_ARM = """
UNION ALL (SELECT 'time', id, place FROM (
    (SELECT m.id, extract(epoch FROM m."timestamp" - CAST(:asked_at AS timestamptz)) AS place FROM memory m
        WHERE {scope} AND {rows} AND m."timestamp" >= CAST(:asked_at AS timestamptz) ORDER BY m."timestamp" LIMIT :arm)
    UNION ALL
    (SELECT m.id, extract(epoch FROM CAST(:asked_at AS timestamptz) - m."timestamp") FROM memory m
        WHERE {scope} AND {rows} AND m."timestamp" < CAST(:asked_at AS timestamptz)
        ORDER BY m."timestamp" DESC LIMIT :arm)
) beside ORDER BY place, id LIMIT :arm)
"""


async def has_at_most(session: Session, where: Where, most: int) -> bool:
    """Has the scope at most so many vectors? Reads the scope's btree alone: 0.1 ms per thousand."""
    shape = _counted(where.vectors.sql, where.generation)
    return bool((await direct.fetch(session, shape, {**where.vectors.values, "most": most}))[0][0])


async def find_way(session: Session, where: Where, signs_rows: int) -> VectorWay:
    """How the vectors of a large scope are searched: by their signs up to so many, by the graph beyond."""
    return "signs" if await has_at_most(session, where, signs_rows) else "hnsw"


async def by_way(
    session: Session, where: Where, ask: Ask, *, arm: int, wanted: int, way: ScopeWay | None
) -> Candidates | None:
    """As a scope is searched of which so much is known; None, when it turns out to be too large to be read."""
    if way == "signs" or way == "hnsw":
        return await candidates(session, where, ask, arm=arm, wanted=wanted, way=way)
    few = await prefilter.candidates(session, where, ask, arm=arm, wanted=wanted) if way == "rows" else None
    return few or await exact.candidates(session, where, ask, arm=arm, wanted=wanted)


async def candidates(
    session: Session, where: Where, ask: Ask, *, arm: int, wanted: int, way: VectorWay = "hnsw"
) -> Candidates:
    """At most `arm` ids of each arm; at least `wanted` different ones, or all there are. `path` is `way`, fallback
    where that gave too few, exact where the conditions leave few rows to begin with."""
    few = await prefilter.candidates(session, where, ask, arm=arm, wanted=wanted)
    if few is not None:
        return few
    stats = await term_statistics.read(session, where.scope.values["workspace"], ask.terms)
    shape, values = statement(where, ask, stats, arm=arm, wanted=wanted, way=way)
    arms: dict[str, list[UUID]] = {}
    path: VectorPath = "none" if ask.vector is None else "fallback"
    for row in await direct.fetch(session, shape, values):
        if row.arm == way:
            path = way
        arms.setdefault("text_vector" if row.arm in (way, "fallback") else row.arm, []).append(row.id)
    return Candidates(max(stats.texts, where.exact_rows + 1), stats.own, stats.near, arms, path)


def statement(
    where: Where, ask: Ask, stats: term_statistics.TermStats, *, arm: int, wanted: int, way: VectorWay = "hnsw"
) -> tuple[TextClause, dict[str, Any]]:
    """The statement and its values, so that tests can EXPLAIN it."""
    scope = where.scope.values
    texts = stats.texts or where.exact_rows
    values: dict[str, Any] = {**scope, **where.rows.values, "arm": arm, "wanted": wanted}
    if ask.vector is not None:
        wide = max(wanted, min(arm * OVERFETCH, MAX_CANDIDATES))
        values |= {**where.vectors.values, "question": HalfVector(ask.vector), "wide": wide}
        values |= prefilter.scanned(where, TOO_FEW).values
        values |= {"signs_deep": SIGNS_DEEP, "signs_close": max(CLOSE, wide), "enough": max(wanted, arm // ENOUGH[way])}
    if ask.terms or ask.tags:
        values |= {**prefilter.of_scope(where.scope), "deep": arm * DEEP, "reach": REACH}
    if ask.terms:
        values |= {
            "open_own": term_statistics.opening(stats.own, texts),
            "open_near": term_statistics.opening(stats.near, texts),
            "few": arm,
            "beside_own": term_statistics.beside(stats.own, texts),
            "beside_near": term_statistics.beside(stats.near, texts),
            "asked_own": _weights(stats.own, texts),
            "asked_near": _weights(stats.near, texts),
        }
    if ask.tags:
        values["tags"] = list(ask.tags)
    if ask.asked_at is not None:
        values["asked_at"] = ask.asked_at
    dimension = None if ask.vector is None else len(ask.vector)
    parts = (bool(ask.terms), bool(ask.tags), ask.asked_at is not None)
    scanned = prefilter.scanned(where, TOO_FEW).sql
    marks, sql = bool(where.filter_keys), (where.scope.sql, where.vectors.sql, where.rows.sql, scanned)
    shape = _shape(*sql, where.generation, dimension, parts, way, marks=marks)
    return shape, values


def _weights(counts: dict[int, float] | Any, texts: int) -> SparseVector:
    return SparseVector({term: term_statistics.idf(texts, found) for term, found in counts.items()}, TERM_DIMENSIONS)


@lru_cache(maxsize=256)
def _shape(
    scope: str,
    vectors: str,
    rows: str,
    scanned: str,
    generation: int,
    dimension: int | None,
    parts: tuple[bool, bool, bool],
    way: VectorWay,
    *,
    marks: bool,
) -> TextClause:
    words, tags, timed = parts
    named: dict[str, Any] = {
        "scope": scope,
        "vectors": vectors,
        "rows": rows,
        "scanned": scanned,
        "generation": int(generation),
        "dimension": int(dimension or 0),
        "way": way,
    }
    tables = []
    if dimension is None:
        shape = NEWEST_ARM
    elif way == "signs":
        tables = [APPROXIMATE.format(_by_signs(vectors, rows, generation, kind="text", size="wide"))]
        tables += [prefilter.known(TOO_FEW)] if marks else []
        named["context"] = _by_signs(vectors, rows, generation, kind="context", size="arm")
        shape = f"WITH {VECTORS} {VECTOR_ARMS} {CONTEXT_ARM}"
    else:
        tables = [prefilter.known()] if marks else []
        tables += [APPROXIMATE.format(GRAPH.format(**named, among=prefilter.AMONG if marks else ""))]
        shape = f"WITH {VECTORS} {VECTOR_ARMS}"
    named["tables"] = ", ".join(tables)
    shape += (WORD_ARMS if words else "") + (TAG_ARM if tags else "")
    shape += TIME_ARM if timed else ""
    filled = shape.format(**named)
    kinds: dict[str, Any] = {
        "question": Half(),
        "asked_own": SPARSEVEC(TERM_DIMENSIONS),
        "asked_near": SPARSEVEC(TERM_DIMENSIONS),
        "asked_at": DateTime(timezone=True),
        "of_user": Text(),
        "of_agent": Text(),
        "of_run": Text(),
        "of_channels": ARRAY(Text()),
    }
    bound = [bindparam(name, type_=kind) for name, kind in kinds.items() if f":{name}" in filled]
    return typed(text(filled)).bindparams(*bound)


def _by_signs(vectors: str, rows: str, generation: int, *, kind: str, size: str) -> str:
    these = f"v.generation = {int(generation)} AND v.kind = '{kind}'"
    near = passing(f"{vectors} AND {these}", rows, close="signs_close", deep="LIMIT :signs_deep")
    return SIGNS.format(these=these, passing=near, size=size)


@lru_cache(maxsize=64)
def _counted(vectors: str, generation: int) -> TextClause:
    return typed(text(COUNTED.format(vectors=vectors, generation=int(generation))))
