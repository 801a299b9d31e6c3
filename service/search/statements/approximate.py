"""Candidates of a scope too large to read row by row.

Every arm opens its candidates by an index of its own. Vectors: the binary quantisation of all vectors of a medium
scope, the HNSW graph of the generation in a larger one; where the conditions leave too few of those rows, an exact scan
of the scope after all, which sees rows without a vector too. Terms and tags: SECURITY DEFINER functions over GIN
(docs/decisions/003-definer-functions.md), whose ids are joined back here under row-level security. Time: the rows on
both sides of the moment asked for. Entities are found by equality, which row-level security lets use an index
(candidates.py).

Common terms score but open no candidates. Frequencies are those that a job counted (term_statistics.py), smoothed with
those of all workspaces, so that a term that a young workspace has hardly used is not taken for rare when everybody uses
it (docs/decisions/013-bm25.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from pgvector import SparseVector
from sqlalchemy import TextClause

from service.domain import bm25
from service.domain.query import ApproximatePath, VectorPath
from service.memories.statements.near_memories import MAX_CLOSE, graph_limit, nearest_passing
from service.postgres import direct, vectors
from service.postgres.engine import Session
from service.postgres.template import Template, typed_text
from service.postgres.vectors import TERM_DIMENSIONS
from service.search.statements import search_plan
from service.search.statements.search_plan import Candidates, SearchPlan
from service.search.statements.term_statistics import ALL_TEXTS

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
"""By the way in which vectors are searched; None: without a vector."""


async def find(session: Session, plan: SearchPlan, vector_path: ApproximatePath) -> Candidates:
    """The candidates. Their `path` is `vector_path`, or `fallback` if that found too few."""
    statistics = await read_frequencies(session, plan.terms)
    arms: dict[str, list[UUID]] = {}
    path: VectorPath = "none" if plan.vector is None else "fallback"
    for row in await direct.fetch(session, statement(plan, vector_path), values(plan, vector_path, statistics)):
        if row.arm == vector_path:
            path = vector_path
        arms.setdefault("text_vector" if row.arm in (vector_path, "fallback") else row.arm, []).append(row.id)
    return replace(statistics, text_count=max(statistics.text_count, plan.exact_rows + 1), arms=arms, path=path)


def values(plan: SearchPlan, vector_path: ApproximatePath, statistics: Candidates) -> dict[str, Any]:
    texts = statistics.text_count or plan.exact_rows
    parameters: dict[str, Any] = {
        **search_plan.index_values(plan),
        **plan.values,
        "scan_limit": SCAN_LIMIT,
        "candidate_limit": plan.arm_limit * ARM_OVERFETCH,
        "text_terms": selective_terms(statistics.text_df, texts),
        "and_text_terms": companion_terms(statistics.text_df, texts),
        "text_idf": _idf(statistics.text_df, texts),
        "context_terms": selective_terms(statistics.context_df, texts),
        "and_context_terms": companion_terms(statistics.context_df, texts),
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


# -- frequencies of terms ---------------------------------------------------------------------------------------------

PRIOR_TEXTS: Final = 1_000
"""Weight of the share among all workspaces, as a number of pseudo-texts."""

COMMON_SHARE: Final = 0.02
"""Terms in more than this share of the texts are common: they score, but open no candidates."""

MAX_OPENED_ROWS: Final = 10_000
"""The more frequent of the other terms open none either, once the rarer ones open this many rows in total: some 20 ms
of work."""

MAX_COMPANION_TERMS: Final = 2
"""If only a common term is left, a row must also contain one of this many next rarest terms. With five, half as many
rows were read as without."""

# pk_term_stat; the policy `common` shows the rows of the nil workspace along with one's own.
FREQUENCIES = typed_text("""
    SELECT workspace_id = :workspace AS is_own, term, texts, contexts FROM term_stat
    WHERE workspace_id = ANY (ARRAY[:workspace, CAST('00000000-0000-0000-0000-000000000000' AS uuid)])
      AND term = ANY (CAST(:terms AS integer[]))
""")


async def read_frequencies(session: Session, terms: Sequence[int]) -> Candidates:
    """The smoothed frequencies of these terms, and the number of texts; 0: nothing was counted yet."""
    rows = await direct.fetch(session, FREQUENCIES, {"terms": [ALL_TEXTS, *terms]})
    own = {row.term: (row.texts, row.contexts) for row in rows if row.is_own}
    everywhere = {row.term: (row.texts, row.contexts) for row in rows if not row.is_own}
    none = (0, 0)
    texts, all_texts = own.get(ALL_TEXTS, none)[0], everywhere.get(ALL_TEXTS, none)[0]

    def smoothed(place: int) -> dict[int, float]:
        counts = ((term, own.get(term, none)[place], everywhere.get(term, none)[place]) for term in terms)
        return {term: smooth(count, texts, count_everywhere, all_texts) for term, count, count_everywhere in counts}

    return Candidates(texts, smoothed(0), smoothed(1))


def smooth(count: int, texts: int, count_everywhere: int, texts_everywhere: int) -> float:
    """Returns the number of the workspace's texts with a term, 0..texts, smoothed towards its share among all texts."""
    if texts_everywhere == 0 or texts == 0:
        return float(min(count, texts))
    weight = PRIOR_TEXTS / (texts + PRIOR_TEXTS)
    return min(float(texts), count * (1 - weight) + weight * texts * count_everywhere / texts_everywhere)


def selective_terms(frequency: Mapping[int, float], texts: float) -> list[int]:
    """Returns the terms that open candidates, rarest first: those in at most 2 % of the texts, as long as they occur in
    some thousand texts together; only the rarest if all are more frequent."""
    found: list[int] = []
    opened = 0.0
    for term in _rarest_first(frequency):
        opened += frequency[term]
        if found and (opened > MAX_OPENED_ROWS or frequency[term] > COMMON_SHARE * texts):
            break
        found.append(term)
    return found


def companion_terms(frequency: Mapping[int, float], texts: float) -> list[int]:
    """Returns the next two terms after the rarest: if even the rarest is too frequent, a row must also have one of
    them. Terms of equal frequency mostly occur in the same texts (a word and its parts) and narrow nothing."""
    selective = selective_terms(frequency, texts)
    if len(selective) != 1 or frequency[selective[0]] <= MAX_OPENED_ROWS:
        return []
    rarest = frequency[selective[0]]
    return [term for term in _rarest_first(frequency) if frequency[term] > rarest][:MAX_COMPANION_TERMS]


def _rarest_first(frequency: Mapping[int, float]) -> list[int]:
    return sorted(frequency, key=lambda term: (frequency[term], term))
