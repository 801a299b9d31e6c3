"""Late vectors of goals, strategies and entities that were written while the embedder was unavailable.

A verb that writes one without a vector queues a job in the same transaction. The job embeds all of its workspace that
still wait, so a second one finds nothing to do. It has many attempts: a provider may be unavailable for a day.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from service.cognition.statements import goals, strategies
from service.graph.statements import entities
from service.graph.statements.late_vectors import LateVectors
from service.runtime.late_vectors import ENTITIES, GOALS, STRATEGIES
from service.runtime.resources import Resources

BATCH = 100


KINDS: Mapping[str, LateVectors] = MappingProxyType(
    {GOALS: goals.LATE_VECTORS, STRATEGIES: strategies.LATE_VECTORS, ENTITIES: entities.LATE_VECTORS}
)


async def embed_missing(workspace_id: UUID, kind: str, res: Resources) -> int:
    """How many got the vector they lacked, of the words they have now. Safe to run twice. Raises EmbeddingError."""
    rows, made = KINDS[kind], 0
    while True:
        async with res.db.read(workspace_id) as session:
            waiting = await rows.unembedded(session, workspace_id, generation=res.generation, limit=BATCH)
        if not waiting:
            return made
        vectors = await res.embedder.embed(workspace_id, list(waiting.values()))
        found = {each: (words, vector) for (each, words), vector in zip(waiting.items(), vectors, strict=True)}
        async with res.db.begin(workspace_id) as session:
            made += await rows.store(session, workspace_id, found, generation=res.generation)
