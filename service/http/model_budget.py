"""What a request may use of the language model, and what a workspace has used of it in a day."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from service.access.statements import model_days
from service.domain.access import Caller
from service.domain.model_budget import BudgetState
from service.http.schemas import ResponseModel, Time
from service.postgres.engine import Session
from service.providers.budget import Budget, Limits
from service.runtime.resources import Resources


class ModelBudgetItem(ResponseModel):
    """Limits and use of the language model by the workspace in a day (UTC)."""

    day: str = Field(description="In UTC", examples=["2026-03-02"])
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


async def budget_item(session: Session, caller: Caller, res: Resources) -> ModelBudgetItem | None:
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


MODELS_SHARE = 0.85
"""Share of a request's time for model calls: their results still have to be embedded and written."""

MODEL_CALLS, MODEL_TOKENS = 32, 60_000
"""What one request may use of the language model: a batch of a hundred texts needs a tenth of it."""

TECHNIQUES_SHARE = 0.6
"""Share of a search's time for the language model; after that the query is embedded as it is."""


def with_budget(res: Resources, *, within_s: float | None = None) -> Resources:
    """A view with a budget for the model calls, tokens and seconds of a request, shared by the items of a batch.
    `within_s`: a time shorter than the request's deadline."""
    settings = res.settings
    deadline_s, overall_deadline_s = settings.server.request_deadline_s * MODELS_SHARE, None
    if within_s is not None:
        deadline_s, overall_deadline_s = min(deadline_s, within_s * TECHNIQUES_SHARE), within_s * MODELS_SHARE
    limits = Limits(MODEL_CALLS, MODEL_TOKENS, deadline_s, overall_deadline_s)
    return res.within(replace(res.context, budget=Budget(limits)))
