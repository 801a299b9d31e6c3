"""The plan that every statement of one search reads, and the candidates that they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.domain.query import VectorPath
from service.domain.scope import ScopeMatch
from service.postgres.scopes import Condition
from service.search.column_ranges import ColumnRange
from service.search.filter_keys import NO_FILTER_KEYS, FilterKeys

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
    - prefiltered: scope and vectors are those of a few rows whose ids were looked up first (prefilter.py)
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
    def workspace_id(self) -> UUID:
        value: UUID = self.scope.values["workspace"]
        return value


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
