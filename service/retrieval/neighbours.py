"""Reads the memories that hits are connected to, after the search and only on request.

They obey the scope, channels and validity of the query, but need not answer it.
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
class ConnectedMemories:
    """The strongest edges of each hit, and the memories at their other ends."""

    steps: Mapping[UUID, list[WalkStep]]
    memories: Mapping[UUID, Memory]


async def of_hits(query: Query, hits: Sequence[Hit], res: Resources) -> ConnectedMemories:
    """Returns at most `settings.recall_relation_limit` edges of each hit."""
    now, workspace_id = res.clock(), query.scope.workspace_id
    unfiltered = replace(
        query, narrow=Narrow(valid_at=query.narrow.valid_at, without=query.narrow.without), window=EVER
    )
    rows = scopes.matching("m", query.scope, query.channels) & visibility.rows("m", unfiltered, now)
    ids = [hit.memory.id for hit in hits]
    async with res.db.snapshot(workspace_id) as session:
        each = res.settings.recall_relation_limit
        steps = await edges.connected(session, workspace_id, ids, rows, each=each, now=now)
        ends = {step.memory_id for found in steps.values() for step in found}
        return ConnectedMemories(steps, await memories.get_many(session, workspace_id, list(ends)))
