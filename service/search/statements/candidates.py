"""Chooses the vector path of a search by the size of its scope, and returns the candidates that it finds.

| rows of the scope | vector path | file |
|---|---|---|
| up to EXACT_ROWS | every row is read | exact.py |
| more, but few meet the conditions | these few are looked up, then read | search_plan.py, exact.py |
| up to BINARY_ROWS | the binary quantisation of every vector is read | approximate.py |
| more | the HNSW graph is walked | approximate.py |
"""

from __future__ import annotations

from typing import Final

from service.domain.scope import ScopeSummary
from service.postgres import direct
from service.postgres.engine import Session, use_custom_plans, use_steady_plans
from service.postgres.scopes import Condition
from service.postgres.template import Template
from service.search.statements import approximate, exact
from service.search.statements import search_plan
from service.search.statements.search_plan import Candidates, SearchPlan

PREFILTER_ROWS: Final = 2_000
"""From this size of a scope on, conditions with an index are looked up before reading all rows; in a smaller one the
look-up takes as long as it saves."""

MAX_SPEAKERS: Final = 200


# ix_memory_user, _agent or _run is counted without the table, 0.1 ms per thousand rows. Speakers: one step per name
# through ix_memory_user_speaker and its likes.
SUMMARY: Final = Template("""
WITH RECURSIVE named AS (
    (SELECT m.speaker FROM memory m WHERE {scope} AND m.speaker IS NOT NULL ORDER BY m.speaker LIMIT 1)
    UNION ALL
    SELECT next.speaker FROM named CROSS JOIN LATERAL (
        SELECT m.speaker FROM memory m WHERE {scope} AND m.speaker > named.speaker ORDER BY m.speaker LIMIT 1
    ) next
)
SELECT (SELECT count(*) FROM (SELECT FROM memory m WHERE {scope} LIMIT :most + 1) counted) AS rows,
       CAST(ARRAY(SELECT speaker FROM named LIMIT :speakers) AS text[]) AS speakers,
       EXISTS (SELECT FROM turn t WHERE {turns}) AS has_turns
""")


async def summary(session: Session, scope: Condition, turns: Condition, *, count_to: int) -> ScopeSummary:
    """The size of the scope and its speakers. `turns`: the scope as a condition on `turn t`."""
    values = {**scope.values, **turns.values, "most": count_to, "speakers": MAX_SPEAKERS}
    row = (await direct.fetch(session, SUMMARY.fill(scope=scope.sql, turns=turns.sql), values))[0]
    return ScopeSummary(row.rows, tuple(row.speakers), row.has_turns)


async def find(session: Session, plan: SearchPlan, scope_rows: int, *, binary_rows: int) -> Candidates:
    """The candidates of all arms. `scope_rows`: the rows of the scope a few seconds ago; one that has outgrown
    `exact_rows` since then is searched as a large one."""
    if scope_rows >= PREFILTER_ROWS:
        few = await search_plan.restrict(session, plan)
        if few is not None and (candidates := await exact.find(session, few)) is not None:
            return candidates
    if scope_rows <= plan.exact_rows and (candidates := await exact.find(session, plan)) is not None:
        return candidates
    await use_custom_plans(session)
    candidates = await approximate.find(session, plan, "binary" if scope_rows <= binary_rows else "hnsw")
    await use_steady_plans(session)
    return candidates
