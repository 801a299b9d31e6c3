"""Deferred vectors of memories, turns, contexts, goals, strategies and entities, always of their current text.

Up to 20 jobs of a workspace that are due when a worker is free share one call of the embedder; a single job never waits
for others. No transaction is open during the call. Every 5 minutes a sweep queues memories without a job, so none waits
for ever because its job died while the provider was unavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from uuid import UUID

from service.cognition.statements import goals, strategies
from service.conversations.statements import contexts, turns
from service.conversations.statements.turns import TURNS_OF
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.graph.statements import entities
from service.memories.statements import enrichment
from service.postgres.tables import TURN
from service.postgres.vectors import as_text
from service.queue.statements import queue
from service.runtime.deferred_vectors import embed_missing
from service.runtime.resources import Resources
from service.runtime.statements.deferred_vectors import WORDS_OF, DeferredVectors
from service.upkeep.statements import missing_vectors

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
        await _embed_contexts(workspace_id, of_contexts, res)
    if not of_texts:
        return
    async with res.db.read(workspace_id) as session:
        subjects = await enrichment.list_unembedded(session, of_texts)
    if not subjects:
        return
    vectors = await res.embedder.embed(workspace_id, [subject.text for subject in subjects])
    made = {subject: as_text(vector) for subject, vector in zip(subjects, vectors, strict=True)}
    async with res.db.begin(workspace_id, background=True) as session:
        await enrichment.store_vectors(session, made, generation=res.generation)


async def _embed_contexts(workspace_id: UUID, ids: Sequence[UUID], res: Resources) -> None:
    """Embeds turns again whose neighbours changed."""
    async with res.db.read(workspace_id) as session:
        texts = await contexts.texts_of(session, ids)
    if not texts:
        return
    vectors = await res.embedder.embed(workspace_id, [text.embedded for text in texts.values()])
    made = {memory_id: (each, vector) for (memory_id, each), vector in zip(texts.items(), vectors, strict=True)}
    async with res.db.begin(workspace_id, background=True) as session:
        await contexts.store(session, made, generation=res.generation)


async def sweep(res: Resources) -> Counts:
    """Queues memories that have neither a vector nor a job to make it; returns how many."""
    async with res.db.read(NIL_WORKSPACE) as session:
        missing = sorted(await missing_vectors.list_unembedded(session, quiet_s=QUIET_S, limit=SWEEP_LIMIT))
    queued = 0
    for workspace_id, group in groupby(missing, key=itemgetter(0)):
        async with res.db.begin(workspace_id) as session:
            queued += await queue.enqueue_embeds(session, [memory_id for _, memory_id in group])
    return {"queued": queued}
