"""A workspace's day with the language model, as statistics and reports show it."""

from __future__ import annotations

from pydantic import Field

from service.access.statements import model_days
from service.domain.access import Caller
from service.domain.model_budget import BudgetState
from service.http.schemas import ResponseModel, Time
from service.postgres.engine import Session
from service.runtime.resources import Resources


class ModelBudgetItem(ResponseModel):
    """What the workspace may use of the language model in a day, and what it has used."""

    day: str = Field(description="In UTC", examples=["2026-03-02"])
    resets_at: Time = Field(description="When the next day begins")
    state: BudgetState = Field(
        description="soft: requests are answered by the rules; hard: the work of jobs waits as well. A call that would "
        "pass a limit is refused a little before"
    )
    calls: int = Field(description="Calls that were answered, or may have been, from 0")
    prompt_tokens: int = Field(description="Tokens sent, from 0")
    completion_tokens: int = Field(description="Tokens answered, from 0")
    cost: float = Field(description="By the prices set, from 0")
    reserved_tokens: int = Field(description="Set aside for calls under way, from 0")
    reserved_cost: float = Field(description="The same by the prices set, from 0")
    soft_tokens: int | None = Field(description="Limit of sent, answered and reserved tokens; null: none")
    hard_tokens: int | None = Field(description="The same for jobs as well; null: none")
    soft_cost: float | None = Field(description="Limit of money; null: none")
    hard_cost: float | None = Field(description="The same for jobs as well; null: none")


async def read(caller: Caller, res: Resources) -> ModelBudgetItem | None:
    async with res.db.read(caller.workspace_id) as session:
        return await shown(session, caller, res)


async def shown(session: Session, caller: Caller, res: Resources) -> ModelBudgetItem | None:
    """None without a model, and for a key behind a wall: these are figures of the whole workspace."""
    if res.llm is None or caller.wall:
        return None
    account, budget = await model_days.account(session, caller.workspace_id, res.clock()), res.settings.model_budget
    return ModelBudgetItem(
        day=account.day.isoformat(),
        resets_at=account.resets_at,
        state=account.state(budget),
        calls=account.calls,
        prompt_tokens=account.prompt_tokens,
        completion_tokens=account.completion_tokens,
        cost=account.cost,
        reserved_tokens=account.reserved_tokens,
        reserved_cost=account.reserved_cost,
        soft_tokens=budget.soft_tokens or None,
        hard_tokens=budget.hard_tokens or None,
        soft_cost=budget.soft_cost or None,
        hard_cost=budget.hard_cost or None,
    )
