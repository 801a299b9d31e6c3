"""The daily budget of a workspace for the language model, and what it has spent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Tokens = Annotated[int, Field(ge=0, le=10**15)]
Money = Annotated[float, Field(ge=0, le=10**12, allow_inf_nan=False)]

BudgetState = Literal["open", "soft", "hard"]

PRICED_TOKENS = 1_000_000


def lower(one: float | None, other: float | None) -> float | None:
    """The lower of two limits; 0 and None are none."""
    return min(one, other) if one and other else one or other


@dataclass(frozen=True, slots=True)
class DayLimit:
    """The most that may be spent and reserved together; None: no limit."""

    tokens: int | None
    cost: float | None


class ModelBudget(BaseModel):
    """Limits for a workspace and a day in UTC; 0 or null is no limit. Tokens of prompts and answers are added up; costs
    are in the unit of the prices. See docs/decisions/064-model-budget.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    soft_tokens: Tokens | None = Field(default=0, description="From here on requests are answered by the rules")
    hard_tokens: Tokens | None = Field(default=0, description="From here on the work of jobs waits too")
    soft_cost: Money | None = Field(default=0, description="The same in money, which needs prices")
    hard_cost: Money | None = Field(default=0, description="The same in money, which needs prices")
    prompt_price: Money = Field(default=0, description="Of a million tokens sent")
    completion_price: Money = Field(default=0, description="Of a million tokens answered")

    def limit(self, *, background: bool) -> DayLimit | None:
        """The limit for a call: both limits for a request, only the hard ones for a job. None: there is none."""
        tokens = min(filter(None, (self.hard_tokens, None if background else self.soft_tokens)), default=None)
        cost = min(filter(None, (self.hard_cost, None if background else self.soft_cost)), default=None)
        return None if tokens is None and cost is None else DayLimit(tokens, cost)

    def within(self, outer: ModelBudget) -> ModelBudget:
        """Both budgets at once: the lower limits and the higher prices, with which cost limits are reached first."""
        both = {name: (getattr(self, name), getattr(outer, name)) for name in ModelBudget.model_fields}
        lowest = {name: max(pair) if "price" in name else lower(*pair) for name, pair in both.items()}
        return self.model_copy(update=lowest)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """In money; 0 without prices."""
        whole = prompt_tokens * self.prompt_price + completion_tokens * self.completion_price
        return whole / PRICED_TOKENS


@dataclass(frozen=True, slots=True)
class DayAccount:
    """What a workspace spent on a day (UTC). `reserved_...`: estimates for calls in progress, which count as well."""

    day: date
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    reserved_tokens: int = 0
    reserved_cost: float = 0.0

    @property
    def resets_at(self) -> datetime:
        """When the next day begins."""
        return day_end(self.day)

    def state(self, budget: ModelBudget) -> BudgetState:
        """`hard` if nothing is left even for jobs, `soft` if nothing is left for requests, else `open`."""
        if self._is_over(budget.limit(background=True)):
            return "hard"
        return "soft" if self._is_over(budget.limit(background=False)) else "open"

    def _is_over(self, limit: DayLimit | None) -> bool:
        if limit is None:
            return False
        tokens = self.prompt_tokens + self.completion_tokens + self.reserved_tokens
        over_tokens = limit.tokens is not None and tokens >= limit.tokens
        return over_tokens or (limit.cost is not None and self.cost + self.reserved_cost >= limit.cost)


def day_end(day: date) -> datetime:
    """Midnight in UTC at the end of the day."""
    return datetime.combine(day + timedelta(days=1), time(), UTC)
