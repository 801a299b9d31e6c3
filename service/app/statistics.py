"""Counts of a workspace, and what it has used of the language model in a day, each read in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import Row

from service.access.statements import model_days
from service.domain.access import Caller
from service.domain.model_budget import BudgetState
from service.domain.scope import Scope
from service.http.schemas import ResponseModel, Time
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.statements import stats

MOST_CATEGORIES = 100


class ModelBudgetItem(ResponseModel):
    """Limits and use of the language model by the workspace in a day (UTC)."""

    day: str = Field(description="The day, in UTC", examples=["2026-03-02"])
    resets_at: Time = Field(description="When the next day begins")
    state: BudgetState = Field(
        description="soft: requests use rules instead; hard: jobs wait as well. A call that would exceed a limit is "
        "already refused"
    )
    calls: int = Field(description="Calls that were answered, or may have been")
    prompt_tokens: int = Field(description="Tokens sent")
    completion_tokens: int = Field(description="Tokens received")
    cost: float = Field(description="Cost at the configured prices")
    reserved_tokens: int = Field(description="Tokens reserved for calls in progress")
    soft_tokens: int | None = Field(description="Limit of sent, received and reserved tokens for requests; null: none")
    hard_tokens: int | None = Field(description="Limit for requests and jobs; null: none")


async def _budget_item(session: Session, caller: Caller, res: Resources) -> ModelBudgetItem | None:
    """The model budget for a response; None without a model, and for a key with a wall, as it covers the whole
    workspace."""
    if res.llm is None or caller.wall:
        return None
    account, budget = await model_days.account(session, res.clock()), res.settings.llm.budget
    return ModelBudgetItem.of(
        account,
        day=account.day.isoformat(),
        state=account.state(budget),
        soft_tokens=budget.soft_tokens or None,
        hard_tokens=budget.hard_tokens or None,
    )


async def count_workspace(caller: Caller, res: Resources) -> tuple[Row[Any], ModelBudgetItem | None]:
    """Returns exact counts over the whole workspace, and the state of its model budget, if it has one."""
    async with res.db.read(caller.workspace_id) as session:
        counts = await stats.of_workspace(session)
        return counts, await _budget_item(session, caller, res)


async def count_categories(scope: Scope, res: Resources) -> Sequence[tuple[str, int]]:
    """Returns the most used categories of memories that are not archived, at most MOST_CATEGORIES."""
    async with res.db.read(scope.workspace_id) as session:
        return await stats.categories(session, scope, limit=MOST_CATEGORIES)
