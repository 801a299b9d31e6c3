"""Settings of ageing, which let numbers fade and say when a memory is stale or faded, and thresholds of promotion to
all channels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Boost = Annotated[float, Field(ge=0, le=10)]
Days = Annotated[float, Field(gt=0, le=36_500)]
DECAYING_BELOW = 0.25
"""Relevance below which a memory is decaying: 27 days without use."""

INFERRED_AT_MOST = 0.7
"""Facts of at most this confidence were inferred, not said plainly; their confidence fades."""


class Ageing(BaseModel):
    """Ageing in a workspace. Numbers are computed from a stored base and the time since the last use, so a repeated run
    gives the same result. docs/decisions/059-ageing.md says where the defaults come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kept_per_day: float = Field(
        default=0.95, gt=0, le=1, description="What a day without use leaves of a number: 5 % are lost"
    )
    confidence_kept_per_week: float = Field(
        default=0.95, gt=0, le=1, description="What a week leaves of the confidence of an inferred fact"
    )
    use_boost: Boost = Field(default=0.1, description="Salience grows by this share times ln(1 + uses)")
    recency_boost: Boost = Field(
        default=0.1, description="Added to the salience of what was used; exp(-days) of it later"
    )
    stale_after_days: Days = Field(default=90, description="A memory that was not used for so long is stale")
    forget_below: float = Field(default=0.05, ge=0, le=1, description="Relevance below which `forget` archives")
    entity_min_salience: float = Field(
        default=0.1, ge=0, le=1, description="Below it an entity nobody mentions is removed"
    )
    entity_idle_days: Days = Field(default=30, description="If it was not used for so long either")

    conversation_archive_days: Days = Field(
        default=90, description="A conversation without a new turn for so long is archived"
    )

    @property
    def loss_per_day(self) -> float:
        """The rate of the exponential: 0.0513 for 0.95."""
        return -math.log(self.kept_per_day)

    @property
    def confidence_loss_per_week(self) -> float:
        """The weekly decay of confidence."""
        return -math.log(self.confidence_kept_per_week)


@dataclass(frozen=True, slots=True)
class AgeingScope:
    """Which memories of the workspace: all, or those that have every given id."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    @property
    def values(self) -> Mapping[str, Any]:
        """Parameters of a statement."""
        return {**asdict(self), "scoped": any((self.user_id, self.agent_id, self.run_id))}


class Promoting(BaseModel):
    """Promotion in a workspace. All thresholds must be met. docs/decisions/061-promotion.md"""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_confidence: float = Field(default=0.85, ge=0, le=1, description="Of the fact; of its type where it has none")
    min_access_count: int = Field(default=5, ge=0, le=1_000_000, description="How often it was used")
    min_conversations: int = Field(default=2, ge=0, le=1_000, description="In how many conversations it was said")


def is_worthy(rules: Promoting, confidence: float, access_count: int, conversations: int) -> bool:
    """Whether a memory with these figures is promoted."""
    return (
        confidence >= rules.min_confidence
        and access_count >= rules.min_access_count
        and conversations >= rules.min_conversations
    )
