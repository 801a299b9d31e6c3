"""The daily budget of a workspace for the language model, and what it has spent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Tokens = Annotated[int, Field(ge=0, le=10**15)]
Price = Annotated[float, Field(ge=0, le=10**12, allow_inf_nan=False)]

BudgetState = Literal["open", "soft", "hard"]

PRICED_TOKENS = 1_000_000


def lower(one: float | None, other: float | None) -> float | None:
    """The lower of two limits; 0 and None are none."""
    return min(one, other) if one and other else one or other


class ModelBudget(BaseModel):
    """The budget of a workspace for a day in UTC. Tokens are those of prompts and answers together, costs are reported
    in the unit of the prices. See docs/decisions/064-model-budget.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    soft_tokens: Tokens | None = Field(default=0, description="Limit of requests, then by rules; 0 or null: none")
    hard_tokens: Tokens | None = Field(default=0, description="Limit of jobs, which then wait; 0 or null: none")
    prompt_price: Price = Field(default=0, description="Of a million tokens sent")
    completion_price: Price = Field(default=0, description="Of a million tokens answered")

    def limit(self, *, background: bool) -> int | None:
        """The most tokens that may be spent and reserved: both limits apply to a request, the hard one alone to a job.
        None: no limit."""
        return min(filter(None, (self.hard_tokens, None if background else self.soft_tokens)), default=None)

    def within(self, outer: ModelBudget) -> ModelBudget:
        """The lower of each limit."""
        lowest = {name: lower(getattr(self, name), getattr(outer, name)) for name in ("soft_tokens", "hard_tokens")}
        return self.model_copy(update=lowest)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of tokens in money; 0 without prices."""
        total = prompt_tokens * self.prompt_price + completion_tokens * self.completion_price
        return total / PRICED_TOKENS


@dataclass(frozen=True, slots=True)
class DayAccount:
    """What a workspace spent on a day (UTC). `reserved_tokens`: an estimate for calls in progress, which count too."""

    day: date
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    reserved_tokens: int = 0

    @property
    def resets_at(self) -> datetime:
        """When the next day begins."""
        return day_end(self.day)

    def state(self, budget: ModelBudget) -> BudgetState:
        """`hard` if nothing is left even for jobs, `soft` if nothing is left for requests, else `open`."""
        if self._is_over(budget.limit(background=True)):
            return "hard"
        return "soft" if self._is_over(budget.limit(background=False)) else "open"

    def _is_over(self, limit: int | None) -> bool:
        return limit is not None and self.prompt_tokens + self.completion_tokens + self.reserved_tokens >= limit


def day_end(day: date) -> datetime:
    """Midnight in UTC at the end of the day."""
    return datetime.combine(day + timedelta(days=1), time(), UTC)
