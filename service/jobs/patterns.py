"""Learning by the clock: which sequences of tools worked in several conversations of the same type of task.

What is learned goes through the verb of the route, which counts a conversation once. So a run that dies, is repeated
or meets another one counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

from service.db.cognition import tool_patterns
from service.db.cognition.tool_patterns import UnreadConversation
from service.db.jobs import queue
from service.domain import patterns as rules
from service.domain.job import Counts, Job
from service.domain.patterns import TaskUses
from service.domain.request import WriteContext
from service.domain.scope import NIL_WORKSPACE
from service.errors import InvalidInput, NotFound
from service.jobs import workspaces
from service.memory.procedures import NewStrategy, learn
from service.resources import Resources

FIRST = UUID(int=0)
AT_ONCE = 100


async def patterns(job: Job, res: Resources) -> Counts:
    """Learns strategies from conversations that are over and not marked yet, and marks them."""
    if job.workspace_id == NIL_WORKSPACE:
        return await workspaces.start("patterns", res)
    own = await workspaces.with_own_settings(job, res)
    quiet_since = own.clock() - timedelta(minutes=own.settings.patterns.quiet_min)
    ids, context = asdict(workspaces.scope_of(job)), workspaces.context_of(job)
    seen = learned = 0
    last: UUID | None = FIRST
    while last is not None:
        async with own.db.read(job.workspace_id) as session:
            batch = await tool_patterns.unread(
                session, job.workspace_id, ids, after=last, quiet_since=quiet_since, batch=AT_ONCE
            )
        for each in batch:
            async with own.db.read(job.workspace_id) as session:
                uses = await tool_patterns.uses(session, each, quiet_since=quiet_since)
            learned += await _learn(each, uses, own, context)
            async with own.db.begin(job.workspace_id) as session:
                await tool_patterns.mark(session, each)
                seen += 1
                await queue.advance(session, job, seen, seen)
        last = batch[-1].id if len(batch) == AT_ONCE else None
    return {"conversations": seen, "learned": learned}


async def _learn(
    conversation: UnreadConversation, uses: Sequence[TaskUses], res: Resources, context: WriteContext
) -> int:
    """Counts the sequences of this conversation, where enough conversations share them; returns how many strategies
    are new."""
    new = 0
    for each in [own for own in uses if own.conversation_id == conversation.id]:
        for shared in rules.sharing(each, uses, at_least=res.settings.patterns.min_conversations):
            if shared.is_counted:
                continue
            wanted = NewStrategy(
                conversation.owner,
                rules.description(shared.sequence),
                context_pattern=shared.task_type,
                task_type=shared.task_type,
                tool_sequence=shared.sequence,
                success=shared.succeeded,
                from_conversation_id=shared.conversation_id,
                once=True,
            )
            try:
                new += (await learn(wanted, res, context)).is_new
            except (NotFound, InvalidInput):  # erased meanwhile, or a name that must not be stored
                continue
    return new
