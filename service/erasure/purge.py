"""Purge: erases a memory or a subject so that nothing of it can be read again.

One transaction covers every table with text, followed by the caches of this process. Audit entries keep only what
happened and when; the erasure's own entry has its counts and a digest of the subject, not its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from uuid import UUID

from service.conversations.statements import contexts
from service.domain.errors import NotFound
from service.domain.job import NewJob
from service.domain.request import Call
from service.domain.scope import Extent, Scope
from service.erasure.statements import purge
from service.erasure.values import PurgeReceiptResponse
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import Write, write_transaction

PROMISE = (
    "Unreachable from now on. Out of the data files once VACUUM has passed: {vacuum}. In the write-ahead log and in "
    "backups until their retention ends."
)
"""What an erasure guarantees: docs/decisions/022-erasure.md."""

BY_JOB = "a job that does it waits for the worker"
BY_ITSELF = "autovacuum does that by itself; only the owner of the tables can run it at once"


async def purge_scope(extent: Extent, res: Resources, call: Call) -> PurgeReceiptResponse:
    """Erases everything that has every given id."""
    scope = extent.scope
    named = ("scope", scope.user_id or "", scope.agent_id or "", scope.run_id or "", extent.channel or "")
    async with write_transaction(scope, res, call) as write:
        counts = await purge.purge_scope(write.session, scope, extent.channel)
        receipt = await write.answer(await receipt_of(write, named, counts))
    res.embedder.forget(scope.workspace_id)
    return receipt


async def purge_memory(workspace_id: UUID, memory_id: UUID, res: Resources, call: Call) -> PurgeReceiptResponse:
    """Erases one memory, existing or deleted. Raises NotFound for an unknown id."""
    async with res.db.read(workspace_id) as session:
        owner = await purge.owner_of(session, memory_id)
    if owner is None:
        raise NotFound.of("memory")
    async with write_transaction(owner[0], res, call) as write:
        session = write.session
        current = await purge.owner_of(session, memory_id)
        if current is None:
            raise NotFound.of("memory")
        if current[1] is not None:
            write.check_version(current[1])
        conversations = await contexts.conversations_of(session, memory_id)
        counts = await purge.purge_memories(session, [memory_id])
        await contexts.enqueue_conversations(session, conversations)  # the purge has emptied their contexts
        receipt = await write.answer(await receipt_of(write, ("memory", str(memory_id)), counts))
    res.embedder.forget(workspace_id)
    return receipt


async def receipt_of(write: Write, named: tuple[str, ...], counts: Mapping[str, int]) -> PurgeReceiptResponse:
    """The receipt of a purge, which is also in the audit log. Queues the job that cleans the data files."""
    session = write.session
    digest = hashlib.sha256("\0".join((str(session.workspace_id), *named)).encode()).hexdigest()
    may = await purge.may_vacuum(session)
    if may:
        await queue.enqueue(session, [NewJob("vacuum")])
    await write.audit("purge", Scope(session.workspace_id), [], counts=dict(counts), subject_sha256=digest)
    return PurgeReceiptResponse(
        purged=True,
        counts=dict(counts),
        subject_sha256=digest,
        purged_at=write.res.clock(),
        vacuum="queued" if may else "not_permitted",
        note=PROMISE.format(vacuum=BY_JOB if may else BY_ITSELF),
    )
