"""Which few rows of a large scope can meet the conditions of a question at all?

`narrow_ids` looks them up by their marks (domain/marks.py) past row-level security, which keeps the application from
every GIN index (A2), and gives ids of the workspace alone. Where no marks tell or they leave too many, bounds of a
column with a btree may leave few (domain/bounds.py). When there are few, the scope is cut down to them and answered
like a small one, row by row: conditions and policy are asked of each, and neither the graph nor a scan of the scope is
needed. They are looked up twice, in one snapshot, so that no ids travel.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import TextClause, text

from service.db import direct
from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.search import exact
from service.db.search.exact import Ask, Candidates, Where
from service.domain import column_ranges
from service.domain.column_ranges import ColumnRange
from service.domain.filter_keys import KeyGroup

MOST: Final = 5_000
"""Rows that are few. Each is read by its key from two tables; beyond, the other ways of a large scope are faster."""

BROAD: Final = 30_000
"""Rows that a scan is cut down to: one that is read by its key takes as long as four or five that are read in a row."""

# ix_memory_filter_keys. The keys are worked out by the very function that is indexed, from what a row with them would
# hold.
MARKS: Final = """memory_filter_keys(:workspace, CAST(:{group}_words AS text[]), '{{}}',
                 CAST(:{group}_categories AS text[]), '{{}}', CAST(CAST(:{group}_metadata AS text) AS jsonb), false)"""
IDS: Final = f"""narrow_ids(CAST(:of_user AS text), CAST(:of_agent AS text), CAST(:of_run AS text),
    CAST(:of_channels AS text[]), :of_since, :of_until, {MARKS.format(group="all")}, {MARKS.format(group="any")},
    {MARKS.format(group="also")}, CAST(:of_reach AS integer))"""
BROAD_IDS: Final = IDS.replace(":of_reach", ":of_broad")

WITHIN: Final = "ARRAY(SELECT b.id FROM memory b WHERE b.workspace_id = :workspace AND {bound})"

# ix_memory_timestamp and its like, read without the table where that is possible: hence the order
BOUNDED: Final = """(SELECT count(*) FROM (
    SELECT FROM memory m WHERE m.workspace_id = :workspace AND {bound} ORDER BY m."{field}" DESC
    LIMIT CAST(:of_reach AS integer) + 1
) near) <= CAST(:of_reach AS integer)"""

SCAN: Final = "SELECT m.id FROM memory m WHERE {when} AND {every}"
KNOWN: Final = """SELECT m.id FROM memory m
    WHERE {when} AND m.workspace_id = :workspace AND m.id = ANY (ARRAY(SELECT unnest(ids) FROM known)) AND {met}
    UNION ALL {scan}"""
UNKNOWN: Final = "(SELECT ids IS NULL FROM known)"

# Whether a row that the graph comes by bears the marks is asked of a hash table, a tenth of what looking it up costs:
# where they leave few per cent of the scope, nearly all would be looked up to be refused.
AMONG: Final = f" AND ({UNKNOWN} OR v.memory_id IN (SELECT unnest(ids) FROM known))"  # noqa: S608 - of our own

EVERY: Final = Condition("true")

KINDS: Final = {"id": "uuid", "timestamp": "timestamptz", "created_at": "timestamptz", "importance": "float8"}


async def candidates(session: Session, where: Where, ask: Ask, *, arm: int, wanted: int) -> Candidates | None:
    """As exact.candidates gives them for a small scope; None where nothing tells that the conditions leave
    `exact_rows` rows of the workspace at most, and MOST."""
    if not where.filter_keys and not where.column_ranges:
        return None
    few = await fewer(session, where)
    return None if few is None else await exact.candidates(session, few, ask, arm=arm, wanted=wanted)


async def fewer(session: Session, where: Where) -> Where | None:
    """The scope, cut down to few rows; None where nothing tells that there are few."""
    row = await direct.first(session, probe(where), values(where))
    if row is None or row.cut is None:
        return None
    return narrowed(where, None if row.cut < 0 else where.column_ranges[row.cut])


def probe(where: Where) -> TextClause:
    """Asks for `cut`: -1 where marks leave few rows, else the place of the bound that does, else NULL."""
    found = enumerate(where.column_ranges)
    bounded = [BOUNDED.format(bound=_bounded("m", at, each), field=each.field) for at, each in found]
    return _probe(tuple([f"{IDS} IS NOT NULL"] if where.filter_keys else []), tuple(bounded))


@lru_cache(maxsize=64)
def _probe(marks: tuple[str, ...], bounded: tuple[str, ...]) -> TextClause:
    cases = [*((-1, each) for each in marks), *enumerate(bounded)]
    return typed(text(f"SELECT CASE {' '.join(f'WHEN {each} THEN {cut}' for cut, each in cases)} END AS cut"))


def narrowed(where: Where, bound: ColumnRange | None = None) -> Where:
    """The scope, cut down to those rows with the marks, or within the bound, that meet the conditions, so that none of
    them is hidden. They and their vectors are found by their ids; scope and conditions are asked of each row that was
    read. Where they stood beside the ids (and not inside a function), a scan of the whole scope looked cheap to a
    planner that knew nothing of the workspace. The function stands in a subquery: to learn how many ids it gives, the
    planner would call it, too."""
    if bound is None:
        ids = f"CAST((SELECT {IDS}) AS uuid[])"
    else:
        ids = WITHIN.format(bound=_bounded("b", where.column_ranges.index(bound), bound))
    workspace = {"workspace": where.scope.values["workspace"]}
    met = where.scope & where.rows
    here = Condition(f"m.workspace_id = :workspace AND m.id = ANY ({ids})", values(where))
    here &= Condition(f"coalesce({met.sql}, false)", met.values)
    read = Condition("v.workspace_id = :workspace AND v.memory_id = ANY ((SELECT ids FROM scan)::uuid[])", workspace)
    return replace(where, scope=here, rows=EVERY, vectors=read, whole=False)


def known(when: str = "true") -> str:
    """The table `known`: the ids of the up to BROAD rows with the marks, looked up `when` this holds; else NULL."""
    return f"known AS MATERIALIZED (SELECT CASE WHEN {when} THEN {BROAD_IDS} END AS ids)"


def scanned(where: Where, when: str) -> Condition:
    """A statement of the ids of all rows of the scope that meet the conditions, run `when` this holds. The btree of a
    bound serves where the planner takes it for narrow; where there are marks, only the rows `known` are read."""
    given = values(where) if where.filter_keys or where.column_ranges else {}
    given |= {**where.scope.values, **where.rows.values}
    bounded = [_bounded("m", at, each) for at, each in enumerate(where.column_ranges)]
    every = " AND ".join([where.scope.sql, where.rows.sql, *bounded])
    if not where.filter_keys:
        return Condition(SCAN.format(when=when, every=every), given)
    met = f"coalesce({where.scope.sql} AND {where.rows.sql}, false)"
    return Condition(
        KNOWN.format(when=when, met=met, scan=SCAN.format(when=f"{when} AND {UNKNOWN}", every=every)), given
    )


def of_scope(scope: Condition) -> dict[str, Any]:
    """The ids and channels of a scope, as the functions over GIN take them."""
    given = scope.values
    channels = given.get("channels") or [given[name] for name in ("channel", "global_channel") if name in given]
    ids = {f"of_{name}": given.get(f"{name}_id") for name in ("user", "agent", "run")}
    return {**ids, "of_channels": list(channels)}


def values(where: Where) -> dict[str, Any]:
    """The parameters of IDS, and of every bound."""
    since, until = column_ranges.time_span(where.column_ranges)
    groups = (where.filter_keys.all_of, *where.filter_keys.any_of, (), ())
    found = {
        "workspace": where.scope.values["workspace"],
        **of_scope(where.scope),
        "of_since": since,
        "of_until": until,
        **_row("all", groups[0]),
        **_row("any", groups[1]),
        **_row("also", groups[2]),
        "of_reach": min(where.exact_rows, MOST),
        "of_broad": BROAD,
    }
    for at, bound in enumerate(where.column_ranges):
        found |= {_name(at, bound, end): value for end, value in _ends(bound)}
    return found


def _row(name: str, marks: KeyGroup) -> dict[str, Any]:
    """What a row that bears the marks holds in the columns they are made from."""
    metadata: dict[str, list[Any]] = {}
    for mark in marks:
        if mark.kind == "metadata":
            metadata.setdefault(mark.word, []).append(mark.value)
    return {
        f"{name}_words": [mark.word for mark in marks if mark.kind == "word"],
        f"{name}_categories": [mark.word for mark in marks if mark.kind == "category"],
        f"{name}_metadata": json.dumps(metadata),
    }


def _bounded(alias: str, at: int, bound: ColumnRange) -> str:
    """The condition of a bound on a row of `memory`."""
    kind = KINDS.get(bound.field, "text")
    shapes = {"low": f">= CAST(:{{name}} AS {kind})", "high": f"<= CAST(:{{name}} AS {kind})"}
    shapes["among"] = f"= ANY (CAST(:{{name}} AS {kind}[]))"
    column = f'{alias}."{bound.field}"'
    return " AND ".join(f"{column} {shapes[end].format(name=_name(at, bound, end))}" for end, _ in _ends(bound))


def _name(at: int, bound: ColumnRange, end: str) -> str:
    return f"bound_{'time_' if KINDS.get(bound.field) == 'timestamptz' else ''}{at}_{end}"


def _ends(bound: ColumnRange) -> list[tuple[str, Any]]:
    ends = (("low", bound.low), ("high", bound.high), ("among", None if bound.among is None else list(bound.among)))
    return [(name, value) for name, value in ends if value is not None]
