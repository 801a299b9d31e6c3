"""The memories that hits are connected to, added to a search on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from pydantic import Field

from service.domain.memory import Hit, LeanMemory
from service.domain.query import EVER, Narrow, Query
from service.domain.relation import RelationType, WalkStep
from service.graph.statements import edges
from service.http.schemas import Id, ResponseModel
from service.memories.statements import memories, visibility
from service.postgres import scopes
from service.runtime.resources import Resources


class ConnectedMemoryItem(ResponseModel):
    """A memory that a hit is connected to."""

    id: Id = Field(description="UUID of the connected memory")
    memory: str = Field(description="Its text", examples=["Buys tea by the kilo"])
    type: RelationType = Field(description="How the two are related", examples=["SIMILAR_TO"])
    strength: float = Field(description="0..1", examples=[0.83])


async def connected_to_hits(query: Query, hits: Sequence[Hit], res: Resources) -> dict[UUID, list[ConnectedMemoryItem]]:
    """At most `settings.recall_relation_limit` connected memories by hit, strongest first. They match the scope,
    channels and validity of the query, but not necessarily its text."""
    now, workspace_id = res.clock(), query.scope.workspace_id
    unfiltered = replace(
        query, narrow=Narrow(valid_at=query.narrow.valid_at, without=query.narrow.without), window=EVER
    )
    rows = scopes.matching("m", query.scope, query.channels) & visibility.conditions("m", unfiltered, now)
    ids, limit = [hit.memory.id for hit in hits], res.settings.recall_relation_limit
    async with res.db.snapshot(workspace_id) as session:
        steps = await edges.connected(session, workspace_id, ids, rows, each=limit, now=now)
        ends = {step.memory_id for each in steps.values() for step in each}
        found, _ = await memories.get_items(session, workspace_id, list(ends), "lean")
    return {hit_id: connected(each, found) for hit_id, each in steps.items()}


def connected(steps: Sequence[WalkStep], found: Mapping[UUID, LeanMemory]) -> list[ConnectedMemoryItem]:
    """Strongest first, without memories that are not in `found` because they have just been deleted."""
    return [
        ConnectedMemoryItem(
            id=step.memory_id, memory=found[step.memory_id].text, type=step.by.type, strength=step.by.strength
        )
        for step in steps
        if step.memory_id in found
    ]
