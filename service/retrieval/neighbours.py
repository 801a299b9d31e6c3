"""Which memories are the hits of a search tied to?

Beside the search, in a short read of its own, and only when asked for: what is shown obeys the question's scope,
channels and validity, but need not answer it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from service.db import scopes
from service.db.graph import edges
from service.db.memories import memories
from service.db.search import visibility
from service.domain.memory import Hit, Memory
from service.domain.query import EVER, Narrow, Query
from service.domain.relation import WalkStep
from service.resources import Resources


@dataclass(frozen=True, slots=True)
class Tied:
    """For each hit its strongest edges, and the memories they lead to."""

    steps: Mapping[UUID, list[WalkStep]]
    memories: Mapping[UUID, Memory]


async def of_hits(query: Query, hits: Sequence[Hit], res: Resources) -> Tied:
    """At most settings.recall_relation_limit for each hit (R7.09)."""
    now, workspace_id = res.clock(), query.scope.workspace_id
    anything = replace(query, narrow=Narrow(valid_at=query.narrow.valid_at, without=query.narrow.without), window=EVER)
    rows = scopes.matching("m", query.scope, query.channels) & visibility.rows("m", anything, now)
    ids = [hit.memory.id for hit in hits]
    async with res.db.snapshot(workspace_id) as session:
        each = res.settings.recall_relation_limit
        steps = await edges.connected(session, workspace_id, ids, rows, each=each, now=now)
        ends = {step.memory_id for found in steps.values() for step in found}
        return Tied(steps, await memories.get_many(session, workspace_id, list(ends)))
