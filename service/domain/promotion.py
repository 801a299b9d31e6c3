"""When what was learned in one channel becomes known in all of them, without anybody asking for it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Promoting(BaseModel):
    """Of a workspace. All of the thresholds must be met. docs/decisions/061-promotion.md"""

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
