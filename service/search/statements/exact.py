"""Candidates from a small scope, where every row is read, or from a few rows looked up first (search_plan.py).

Terms are weighed by BM25 over the rows that the search may see; their document frequencies are counted in the same
statement, so they are right after every update and delete. Vectors are compared by their binary quantisation, and the
nearest by that exactly. Further arms: the time that the query asks for, tags, and the newest rows to fill up.

The scope is read once by its btree; everything else is a filter, because no GIN index is used under row-level security
(docs/decisions/003-definer-functions.md). features.py measures the candidates with the same weights.
tests/search/statements/golden/exact.sql has the whole statement with values.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import TextClause

from service.domain.bm25 import IDF_SQL
from service.memories.statements import near_memories
from service.postgres import direct, vectors
from service.postgres.engine import Session
from service.postgres.scopes import by_key
from service.postgres.template import Template
from service.search.statements.search_plan import Candidates, SearchPlan

MAX_COMPARED_TERMS: Final = 48
"""A query of more terms, a whole page, has them counted in the rows' lists of terms: 4,000 terms compared with each
row took 14 s in a scope of 20,000 rows."""

INDEXED_TERMS: Final = 120
"""With at most this many different terms of a text and its context, ix_memory_user_bm25 and _agent_bm25 cover all that
is read by default; longer ones would not fit into an index entry and are found by ix_memory_user_many_terms and the
like."""

# The rows of one branch of the scope, hidden ones as well. Only the columns in ix_memory_user_bm25 and its siblings are
# read, apart from conditions and tags.
BRANCH: Final = """
    SELECT m.id, {rows} AS is_visible, m.bm25, m.context_bm25, m.context_bm25 IS NULL AS without_context,
           m.bm25 <#> (SELECT vector FROM any_term) < 0 AS has_term,
           m.context_bm25 <#> (SELECT vector FROM any_term) < 0 AS context_has_term,
           m."timestamp", m.created_at, {tagged} AS tagged
    FROM memory m WHERE {branch}"""

# The scope is read once, into one row of lists (`scan`): a table of it would be written and read several times. Each
# arm has its ids and, in lists of the same order, what ranks them: text_ids with texts_bm25 and texts_without_context,
# context_ids with contexts_bm25, timed_ids with timestamps, tagged_ids with tagged_created. Rows that the conditions
# hide count as read, so that reading ends after :exact_rows. One sparse product tells whether a row has any term of the
# query; only such rows are compared with each term.
SCAN: Final = """
WITH any_term AS MATERIALIZED (
    SELECT sparse_vector(string_agg(sparse_entry(term, 1), ',' ORDER BY term)) AS vector
    FROM unnest(CAST(:terms AS integer[])) AS given (term)
), scan AS MATERIALIZED (
    SELECT count(*) AS rows_read,
           count(*) FILTER (WHERE is_visible) AS texts,
           bool_or(NOT without_context) AS has_contexts,
           array_agg(id) FILTER (WHERE is_visible IS NOT TRUE) AS hidden_ids,
           array_agg(id) FILTER (WHERE {keeps_ids} AND is_visible) AS ids,
           array_agg(id) FILTER (WHERE has_term AND is_visible) AS text_ids,
           array_agg(bm25) FILTER (WHERE has_term AND is_visible) AS texts_bm25,
           array_agg(without_context) FILTER (WHERE has_term AND is_visible) AS texts_without_context,
           array_agg(id) FILTER (WHERE context_has_term AND is_visible) AS context_ids,
           array_agg(context_bm25) FILTER (WHERE context_has_term AND is_visible) AS contexts_bm25,
           array_agg(id) FILTER (WHERE is_visible AND CAST(:asked_at AS timestamptz) IS NOT NULL) AS timed_ids,
           array_agg("timestamp") FILTER (WHERE is_visible AND CAST(:asked_at AS timestamptz) IS NOT NULL)
               AS timestamps,
           array_agg(id) FILTER (WHERE tagged AND is_visible) AS tagged_ids,
           array_agg(created_at) FILTER (WHERE tagged AND is_visible) AS tagged_created
    FROM (SELECT * FROM ({all_rows}) branches LIMIT :exact_rows + 1) scoped
), counted AS MATERIALIZED (
    SELECT rows_read, texts, has_contexts, rows_read <= :exact_rows AS is_small,
           {close_limit} AS close_limit
    FROM scan
)"""

# In how many texts and contexts each term occurs (a row without context is its own context), then the IDFs. A term's
# vector is not stored: a stored one is packed, and unpacked again for each row that it is compared with.
BM25: Final = """, term AS NOT MATERIALIZED (
    SELECT term, sparse_vector(sparse_entry(term, 1)) AS vector
    FROM unnest(CAST(:terms AS integer[])) AS given (term) OFFSET 0
), frequency AS MATERIALIZED (
    SELECT term.term, found.text_df, found.context_df FROM term CROSS JOIN LATERAL (
        SELECT (count(*) FILTER (WHERE is_text))::float8 AS text_df,
               (count(*) FILTER (WHERE is_context))::float8 AS context_df
        FROM (
            SELECT unnest(texts_bm25) AS bm25, true AS is_text, unnest(texts_without_context) AS is_context FROM scan
            UNION ALL
            SELECT unnest(contexts_bm25), false, true FROM scan
        ) weights WHERE weights.bm25 <#> term.vector < 0
    ) found
    WHERE (SELECT is_small FROM counted) AND cardinality(CAST(:terms AS integer[])) <= {max_compared_terms}
    UNION ALL
    SELECT term, (count(*) FILTER (WHERE is_text))::float8, (count(*) FILTER (WHERE is_context))::float8
    FROM (
        SELECT unnest(m.terms) AS term, true AS is_text, matching.without_context AS is_context
        FROM (SELECT unnest(text_ids) AS id, unnest(texts_without_context) AS without_context FROM scan) matching,
            LATERAL ({memory}) m
        UNION ALL
        SELECT unnest(m.context_terms), false, true FROM (SELECT unnest(context_ids) AS id FROM scan) matching,
            LATERAL ({memory}) m
    ) occurrences
    WHERE (SELECT is_small FROM counted) AND cardinality(CAST(:terms AS integer[])) > {max_compared_terms}
      AND term = ANY (CAST(:terms AS integer[]))
    GROUP BY term
), idf AS MATERIALIZED (
    SELECT sparse_vector(string_agg(sparse_entry(term, {text_idf}), ',' ORDER BY term) FILTER (WHERE text_df > 0))
               AS of_texts,
           sparse_vector(string_agg(sparse_entry(term, {context_idf}), ',' ORDER BY term) FILTER (WHERE context_df > 0))
               AS of_contexts
    FROM counted, frequency
)"""

# The nearest texts, or contexts, by binary distance, read from the scope's btree alone. As many extra rows are fetched
# as are hidden, so none is lost and no join with the scope is needed. NOT IN looks the hidden ids up in a hash table.
NEAREST: Final = """, {kind}_binary AS MATERIALIZED (
    SELECT v.memory_id AS id, {{binary_distance}} AS bits FROM {{vectors}}
      AND (SELECT is_small FROM counted) AND v.generation = {{generation}} AND v.kind = '{kind}'
    ORDER BY bits, v.memory_id LIMIT (SELECT close_limit + rows_read - texts FROM counted)
), {kind}_close AS (
    SELECT id FROM {kind}_binary WHERE id NOT IN (SELECT unnest(hidden_ids) FROM scan)
    ORDER BY bits, id LIMIT (SELECT close_limit FROM counted)
), {kind}_vector AS MATERIALIZED (
    SELECT v.memory_id AS id FROM memory_vector v
    WHERE v.workspace_id = :workspace AND v.memory_id = ANY (ARRAY(SELECT id FROM {kind}_close))
      AND v.generation = {{generation}} AND v.kind = '{kind}'
    ORDER BY {{exact_distance}}, v.memory_id LIMIT :arm_limit
)"""

# One row: numbers of rows read, of texts, of texts and contexts with each term; the ids of each arm, best first.
ONE_ROW: Final = """
SELECT rows_read, texts,
    ARRAY(SELECT term FROM frequency) AS terms,
    ARRAY(SELECT text_df FROM frequency) AS text_df,
    ARRAY(SELECT context_df FROM frequency) AS context_df,
    ARRAY(
        SELECT t.id FROM (SELECT unnest(text_ids) AS id, unnest(texts_bm25) AS bm25 FROM scan) t, idf
        WHERE (SELECT is_small FROM counted) ORDER BY t.bm25 <#> idf.of_texts, t.id LIMIT :arm_limit
    ) AS text_lexical,
    -- where no row has a context this would only repeat the arm of the texts
    ARRAY(
        SELECT c.id FROM (
            SELECT unnest(context_ids) AS id, unnest(contexts_bm25) AS bm25, true AS is_context FROM scan
            UNION ALL SELECT unnest(text_ids), unnest(texts_bm25), unnest(texts_without_context) FROM scan
        ) c, idf
        WHERE (SELECT is_small AND has_contexts FROM counted) AND c.is_context
        ORDER BY c.bm25 <#> idf.of_contexts, c.id LIMIT :arm_limit
    ) AS context_lexical,
    ARRAY(SELECT id FROM text_vector) AS text_vector,
    ARRAY(SELECT id FROM context_vector) AS context_vector,
    ARRAY(
        SELECT t.id FROM (SELECT unnest(timed_ids) AS id, unnest(timestamps) AS "timestamp" FROM scan) t
        WHERE (SELECT is_small FROM counted)
        ORDER BY abs(date_part('epoch', t."timestamp") - date_part('epoch', CAST(:asked_at AS timestamptz))), t.id
        LIMIT :arm_limit
    ) AS "time",
    ARRAY(
        SELECT t.id FROM (SELECT unnest(tagged_ids) AS id, unnest(tagged_created) AS created_at FROM scan) t
        WHERE (SELECT is_small FROM counted) ORDER BY t.created_at DESC, t.id LIMIT :arm_limit
    ) AS tag,
    -- the newest fill up what vectors cannot give: rows without one
    ARRAY(
        SELECT again.id FROM ({rows_again}) again
        WHERE again.is_visible AND (SELECT is_small FROM counted) AND (SELECT count(*) FROM text_vector) < :limit
        ORDER BY again.created_at DESC, again.id LIMIT :limit
    ) AS newest
FROM counted
"""

ARMS: Final = ("text_lexical", "context_lexical", "text_vector", "context_vector", "time", "tag", "newest")

EXACT: Final = Template(
    SCAN + BM25 + NEAREST.format(kind="text") + NEAREST.format(kind="context") + ONE_ROW,
    close_limit=near_memories.CLOSE_LIMIT.format(rows="rows_read"),
    max_compared_terms=MAX_COMPARED_TERMS,
    memory=by_key("memory", "matching.id"),
    text_idf=IDF_SQL.format(texts="texts", frequency="text_df"),
    context_idf=IDF_SQL.format(texts="texts", frequency="context_df"),
    binary_distance=vectors.BINARY_DISTANCE,
    exact_distance=vectors.exact_distance(),
)

KEPT_ROWS: Final = f"""SELECT true AS is_visible, m.* FROM unnest((SELECT ids FROM scan)) kept (id),
            LATERAL ({by_key("memory", "kept.id")}) m"""  # noqa: S608 - no user input


async def find(session: Session, plan: SearchPlan) -> Candidates | None:
    """The candidates; None for a scope of more than `exact_rows` rows."""
    [row] = await direct.fetch(session, statement(plan), values(plan))
    if row.rows_read > plan.exact_rows:
        return None
    text_df, context_df = (dict(zip(row.terms, of_term, strict=True)) for of_term in (row.text_df, row.context_df))
    arms = {name: ids for name in ARMS if (ids := getattr(row, name))}
    return Candidates(row.texts, text_df, context_df, arms, "exact" if plan.vector is not None else "none")


def statement(plan: SearchPlan) -> TextClause:
    """The whole statement; tests/search/statements/golden has it with the values filled in."""
    all_rows = "\n    UNION ALL ".join(_branch(plan, branch.sql) for branch in plan.scope.each)
    return EXACT.fill(
        all_rows=all_rows,
        rows_again=KEPT_ROWS if plan.prefiltered else all_rows,
        keeps_ids="true" if plan.prefiltered else "false",
        vectors=plan.vector_scope.source("memory_vector v"),
        generation=plan.generation,
    )


def _branch(plan: SearchPlan, branch: str) -> str:
    """SQL of every row of a branch of the scope, by the indexes with the weights of words: no others are in the order
    of ids."""
    tagged = "m.tag_prefixes && CAST(:tags AS text[])" if plan.tags else "false"
    rows = BRANCH.format(rows=plan.conditions.sql, tagged=tagged, branch=branch)
    if plan.prefiltered:
        return rows
    terms = "cardinality(m.terms) + cardinality(m.context_terms)"
    few = f"({rows} AND {terms} <= {INDEXED_TERMS} ORDER BY m.channel, m.id)"
    return f"{few}\n    UNION ALL ({rows} AND {terms} > {INDEXED_TERMS} ORDER BY m.id)"


def values(plan: SearchPlan) -> dict[str, Any]:
    return {**plan.values, **near_memories.close_limits(plan.arm_limit)}
