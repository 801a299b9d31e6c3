"""Relations between memories, and walks along them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field


class RelationType(StrEnum):
    """Read from source to target: the copy PROMOTED_FROM the original, the new fact SUPERSEDES the old one, or
    MAY_OUTDATE it, if that is not certain."""

    OCCURRED_BEFORE = "OCCURRED_BEFORE"
    SIMILAR_TO = "SIMILAR_TO"
    EXEMPLIFIES = "EXEMPLIFIES"
    INVALIDATED_BY = "INVALIDATED_BY"
    DERIVED_FROM = "DERIVED_FROM"
    PREFERS_OVER = "PREFERS_OVER"
    EVOLVED_INTO = "EVOLVED_INTO"
    SUPERSEDES = "SUPERSEDES"
    PROMOTED_FROM = "PROMOTED_FROM"
    RELATES_TO = "RELATES_TO"
    LEADS_TO = "LEADS_TO"
    CONTRADICTS = "CONTRADICTS"
    REINFORCES = "REINFORCES"
    PART_OF = "PART_OF"
    MAY_OUTDATE = "MAY_OUTDATE"


DRAWN_BY_THE_SERVICE = frozenset(
    {RelationType.SIMILAR_TO, RelationType.SUPERSEDES, RelationType.PROMOTED_FROM, RelationType.MAY_OUTDATE}
)
AUTHORABLE = tuple(kind for kind in RelationType if kind not in DRAWN_BY_THE_SERVICE)
"""Types that agents, and clients of AutoMem, may create."""


@dataclass(frozen=True, slots=True)
class Relation:
    """From one memory to another. `strength` 0..1; it counts in the half-open [t_valid, t_invalid), open where None."""

    source_id: UUID
    type: RelationType
    target_id: UUID
    strength: float = 1.0
    properties: Mapping[str, Any] = field(default_factory=dict)
    t_valid: datetime | None = None
    t_invalid: datetime | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConnectedMemoryItem:
    """A memory that a hit is connected to."""

    id: Annotated[UUID, Field(description="UUID of the connected memory")]
    memory: Annotated[str, Field(description="Its text", examples=["Buys tea by the kilo"])]
    type: Annotated[RelationType, Field(description="How the two are related", examples=["SIMILAR_TO"])]
    strength: Annotated[float, Field(description="0..1", examples=[0.83])]

    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """A walk of at most `depth` edges (1..3), over the `fan_out` strongest edges of a node, to `limit` memories."""

    depth: int
    limit: int
    fan_out: int = 50
    types: tuple[RelationType, ...] = ()
    include_archived: bool = False


@dataclass(frozen=True, slots=True)
class WalkStep:
    """A memory that a walk reached: its distance from the start (1 is next to it), and the edge that led to it."""

    memory_id: UUID
    depth: int
    by: Relation


@dataclass(frozen=True, slots=True)
class Walk:
    """Memories in the order of the walk; `truncated` if a node had more edges, or there were more memories, than the
    limits allow."""

    steps: tuple[WalkStep, ...]
    truncated: bool
