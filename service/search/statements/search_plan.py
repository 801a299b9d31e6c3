"""The plan that every statement of one search reads, and the few rows of a large scope that it can be restricted to.

`narrow_ids` looks rows up by their filter keys (search/indexed_conditions.py) past row-level security, which keeps the
application from every GIN index (docs/decisions/003-definer-functions.md), and gives ids of the workspace alone. Where
there are no keys or they leave too many rows, the btree of a column may leave few. Few rows are then answered like a
small scope, row by row: conditions and policy are checked for each, and neither the graph nor a scan of the scope is
needed. They are looked up twice, in one snapshot, so that no ids travel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from sqlalchemy import TextClause

from service.domain.query import VectorPath
from service.domain.scope import ScopeMatch
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.postgres.template import Template
from service.search import indexed_conditions
from service.search.indexed_conditions import NO_FILTER_KEYS, ColumnRange, FilterKeys, KeyGroup

MIN_ARM_LIMIT: Final = 50
"""Minimum number of candidates of each arm; an arm returns twice the requested number."""

NOWHERE: Final = Condition("false")
"""The scope of tables without shared rows, if only shared rows are searched."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search looks for, where, and how many results it needs.

    - scope, vector_scope: the scope as a condition on `memory m` and on `memory_vector v`
    - match, with_shared: how the scope counts its ids, and whether it has shared memories, too (domain/scope.py)
    - goal_scope: the scope as a condition on `goal g`
    - conditions: the other conditions on a row
    - filter_keys, column_ranges: what every row that meets them carries, for the indexes
    - exact_rows: scopes up to this size are read row by row
    - prefiltered: scope and vectors are those of a few rows whose ids were looked up first (`restrict_to_few`)
    - terms: ids of the query's terms
    - vector: what is searched with, None without an embedder; original_vector: the unexpanded query's vector, if the
      query was expanded
    - asked_at: the middle of the time that the query asks for
    - tags: those a hit should have
    - arm_limit: maximum number of ids of an arm; limit: minimum number of distinct ids over all arms
    """

    scope: Condition
    vector_scope: Condition
    conditions: Condition
    generation: int
    exact_rows: int
    filter_keys: FilterKeys = NO_FILTER_KEYS
    column_ranges: tuple[ColumnRange, ...] = ()
    prefiltered: bool = False
    terms: Sequence[int] = ()
    vector: NDArray[np.float32] | None = None
    original_vector: NDArray[np.float32] | None = None
    asked_at: datetime | None = None
    tags: Sequence[str] = ()
    arm_limit: int = MIN_ARM_LIMIT
    limit: int = 10
    match: ScopeMatch = "all"
    with_shared: bool = False
    goal_scope: Condition = NOWHERE

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of its statements."""
        return {
            **self.scope.values,
            **self.vector_scope.values,
            **self.conditions.values,
            "exact_rows": self.exact_rows,
            "terms": list(self.terms),
            "query_vector": None if self.vector is None else HalfVector(self.vector),
            "original_vector": None if self.original_vector is None else HalfVector(self.original_vector),
            "asked_at": self.asked_at,
            "tags": list(self.tags),
            "arm_limit": self.arm_limit,
            "limit": self.limit,
        }


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a search. `arms`: ids by arm, best first. `text_count`: how many memories the search may see;
    in a large scope about how many the workspace has. `text_df`, `context_df`: in how many texts, and in how many
    contexts, a term occurs. `path`: how vectors were searched."""

    text_count: int
    text_df: Mapping[int, float]
    context_df: Mapping[int, float]
    arms: Mapping[str, Sequence[UUID]] = field(default_factory=dict)
    path: VectorPath = "none"


# -- few rows of a large scope ----------------------------------------------------------------------------------------

MAX_FEW: Final = 5_000
"""The maximum of few rows. Each is read by its key from two tables; for more, the other strategies of a large scope are
faster."""

MAX_SCANNED: Final = 30_000
"""Maximum number of ids to look up instead of scanning the scope: a look-up by key costs as much as reading four or
five rows in sequence."""

# ix_memory_filter_keys. The keys are computed by the very function that is indexed, from what a row with them would
# hold.
KEYS: Final = """memory_filter_keys(:workspace, CAST(:{0}_words AS text[]), '{{}}', CAST(:{0}_categories AS text[]),
            '{{}}', CAST(CAST(:{0}_metadata AS text) AS jsonb), false)"""
IDS: Final = """narrow_ids(
        CAST(:of_user AS text), CAST(:of_agent AS text), CAST(:of_run AS text), CAST(:of_channels AS text[]),
        :since, :until,
        {},
        {},
        {},
        CAST(:{} AS integer), :match_any, :with_shared)"""
GROUPS: Final = tuple(KEYS.format(group) for group in ("all_of", "any_of_1", "any_of_2"))
FEW_IDS: Final = IDS.format(*GROUPS, "max_few")
SCANNED_IDS: Final = IDS.format(*GROUPS, "max_scanned")

IDS_IN_RANGE: Final = "ARRAY(SELECT b.id FROM memory b WHERE b.workspace_id = :workspace AND {range})"

# ix_memory_timestamp and its like, read without the table where that is possible: hence the order
RANGE_LEAVES_FEW: Final = """(SELECT count(*) FROM (
    SELECT FROM memory m WHERE m.workspace_id = :workspace AND {range} ORDER BY m."{field}" DESC
    LIMIT CAST(:max_few AS integer) + 1
) few) <= CAST(:max_few AS integer)"""

PROBE: Final = Template("SELECT CASE {cases} END AS narrowed_by")

FILTER_KEYS: Final = "filter keys"

NO_CONDITION: Final = Condition("true")

COLUMN_TYPES: Final = {"id": "uuid", "timestamp": "timestamptz", "created_at": "timestamptz", "importance": "float8"}


async def restrict(session: Session, plan: SearchPlan) -> SearchPlan | None:
    """The plan for the few rows that can meet the conditions; None if no index shows that at most `exact_rows` rows of
    the workspace, and MAX_FEW, can."""
    if not plan.filter_keys and not plan.column_ranges:
        return None
    row = await direct.first(session, probe(plan), index_values(plan))
    if row is None or row.narrowed_by is None:
        return None
    return restrict_to_few(plan, None if row.narrowed_by == FILTER_KEYS else plan.column_ranges[int(row.narrowed_by)])


def probe(plan: SearchPlan) -> TextClause:
    """Asks what leaves few rows: FILTER_KEYS, or the index of the first such column range; NULL if nothing does."""
    cases = [f"WHEN {FEW_IDS} IS NOT NULL THEN '{FILTER_KEYS}'"] if plan.filter_keys else []
    for at, column_range in enumerate(plan.column_ranges):
        leaves_few = RANGE_LEAVES_FEW.format(range=in_range("m", at, column_range), field=column_range.field)
        cases.append(f"WHEN {leaves_few} THEN '{at}'")
    return PROBE.fill(cases=" ".join(cases))


def restrict_to_few(plan: SearchPlan, by: ColumnRange | None = None) -> SearchPlan:
    """The plan for those rows with the filter keys, or in the column range, that meet the conditions, so that none of
    them is hidden. They and their vectors are found by their ids; scope and conditions are checked for each row read.

    coalesce() keeps the planner from using the conditions to choose a scan of the whole scope, which looked cheap to it
    without statistics of the workspace. The function is called in a subquery, because otherwise the planner calls it
    as well, to estimate how many ids it returns.
    """
    if by is None:
        ids = f"CAST((SELECT {FEW_IDS}) AS uuid[])"
    else:
        ids = IDS_IN_RANGE.format(range=in_range("b", plan.column_ranges.index(by), by))
    conditions = plan.scope & plan.conditions
    scope = Condition(f"m.workspace_id = :workspace AND m.id = ANY ({ids})", index_values(plan))
    scope &= Condition(f"coalesce({conditions.sql}, false)", conditions.values)
    vector_scope = Condition("v.workspace_id = :workspace AND v.memory_id = ANY ((SELECT ids FROM scan)::uuid[])")
    return replace(plan, scope=scope, conditions=NO_CONDITION, vector_scope=vector_scope, prefiltered=True)


def in_range(alias: str, at: int, column_range: ColumnRange) -> str:
    """The condition of the range at this place of the plan, on a row of `memory`."""
    column = f'{alias}."{column_range.field}"'
    return " AND ".join(f"{column} {comparison}" for comparison, _, _ in _bounds(at, column_range))


def _bounds(at: int, column_range: ColumnRange) -> list[tuple[str, str, Any]]:
    """Each bound of the range: the comparison with it, its parameter, and the value of that."""
    kind = COLUMN_TYPES.get(column_range.field, "text")
    prefix = f"bound_{'time_' if kind == 'timestamptz' else ''}{at}"
    among = None if column_range.among is None else list(column_range.among)
    bounds = (
        (f">= CAST(:{prefix}_low AS {kind})", f"{prefix}_low", column_range.low),
        (f"<= CAST(:{prefix}_high AS {kind})", f"{prefix}_high", column_range.high),
        (f"= ANY (CAST(:{prefix}_among AS {kind}[]))", f"{prefix}_among", among),
    )
    return [bound for bound in bounds if bound[2] is not None]


def _scope_parameters(plan: SearchPlan) -> dict[str, Any]:
    """The scope, as the functions over GIN take it."""
    given = plan.scope.values
    channels = given.get("channels") or [given[name] for name in ("channel", "global_channel") if name in given]
    ids = {f"of_{name}": given.get(f"{name}_id") for name in ("user", "agent", "run")}
    return {**ids, "of_channels": list(channels), "match_any": plan.match == "any", "with_shared": plan.with_shared}


def index_values(plan: SearchPlan) -> dict[str, Any]:
    """The parameters of FEW_IDS and SCANNED_IDS, and of every column range."""
    since, until = indexed_conditions.time_span(plan.column_ranges)
    groups = (plan.filter_keys.all_of, *plan.filter_keys.any_of, (), ())
    parameters = {
        "workspace": plan.scope.values["workspace"],
        **_scope_parameters(plan),
        "since": since,
        "until": until,
        **_row_with("all_of", groups[0]),
        **_row_with("any_of_1", groups[1]),
        **_row_with("any_of_2", groups[2]),
        "max_few": min(plan.exact_rows, MAX_FEW),
        "max_scanned": MAX_SCANNED,
    }
    for at, column_range in enumerate(plan.column_ranges):
        parameters |= {name: value for _, name, value in _bounds(at, column_range)}
    return parameters


def _row_with(name: str, keys: KeyGroup) -> dict[str, Any]:
    """What a row that carries these keys holds in the columns they are made from."""
    metadata: dict[str, list[Any]] = {}
    for key in keys:
        if key.kind == "metadata":
            metadata.setdefault(key.word, []).append(key.value)
    return {
        f"{name}_words": [key.word for key in keys if key.kind == "word"],
        f"{name}_categories": [key.word for key in keys if key.kind == "category"],
        f"{name}_metadata": json.dumps(metadata),
    }
