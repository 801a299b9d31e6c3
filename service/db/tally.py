"""In how many texts of a scope does each word of a question stand, and in how many contexts?

Counted in the statement that reads the scope, in one pass per sixteen words: a join of words and texts costs more
than twice the comparisons in it, a third of a search in a scope of 20,000 rows. Whether a text has a word is asked of
its sparse vector, four times as fast as `&&` of two arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from service.db.tables import TERM_DIMENSIONS

WIDEST: Final = 16
"""Words of one pass. As many columns as a question has words, up to so many: no column is empty for most questions."""

# `worded`: rows with a word in their text (`own`) or context (`near`); a row without context is its own (`alone`).
# Places of a sparse vector begin at 1 when written out, at 0 in the driver: hence `term + 1`.
SHAPE: Final = """
asked AS MATERIALIZED (
    SELECT no, {terms}, {words} FROM unnest({given}) WITH ORDINALITY AS given ({terms}, no)
), tallied AS (
    SELECT alone, no, {tallies} FROM worded CROSS JOIN asked GROUP BY alone, no
), found AS MATERIALIZED (
    SELECT term, sum(own)::float8 AS own, sum(CASE WHEN alone THEN own ELSE near END)::float8 AS near
    FROM tallied JOIN asked USING (no), unnest(ARRAY[{terms}], ARRAY[{owns}], ARRAY[{nears}]) AS word (term, own, near)
    GROUP BY term HAVING sum(own) > 0 OR sum(CASE WHEN alone THEN own ELSE near END) > 0
)"""


def width(words: int) -> int:
    """How many words are counted in one pass, 1..WIDEST, of a question of so many."""
    return max(1, min(words, WIDEST))


def shape(wide: int) -> str:
    """The tables `asked`, `tallied` and `found` (term, own, near), from a table `worded`."""

    def columns(each: str) -> str:
        return ", ".join(each.format(at=at) for at in range(wide))

    return SHAPE.format(
        terms=columns("t{at}"),
        words=columns(f"('{{{{' || t{{at}} + 1 || ':' || '1}}}}/{TERM_DIMENSIONS}')::sparsevec AS w{{at}}"),
        given=columns("CAST(:terms_{at} AS integer[])"),
        tallies=columns(
            "count(*) FILTER (WHERE own <#> w{at} < 0) AS own{at}, "
            "count(*) FILTER (WHERE near <#> w{at} < 0) AS near{at}"
        ),
        owns=columns("own{at}"),
        nears=columns("near{at}"),
    )


def values(terms: Sequence[int]) -> dict[str, list[int]]:
    """The parameters: every so many words begin a pass of their own."""
    wide = width(len(terms))
    return {f"terms_{at}": list(terms[at::wide]) for at in range(wide)}
