"""When memories and conversations count as unused, and when a memory of one channel is promoted to all of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Days = Annotated[float, Field(gt=0, le=36_500)]
DECAYING_BELOW = 0.25
"""Relevance below which a memory is decaying: 27 days without use."""

INFERRED_AT_MOST = 0.7
"""Facts of at most this confidence were inferred, not said plainly; their confidence fades."""


class Ageing(BaseModel):
    """The ageing settings of a workspace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stale_after_days: Days = Field(default=90, description="Days without use after which a memory is stale")
    conversation_archive_days: Days = Field(
        default=90, description="Days without a new turn after which a conversation is archived"
    )


class Promoting(BaseModel):
    """Thresholds of a workspace; all must be met. See docs/decisions/061-promotion.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_confidence: float = Field(
        default=0.85, ge=0, le=1, description="Minimum confidence of the fact, or of its type if the fact has none"
    )
    min_access_count: int = Field(default=5, ge=0, le=1_000_000, description="Minimum number of uses")
    min_conversations: int = Field(
        default=2, ge=0, le=1_000, description="Minimum number of conversations it was said in"
    )
