"""Candidates of a scope too large to read row by row.

Every arm opens its candidates by an index of its own. Vectors: the binary quantisation of all vectors of a medium
scope, the HNSW graph of the generation in a larger one; where the conditions leave too few of those rows, an exact scan
of the scope after all, which sees rows without a vector too. Terms and tags: SECURITY DEFINER functions over GIN
(docs/decisions/003-definer-functions.md), whose ids are joined back here under row-level security. Time: the rows on
both sides of the moment asked for. Entities are found by equality, which row-level security lets use an index
(candidates.py).

Common terms score but open no candidates (term_statistics.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from pgvector import SparseVector
from sqlalchemy import TextClause

from service.domain import bm25
from service.domain.query import ApproximatePath, VectorPath
from service.memories.statements.nearest import MAX_CLOSE, graph_limit, nearest_passing
from service.postgres import direct, vectors
from service.postgres.engine import Session
from service.postgres.tables import TERM_DIMENSIONS
from service.postgres.template import Template
from service.search.statements import search_plan, term_statistics
from service.search.statements.search_plan import Candidates, SearchPlan
from service.search.statements.term_statistics import TermStatistics

SCAN_LIMIT: Final = 20_000
"""Maximum number of rows that a function over terms or tags reads: the bound for queries of frequent terms only."""

MAX_CHECKED: Final = 20_000
"""Nearest by binary distance that are checked against the conditions; MAX_CLOSE of them are compared exactly."""

MIN_FOUND_SHARE: Final[dict[ApproximatePath, float]] = {"binary": 1.0, "hnsw": 0.4}
"""The fallback runs when fewer than this share of `arm_limit`, or than `limit`, are found: the nearest ten may then be
beyond the end of the search."""

ARM_OVERFETCH: Final = 10
"""The functions return this multiple of the arm's size, because the conditions hide some."""

# The nearest of a kind by binary distance that meet the conditions, compared exactly.
BINARY: Final = """
WITH approximate AS MATERIALIZED (
    SELECT v.memory_id AS id, {exact_distance} AS distance FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.generation = {generation} AND v.kind = 'text'
      AND v.memory_id = ANY ({text_ids})
    ORDER BY distance, id LIMIT :wide
), {known_ids}"""

BINARY_CONTEXTS: Final = """
UNION ALL (SELECT 'context_vector', v.memory_id, {exact_distance} AS distance FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.generation = {generation} AND v.kind = 'context'
      AND v.memory_id = ANY ({context_ids})
    ORDER BY distance, v.memory_id LIMIT :arm_limit)
"""

# ix_memory_vector_hnsw_<generation>. A hash table tells whether a row the graph reaches has the filter keys, at a tenth
# of what looking the row up costs: where the keys leave few per cent of the scope, nearly all rows would be looked up
# and refused.
HNSW: Final = """
WITH {known_ids}approximate AS MATERIALIZED (
    SELECT v.memory_id AS id, {graph_distance} AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE {vector_scope} AND v.generation = {generation} AND v.kind = 'text' AND {rows}{among_known}
    ORDER BY {graph_distance} LIMIT :wide
), """

KNOWN_IDS: Final = "known AS MATERIALIZED (SELECT {ids} AS ids), "
AMONG_KNOWN: Final = " AND ((SELECT ids IS NULL FROM known) OR v.memory_id IN (SELECT unnest(ids) FROM known))"

# The exact scan starts from memory, so that rows without a vector are included, after all others. It looks up vectors
# only for rows that the conditions let through (OFFSET 0): the planner expects hundreds of thousands of these, as if
# the graph could have found enough, and would read all vectors of the scope.
FALLBACK: Final = """fallback AS MATERIALIZED (
    SELECT matching.id, v.distance
    FROM ({matching} OFFSET 0) matching LEFT JOIN LATERAL (
        SELECT {exact_distance} AS distance FROM memory_vector v
        WHERE v.workspace_id = :workspace AND v.memory_id = matching.id AND v.generation = {generation}
          AND v.kind = 'text'
        OFFSET 0
    ) v ON true
    ORDER BY v.distance, matching.id LIMIT :arm_limit
)
(SELECT '{vector_path}' AS arm, id, distance AS place FROM approximate
    WHERE (SELECT count(*) FROM approximate) >= :enough ORDER BY distance + 0, id LIMIT :arm_limit)
UNION ALL (SELECT 'fallback', id, distance FROM fallback ORDER BY distance, id)
"""

TOO_FEW: Final = "(SELECT count(*) FROM approximate) < :enough"

# All rows that meet the conditions, or of those up to MAX_SCANNED with the filter keys. The btree of a column range
# serves where the planner takes it for narrow.
ALL_MATCHING: Final = "SELECT m.id FROM {all_of} AND {too_few}"
KNOWN_MATCHING: Final = """SELECT m.id FROM memory m
        WHERE {too_few} AND m.workspace_id = :workspace AND m.id = ANY (ARRAY(SELECT unnest(ids) FROM known))
          AND coalesce({scope} AND {rows}, false)
        UNION ALL
        SELECT m.id FROM {all_of} AND {too_few} AND (SELECT ids IS NULL FROM known)"""

# Without a vector the newest rows fill up the candidates: the scope's btree is in their order.
NEWEST: Final = """
(SELECT 'newest' AS arm, m.id, CAST(0 AS float8) AS place FROM {newest}
    {top})
"""

TOP: Final = "ORDER BY m.created_at DESC, m.id LIMIT :limit"

# The planner removes the parts that the query does not ask for: plans are made for the values. Time:
# ix_memory_timestamp, read in both directions.
OTHER_ARMS: Final = """
UNION ALL (SELECT 'text_lexical', m.id, l.place
    FROM lexical_ids(of_user => :of_user, of_agent => :of_agent, of_run => :of_run, of_channels => :of_channels,
                     in_context => false, any_of_terms => CAST(:text_terms AS integer[]),
                     and_terms => CAST(:and_text_terms AS integer[]), query_bm25 => :text_idf,
                     scan_limit => :scan_limit, candidate_limit => :candidate_limit,
                     min_candidates => CAST(:arm_limit AS integer), match_any => :match_any,
                     with_shared => :with_shared) WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:text_terms AS integer[])) > 0 AND {scope} AND {rows} ORDER BY l.place LIMIT :arm_limit)
UNION ALL (SELECT 'context_lexical', m.id, l.place
    FROM lexical_ids(of_user => :of_user, of_agent => :of_agent, of_run => :of_run, of_channels => :of_channels,
                     in_context => true, any_of_terms => CAST(:context_terms AS integer[]),
                     and_terms => CAST(:and_context_terms AS integer[]), query_bm25 => :context_idf,
                     scan_limit => :scan_limit, candidate_limit => :candidate_limit,
                     min_candidates => CAST(:arm_limit AS integer), match_any => :match_any,
                     with_shared => :with_shared) WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:context_terms AS integer[])) > 0 AND {scope} AND {rows} ORDER BY l.place LIMIT :arm_limit)
UNION ALL (SELECT 'tag', m.id, l.place
    FROM tag_ids(:of_user, :of_agent, :of_run, :of_channels, CAST(:tags AS text[]), :scan_limit, :candidate_limit,
                 :match_any, :with_shared)
        WITH ORDINALITY AS l (id, place)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = l.id
    WHERE cardinality(CAST(:tags AS text[])) > 0 AND {scope} AND {rows} ORDER BY l.place LIMIT :arm_limit)
UNION ALL (SELECT 'time', id, place FROM (
    (SELECT m.id, date_part('epoch', m."timestamp") - date_part('epoch', CAST(:asked_at AS timestamptz)) AS place
        FROM memory m
        WHERE {scope} AND {rows} AND m."timestamp" >= CAST(:asked_at AS timestamptz)
        ORDER BY m."timestamp" LIMIT :arm_limit)
    UNION ALL
    (SELECT m.id, date_part('epoch', CAST(:asked_at AS timestamptz)) - date_part('epoch', m."timestamp")
        FROM memory m
        WHERE {scope} AND {rows} AND m."timestamp" < CAST(:asked_at AS timestamptz)
        ORDER BY m."timestamp" DESC LIMIT :arm_limit)
) both_sides ORDER BY place, id LIMIT :arm_limit)
"""

TEMPLATES: Final[Mapping[ApproximatePath | None, Template]] = {
    None: Template(NEWEST + OTHER_ARMS, top=TOP),
    "binary": Template(BINARY + FALLBACK + BINARY_CONTEXTS + OTHER_ARMS, exact_distance=vectors.exact_distance()),
    "hnsw": Template(HNSW + FALLBACK + OTHER_ARMS, exact_distance=vectors.exact_distance()),
}
"""By vector_path; None: without a vector."""


async def find(session: Session, plan: SearchPlan, vector_path: ApproximatePath) -> Candidates:
    """The candidates. Their `path` is the vector_path, or `fallback` if that found too few."""
    statistics = await term_statistics.read(session, plan.terms)
    arms: dict[str, list[UUID]] = {}
    path: VectorPath = "none" if plan.vector is None else "fallback"
    for row in await direct.fetch(session, statement(plan, vector_path), values(plan, vector_path, statistics)):
        if row.arm == vector_path:
            path = vector_path
        arms.setdefault("text_vector" if row.arm in (vector_path, "fallback") else row.arm, []).append(row.id)
    texts = max(statistics.texts, plan.exact_rows + 1)
    return Candidates(texts, statistics.text_df, statistics.context_df, arms, path)


def values(plan: SearchPlan, vector_path: ApproximatePath, statistics: TermStatistics) -> dict[str, Any]:
    texts = statistics.texts or plan.exact_rows
    selective = term_statistics.selective_terms
    companions = term_statistics.companion_terms
    parameters: dict[str, Any] = {
        **search_plan.index_values(plan),
        **plan.values,
        "scan_limit": SCAN_LIMIT,
        "candidate_limit": plan.arm_limit * ARM_OVERFETCH,
        "text_terms": selective(statistics.text_df, texts),
        "and_text_terms": companions(statistics.text_df, texts),
        "text_idf": _idf(statistics.text_df, texts),
        "context_terms": selective(statistics.context_df, texts),
        "and_context_terms": companions(statistics.context_df, texts),
        "context_idf": _idf(statistics.context_df, texts),
    }
    if plan.vector is not None:
        wide = max(plan.limit, graph_limit(plan.arm_limit))
        parameters |= {"wide": wide, "max_checked": MAX_CHECKED, "max_close": max(MAX_CLOSE, wide)}
        parameters["enough"] = max(plan.limit, int(plan.arm_limit * MIN_FOUND_SHARE[vector_path]))
    return parameters


def _idf(frequency: Any, texts: float) -> SparseVector:
    return SparseVector({term: bm25.idf(texts, count) for term, count in frequency.items()}, TERM_DIMENSIONS)


def statement(plan: SearchPlan, vector_path: ApproximatePath) -> TextClause:
    """The whole statement; tests/search/statements/golden has it with the values filled in."""
    has_keys = bool(plan.filter_keys)
    scope, rows, generation = plan.scope.sql, plan.conditions.sql, plan.generation
    ranges = [search_plan.in_range("m", at, column_range) for at, column_range in enumerate(plan.column_ranges)]
    all_of = " AND ".join((plan.scope.source("memory m"), rows, *ranges))
    # in a medium scope the keys are only looked up for the fallback
    ids = (
        f"CASE WHEN {TOO_FEW} THEN {search_plan.SCANNED_IDS} END"
        if vector_path == "binary"
        else search_plan.SCANNED_IDS
    )
    vectors_of_scope = plan.vector_scope.source("memory_vector v")
    return TEMPLATES[None if plan.vector is None else vector_path].fill(
        scope=scope,
        newest=(plan.scope & plan.conditions).source("memory m", TOP),
        vector_scope=plan.vector_scope.sql,
        rows=rows,
        generation=generation,
        vector_path=vector_path,
        graph_distance=vectors.graph_distance(0 if plan.vector is None else len(plan.vector)),
        text_ids=_nearest(vectors_of_scope, generation, "text", rows),
        context_ids=_nearest(vectors_of_scope, generation, "context", rows),
        known_ids=KNOWN_IDS.format(ids=ids) if has_keys else "",
        among_known=AMONG_KNOWN if has_keys else "",
        matching=(KNOWN_MATCHING if has_keys else ALL_MATCHING).format(
            too_few=TOO_FEW, scope=scope, rows=rows, all_of=all_of
        ),
    )


def _nearest(vectors_of_scope: str, generation: int, kind: str, rows: str) -> str:
    of_kind = f"{vectors_of_scope} AND v.generation = {generation} AND v.kind = '{kind}'"
    return nearest_passing(of_kind, rows, most=":max_close", checked="LIMIT :max_checked")
