"""Counts of a workspace, each read in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from service.domain.access import Caller
from service.domain.scope import Scope
from service.http import model_budget
from service.http.model_budget import ModelBudgetItem
from service.runtime.resources import Resources
from service.runtime.statements import stats

MOST_CATEGORIES = 100


async def count_workspace(caller: Caller, res: Resources) -> tuple[Row[Any], ModelBudgetItem | None]:
    """Returns exact counts over the whole workspace, and the state of its model budget, if it has one."""
    async with res.db.read(caller.workspace_id) as session:
        counts = await stats.of_workspace(session)
        return counts, await model_budget.budget_item(session, caller, res)


async def count_categories(scope: Scope, res: Resources) -> Sequence[tuple[str, int]]:
    """Returns the most used categories of memories that are not archived, at most MOST_CATEGORIES."""
    async with res.db.read(scope.workspace_id) as session:
        return await stats.categories(session, scope, limit=MOST_CATEGORIES)
