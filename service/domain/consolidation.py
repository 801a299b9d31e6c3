"""When facts are read from conversations that were kept as they were said."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Consolidation(BaseModel):
    """Of a workspace. docs/decisions/060-consolidation.md"""

    model_config = ConfigDict(frozen=True, extra="forbid")

    auto_consolidate: bool = Field(default=True, description="Whether `consolidate` runs by the clock")
    consolidate_interval_min: float = Field(default=15, ge=15, le=44_640, description="Minutes between its runs")
    quiet_min: float = Field(
        default=10, ge=0, le=44_640, description="Minutes after its last turn before a conversation is read"
    )
