"""The memories that hits are connected to, added to a search on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from pydantic import Field

from service.domain.memory import Hit, LeanMemory
from service.domain.query import Query
from service.domain.relation import RelationType, WalkStep
from service.http.schemas import Id, ResponseModel
from service.memories import reading
from service.runtime.resources import Resources


class ConnectedMemoryItem(ResponseModel):
    """A memory that a hit is connected to."""

    id: Id = Field(description="UUID of the connected memory")
    memory: str = Field(description="Its text", examples=["Buys tea by the kilo"])
    type: RelationType = Field(description="How the two are related", examples=["SIMILAR_TO"])
    strength: float = Field(description="0..1", examples=[0.83])


async def connected_to_hits(query: Query, hits: Sequence[Hit], res: Resources) -> dict[UUID, list[ConnectedMemoryItem]]:
    """The connected memories by hit, strongest first."""
    found = await reading.connected(query, [hit.memory.id for hit in hits], res)
    return {hit_id: connected(each, found.memories) for hit_id, each in found.steps.items()}


def connected(steps: Sequence[WalkStep], found: Mapping[UUID, LeanMemory]) -> list[ConnectedMemoryItem]:
    """Strongest first, without memories that are not in `found` because they have just been deleted."""
    return [
        ConnectedMemoryItem(
            id=step.memory_id, memory=found[step.memory_id].text, type=step.by.type, strength=step.by.strength
        )
        for step in steps
        if step.memory_id in found
    ]
