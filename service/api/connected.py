"""The memories that a hit is connected to, as they are shown with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from pydantic import Field

from service.api.schemas import Id, ResponseModel
from service.domain.memory import Memory
from service.domain.relation import RelationType, WalkStep


class ConnectedMemoryItem(ResponseModel):
    """A memory at the other end of an edge."""

    id: Id = Field(description="UUID of the connected memory")
    memory: str = Field(description="Its text", examples=["Buys tea by the kilo"])
    type: RelationType = Field(description="How the two are related", examples=["SIMILAR_TO"])
    strength: float = Field(description="0..1", examples=[0.83])


def connected(steps: Sequence[WalkStep], found: Mapping[UUID, Memory]) -> list[ConnectedMemoryItem]:
    """Returns the strongest first; `found` lacks memories that were deleted meanwhile."""
    return [
        ConnectedMemoryItem(
            id=step.memory_id, memory=found[step.memory_id].text, type=step.by.type, strength=step.by.strength
        )
        for step in steps
        if step.memory_id in found
    ]
