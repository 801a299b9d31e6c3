"""How memories and entities age: what is left of a number after a day, and when something counts as stale or faded."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

IntervalMin = Annotated[float, Field(ge=15, le=44_640)]
Boost = Annotated[float, Field(ge=0, le=10)]
Days = Annotated[float, Field(gt=0, le=36_500)]
INFERRED = 0.7
"""Facts of at most this confidence were concluded, or are in doubt, and were not said plainly: what a model labels
`inferred` has 0.7, `uncertain` and a doubt of the speaker 0.5, `implied` 0.85 (curator/extraction_reply.py)."""


DECAYING_BELOW = 0.25
"""Relevance below which a memory is said to decay: 27 days without use at 5 % a day. Far above what is let go of."""


class Ageing(BaseModel):
    """Of a workspace. Numbers are computed from a stored base and the time since the last use, so a run that is
    repeated gives the same. docs/decisions/059-ageing.md says where the defaults come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    relevance_interval_min: IntervalMin = Field(default=60, description="Minutes between runs of `relevance`")
    decay_interval_min: IntervalMin = Field(default=1_440, description="Minutes between runs of `decay`")
    flag_stale_interval_min: IntervalMin = Field(default=1_440, description="Minutes between runs of `flag_stale`")
    forget_interval_min: IntervalMin = Field(default=1_440, description="Minutes between runs of `forget`")
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
    auto_archive: bool = Field(
        default=False, description="Whether `forget` archives memories whose relevance has faded"
    )
    forget_below: float = Field(default=0.05, ge=0, le=1, description="Relevance below which they have")
    entity_min_salience: float = Field(
        default=0.1, ge=0, le=1, description="Below it an entity nobody mentions is removed"
    )
    entity_idle_days: Days = Field(default=30, description="If it was not used for so long either")

    @property
    def loss_per_day(self) -> float:
        """The rate of the exponential: 0.0513 for 0.95."""
        return -math.log(self.kept_per_day)

    @property
    def confidence_loss_per_week(self) -> float:
        """The same of confidence, by the week."""
        return -math.log(self.confidence_kept_per_week)
