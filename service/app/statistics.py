"""Counts of a workspace, each read in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.access import Caller
from service.domain.scope import Scope
from service.http import model_budget
from service.http.model_budget import ModelBudgetItem
from service.queue import overview
from service.runtime.resources import Resources
from service.runtime.statements import stats
from service.runtime.statements.stats import WorkspaceCounts

MOST_CATEGORIES = 100


@dataclass(frozen=True, slots=True)
class Statistics:
    stored: WorkspaceCounts
    dead_jobs: int
    model_budget: ModelBudgetItem | None


async def count_workspace(caller: Caller, res: Resources) -> Statistics:
    """Returns exact counts over the whole workspace, and the state of its model budget, if it has one."""
    async with res.db.read(caller.workspace_id) as session:
        return Statistics(
            await stats.of_workspace(session, caller.workspace_id),
            await overview.count_dead(session, caller.workspace_id),
            await model_budget.budget_item(session, caller, res),
        )


async def count_categories(scope: Scope, res: Resources) -> Sequence[tuple[str, int]]:
    """Returns the most used categories of memories that are not archived, at most MOST_CATEGORIES."""
    async with res.db.read(scope.workspace_id) as session:
        return await stats.categories(session, scope, limit=MOST_CATEGORIES)
