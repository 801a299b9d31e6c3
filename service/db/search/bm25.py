"""Which texts of a scope have words of the question, and how much do these weigh there?

Parts of the statement that reads a scope row by row (hybrid.py): exact BM25 by sparse vectors, the document frequencies
counted in this very snapshot, so that they are right after every update and delete. Not reading the rows costs most but
comparing them: with eleven words 15 ms in a scope of 20,000. So one product tells whether a row has any of them; only
such rows are compared with each word (as columns of one pass: a join of words and texts costs more than twice the
comparisons); and of rows that have but the commonest word, often most of a scope, the product alone is kept.

A row without context is its own context (`alone`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from service.db.tables import TERM_DIMENSIONS

WIDTHS: Final = (4, 8, 12, 16)
"""Words of one pass, the least that has room for all; a question with more takes several passes. Each width is a
statement of its own, which every connection has to prepare: hence not one for each number of words."""

MOST_IN_PASSES: Final = 48
"""Words of a question that are counted in passes. Those of a whole page are counted in the rows that have any of them,
read from the table: passes of 4,000 words took 14 s in a scope of 20,000 rows."""

# In the product that is asked of each row the commonest word counts FAINT, any other 1. What one of these brings, at
# least 0.01 in the longest text there can be, and the faintest part, at most 2.5 FAINT, lie on either side of CLEAR.
FAINT: Final = 2.0**-20
CLEAR: Final = 2.0**-10

SAMPLE, SAMPLED_WORDS = 64, 32
"""Rows in which the commonest of the first so many words is looked for; half of them have to have it."""

# Places of a sparse vector begin at 1 when written out, at 0 in the driver: hence `term + 1`. A colon before a word
# would be a parameter: hence `':' || '1`.
PASSES: Final = """
asked AS MATERIALIZED (
    SELECT no, {terms}, {vectors} FROM unnest({given}) WITH ORDINALITY AS given ({terms}, no)
), """
SOUGHT: Final = """
each AS MATERIALIZED (
    SELECT no, term, ('{{' || term + 1 || ':' || '1}}/{dimensions}')::sparsevec AS words
    FROM unnest(CAST(:terms AS integer[])) WITH ORDINALITY AS given (term, no)
), commonest AS MATERIALIZED (
    {commonest}
), sought AS MATERIALIZED (
    SELECT ('{{' || coalesce(string_agg(each.term + 1 || ':' || CASE WHEN c.term IS NULL THEN 1 ELSE {faint} END, ','
                ORDER BY each.term), '') || '}}/{dimensions}')::sparsevec AS words
    FROM each LEFT JOIN commonest c ON c.term = each.term
)"""

COMMONEST: Final = """SELECT term FROM (SELECT m.bm25 FROM memory m WHERE {scope} LIMIT {sample}) sample
    JOIN each ON each.no <= {sampled_words} AND sample.bm25 <#> each.words < 0
    GROUP BY term HAVING count(*) >= {sample} / 2 ORDER BY count(*) DESC, term LIMIT 1"""

ROW: Final = """m.context_bm25 IS NULL AS alone, m.bm25, m.context_bm25,
           m.bm25 <#> (SELECT words FROM sought) AS own, m.context_bm25 <#> (SELECT words FROM sought) AS near"""
"""What is read of each row of `memory m`; `seen` is another column of it."""

HITS: Final = f"""bool_or(NOT alone) AS contexts,
           array_agg(id) FILTER (WHERE own < 0 AND seen) AS own_ids,
           array_agg(own) FILTER (WHERE own < 0 AND seen) AS own_sums,
           array_agg(CASE WHEN own < -{CLEAR} THEN bm25 END) FILTER (WHERE own < 0 AND seen) AS owns,
           array_agg(alone) FILTER (WHERE own < 0 AND seen) AS alones,
           array_agg(id) FILTER (WHERE near < 0 AND seen) AS near_ids,
           array_agg(near) FILTER (WHERE near < 0 AND seen) AS near_sums,
           array_agg(CASE WHEN near < -{CLEAR} THEN context_bm25 END) FILTER (WHERE near < 0 AND seen) AS nears"""
"""What the table `scan` keeps of them: the words of a row, or none (NULL) where it has but the commonest."""

# `found`: in how many texts, and in how many contexts, a word stands.
FOUND_IN_PASSES: Final = """
tallied AS (
    SELECT no, true AS own, alone, count(*) FILTER (WHERE words IS NULL) AS only_commonest, {tallies}
    FROM (SELECT unnest(owns) AS words, unnest(alones) AS alone FROM scan) texts CROSS JOIN asked
    WHERE (SELECT small FROM counted) GROUP BY no, alone
    UNION ALL
    SELECT no, false, true, count(*) FILTER (WHERE words IS NULL), {tallies}
    FROM (SELECT unnest(nears) AS words FROM scan) contexts CROSS JOIN asked
    WHERE (SELECT small FROM counted) GROUP BY no
), found AS MATERIALIZED (
    SELECT term, coalesce(sum(hits) FILTER (WHERE own), 0)::float8 AS own,
           coalesce(sum(hits) FILTER (WHERE alone), 0)::float8 AS near
    FROM tallied JOIN asked USING (no), unnest(
        ARRAY[{terms}, (SELECT term FROM commonest)], ARRAY[{hits}, CASE WHEN no = 1 THEN only_commonest END]
    ) AS word (term, hits)
    WHERE hits > 0 AND term IS NOT NULL GROUP BY term
)"""
FOUND_IN_ROWS: Final = """
found AS MATERIALIZED (
    SELECT term, (count(*) FILTER (WHERE own))::float8 AS own, (count(*) FILTER (WHERE alone))::float8 AS near
    FROM (
        SELECT unnest(m.terms) AS term, true AS own, m.context_bm25 IS NULL AS alone FROM memory m
        WHERE m.workspace_id = :workspace AND m.id = ANY ((SELECT own_ids FROM scan)::uuid[])
        UNION ALL
        SELECT unnest(m.context_terms), false, true FROM memory m
        WHERE m.workspace_id = :workspace AND m.id = ANY ((SELECT near_ids FROM scan)::uuid[])
    ) held
    WHERE (SELECT small FROM counted) AND term = ANY (CAST(:terms AS integer[])) GROUP BY term
)"""

# Their IDFs (Lucene's BM25) as sparse vectors, and what a sum of the commonest word alone is to be multiplied with.
WEIGHED: Final = """
{found}, idf AS (
    SELECT found.term, own, near, ln(1 + (texts - own + 0.5) / (own + 0.5)) AS own_idf,
           ln(1 + (texts - near + 0.5) / (near + 0.5)) AS near_idf, c.term IS NOT NULL AS is_commonest
    FROM counted, found LEFT JOIN commonest c ON c.term = found.term
), weighed AS MATERIALIZED (
    SELECT ('{{' || string_agg(term + 1 || ':' || own_idf, ',' ORDER BY term) FILTER (WHERE own > 0)
               || '}}/{dimensions}')::sparsevec AS own,
           ('{{' || string_agg(term + 1 || ':' || near_idf, ',' ORDER BY term) FILTER (WHERE near > 0)
               || '}}/{dimensions}')::sparsevec AS near,
           sum(own_idf) FILTER (WHERE is_commonest) / {faint} AS own_commonest,
           sum(near_idf) FILTER (WHERE is_commonest) / {faint} AS near_commonest
    FROM idf
)"""

ARMS: Final = """
UNION ALL (SELECT 'text_lexical', t.id, NULL, 0, 0
    FROM (SELECT unnest(own_ids) AS id, unnest(owns) AS words, unnest(own_sums) AS sum FROM scan) t, weighed w
    WHERE (SELECT small FROM counted)
    ORDER BY CASE WHEN words IS NULL THEN sum * w.own_commonest ELSE words <#> w.own END, t.id LIMIT :arm)
UNION ALL (SELECT 'context_lexical', c.id, NULL, 0, 0
    FROM (
        SELECT unnest(near_ids) AS id, unnest(nears) AS words, unnest(near_sums) AS sum, true AS alone FROM scan
        UNION ALL SELECT unnest(own_ids), unnest(owns), unnest(own_sums), unnest(alones) FROM scan
    ) c, weighed w
    WHERE (SELECT small AND contexts FROM counted) AND alone
    ORDER BY CASE WHEN words IS NULL THEN sum * w.near_commonest ELSE words <#> w.near END, c.id LIMIT :arm)"""


def width(words: int) -> int:
    """How many words are counted in one pass, of a question of so many: one of WIDTHS, 0 without passes."""
    if words > MOST_IN_PASSES:
        return 0
    return next((wide for wide in WIDTHS if words <= wide), WIDTHS[-1])


def asked(wide: int, scope: str | None) -> str:
    """The table `sought` and what it takes; `scope`: where to look for the commonest word, None to do without."""
    passes = PASSES.format(
        terms=_columns(wide, "t{at}"),
        vectors=_columns(wide, f"('{{{{' || t{{at}} + 1 || ':' || '1}}}}/{TERM_DIMENSIONS}')::sparsevec AS w{{at}}"),
        given=_columns(wide, "CAST(:terms_{at} AS integer[])"),
    )
    sought = SOUGHT.format(commonest=_commonest(scope), faint=FAINT, dimensions=TERM_DIMENSIONS)
    return f"{passes if wide else ''}{sought}"


def weighed(wide: int) -> str:
    """The tables `found` (term, own, near) and `weighed`, from `scan` and `counted`."""
    passes = FOUND_IN_PASSES.format(
        terms=_columns(wide, "t{at}"),
        tallies=_columns(wide, "count(*) FILTER (WHERE words <#> w{at} < 0) AS hits{at}"),
        hits=_columns(wide, "hits{at}"),
    )
    return WEIGHED.format(found=passes if wide else FOUND_IN_ROWS, faint=FAINT, dimensions=TERM_DIMENSIONS)


def values(terms: Sequence[int]) -> dict[str, list[int]]:
    """The parameters: every so many words begin a pass of their own."""
    wide = width(len(terms))
    return {"terms": list(terms), **{f"terms_{at}": list(terms[at::wide]) for at in range(wide)}}


def _commonest(scope: str | None) -> str:
    if scope is None:
        return "SELECT CAST(NULL AS integer) AS term WHERE false"
    return COMMONEST.format(scope=scope, sample=SAMPLE, sampled_words=SAMPLED_WORDS)


def _columns(wide: int, each: str) -> str:
    return ", ".join(each.format(at=at) for at in range(wide))
