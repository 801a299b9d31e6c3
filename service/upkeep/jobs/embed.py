"""Deferred vectors of memories, turns, contexts, goals, strategies and entities, always of their current text.

Up to 20 jobs of a workspace that are due when a worker is free share one call of the embedder; a single job never waits
for others. No transaction is open during the call. Every 5 minutes a sweep queues memories without a job, so none waits
for ever because its job died while the provider was unavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from uuid import UUID

from sqlalchemy import ColumnElement, true

from service.cognition.statements import goals, strategies
from service.conversations.statements import contexts, turns
from service.conversations.statements.turns import TURNS_OF
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.graph.statements import entities
from service.memories.statements import enrichment
from service.postgres.tables import TURN
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.statements.deferred_vectors import WORDS_OF, DeferredVectors
from service.upkeep.statements import missing_vectors
from service.upkeep.statements.missing_vectors import BATCH, Find, Store

QUIET_S = 300.0  # a memory younger than that has its own job under way
SWEEP_LIMIT = 1_000  # jobs one sweep adds; the next one goes on

KINDS: Mapping[str, DeferredVectors] = MappingProxyType(
    {each.kind: each for each in (goals.LATE_VECTORS, strategies.LATE_VECTORS, entities.LATE_VECTORS)}
)


async def run(job: Job, res: Resources) -> Counts | None:
    """Embeds one memory, the turns of a conversation, goals or strategies; a job that names none of these is the
    sweep."""
    if job.memory_id is None and not {TURNS_OF, WORDS_OF} & job.payload.keys():
        return await sweep(res)
    await run_together([job], res)
    return None


async def run_together(jobs: Sequence[Job], res: Resources) -> None:
    """Embeds the memories of `jobs`, all of one workspace. One whose text changes in between has another job."""
    workspace_id = jobs[0].workspace_id
    for conversation_id in {str(job.payload[TURNS_OF]) for job in jobs if TURNS_OF in job.payload}:
        await embed_missing(turns.LATE_VECTORS, workspace_id, res, TURN.c.conversation_id == UUID(conversation_id))
    for kind in {str(job.payload[WORDS_OF]) for job in jobs if WORDS_OF in job.payload}:
        await embed_missing(KINDS[kind], workspace_id, res)
    of_contexts, of_texts = list[UUID](), list[UUID]()  # a memory may have a job of each kind
    for job in jobs:
        if job.memory_id is not None:
            (of_contexts if contexts.PAYLOAD.items() <= job.payload.items() else of_texts).append(job.memory_id)
    if of_contexts:
        await _embed(workspace_id, partial(contexts.embedded_texts, ids=of_contexts), contexts.store, res)
    if of_texts:
        await _embed(workspace_id, partial(enrichment.list_unembedded, ids=of_texts), enrichment.store_vectors, res)


async def embed_missing(
    rows: DeferredVectors, workspace_id: UUID, res: Resources, where: ColumnElement[bool] | None = None
) -> None:
    """Makes missing vectors of the current texts; `where`: only of rows that meet this condition. Safe to run twice.
    Raises EmbeddingError."""
    condition = true() if where is None else where
    find = partial(rows.unembedded, where=condition, generation=res.generation, limit=BATCH)
    while await _embed(workspace_id, find, rows.store, res):
        pass


async def _embed(workspace_id: UUID, find: Find, store: Store, res: Resources) -> bool:
    """Makes the vectors of some texts, with no transaction open during the call; False if there are none."""
    async with res.db.read(workspace_id) as session:
        texts = await find(session)
    if not texts:
        return False
    vectors = await res.embedder.embed(workspace_id, list(texts.values()))
    made = {key: (text, vector) for (key, text), vector in zip(texts.items(), vectors, strict=True)}
    async with res.db.begin(workspace_id, background=True) as session:
        await store(session, made, generation=res.generation)
    return True


async def sweep(res: Resources) -> Counts:
    """Queues memories that have neither a vector nor a job to make it; returns how many."""
    async with res.db.read(NIL_WORKSPACE) as session:
        missing = sorted(await missing_vectors.list_unembedded(session, quiet_s=QUIET_S, limit=SWEEP_LIMIT))
    queued = 0
    for workspace_id, group in groupby(missing, key=itemgetter(0)):
        async with res.db.begin(workspace_id) as session:
            queued += await queue.enqueue_embeds(session, [memory_id for _, memory_id in group])
    return {"queued": queued}
