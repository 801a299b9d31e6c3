"""Scheduled learning of sequences of tools that worked in several conversations of the same type of task.

Strategies are learned by the verb of the route, which counts a conversation once, so interrupted, repeated or
concurrent runs count nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from service.access import workspace_jobs
from service.cognition.procedures import learn
from service.cognition.statements import learning
from service.cognition.statements.learning import TaskUses
from service.cognition.values import LearnStrategyRequest
from service.domain.errors import InvalidInput, NotFound
from service.domain.job import Counts, Job
from service.domain.relation import Relation, RelationType
from service.domain.request import Call
from service.domain.scope import NIL_ID, Scope
from service.language import pattern_examples
from service.memories.associate import associate
from service.queue.statements import queue
from service.runtime.resources import Resources

OVERLAP = timedelta(minutes=10)
"""The next run reads again what was written while the last one was reading."""

QUIET = timedelta(minutes=30)
"""After this long without a tool a conversation is considered over."""

MIN_CONVERSATIONS = 2
"""The number of conversations in which a sequence of tools must have worked: once may be luck."""

MIN_STEPS, MAX_STEPS = 2, 20
"""A single tool is not a procedure; in a longer sequence it is unclear what mattered."""

BATCH_ROWS = 100


async def patterns(job: Job, res: Resources) -> Counts:
    """Learns strategies from conversations that are over and not marked yet, and marks them."""
    quiet_since = res.clock() - QUIET
    call = workspace_jobs.call_of(job)
    seen = learned = 0
    last: UUID | None = NIL_ID
    while last is not None:
        async with res.db.read(job.workspace_id) as session:
            batch = await learning.list_unread(session, after=last, quiet_since=quiet_since, batch=BATCH_ROWS)
        by_owner: dict[Scope, list[UUID]] = {}
        for conversation in batch:
            by_owner.setdefault(conversation.owner, []).append(conversation.id)
        for owner, ids in by_owner.items():
            async with res.db.read(job.workspace_id) as session:
                uses = await learning.list_uses(session, owner, ids, quiet_since=quiet_since)
            learned += await _learn(owner, _find_uncounted(uses, ids), res, call)
        for conversation in batch:
            async with res.db.begin(job.workspace_id) as session:
                await learning.mark(session, conversation)
                seen += 1
                await queue.advance(session, job, seen, seen)
        last = batch[-1].id if len(batch) == BATCH_ROWS else None
    return {"conversations": seen, "learned": learned, **await _exemplify(job.workspace_id, res, call)}


async def _exemplify(workspace_id: UUID, res: Resources, call: Call) -> Counts:
    """Draws EXEMPLIFIES from memories of an instance to the memory of the pattern. Counts the edges; `examples_until`
    is the time (seconds since 1970) up to which memories were read, where the next run continues."""
    now, drawn = res.clock(), 0
    last: UUID | None = NIL_ID
    async with res.db.read(workspace_id) as session:
        since = await learning.read_examples_until(session) - OVERLAP
    while last is not None:
        async with res.db.read(workspace_id) as session:
            candidates = await learning.list_candidates(session, after=last, since=since, now=now)
        pairs = [(candidate.example or "", candidate.pattern) for candidate in candidates]
        shares = await res.rules.run(lambda pairs: [pattern_examples.share(*pair) for pair in pairs], pairs)
        for candidate, share in zip(candidates, shares, strict=True):
            if candidate.example_id is not None and share is not None:
                drawn += await _draw(workspace_id, candidate.example_id, candidate.pattern_id, share, res, call)
        ids = dict.fromkeys(candidate.pattern_id for candidate in candidates)
        last = max(ids) if len(ids) == learning.PATTERNS_AT_ONCE else None
    return {"examples": drawn, "examples_until": int(now.timestamp())}


async def _draw(workspace_id: UUID, example: UUID, pattern: UUID, share: float, res: Resources, call: Call) -> int:
    """Draws the edge from an example to its pattern; 0 if either no longer exists."""
    edge = Relation(example, RelationType.EXEMPLIFIES, pattern, round(share, 4), {"extracted_by": "rules"})
    try:
        _, is_new = await associate(workspace_id, edge, res, call)
    except (NotFound, InvalidInput):
        return 0
    return int(is_new)


async def _learn(owner: Scope, uses: Iterable[TaskUses], res: Resources, call: Call) -> int:
    """Counts these uses of an owner; returns the number of new strategies."""
    new = 0
    for use in uses:
        strategy = LearnStrategyRequest.model_validate(
            {
                "description": ", then ".join(use.sequence),  # its tools, since nothing else was observed
                "context_pattern": use.task_type,
                "task_type": use.task_type,
                "tool_sequence": use.sequence,
                "success": use.succeeded,
                "from_conversation_id": use.conversation_id,
            }
        )
        with suppress(NotFound, InvalidInput):  # just erased, or a name that must not be stored
            new += (await learn(owner, strategy, res, call, once=True))[1]
    return new


def _find_uncounted(uses: Sequence[TaskUses], unread: Sequence[UUID]) -> Iterator[TaskUses]:
    """The uses that no strategy has counted, of sequences for a task that one of the unread conversations has and that
    worked in at least MIN_CONVERSATIONS."""
    by_sequence: dict[tuple[str, ...], list[TaskUses]] = {}
    for use in uses:
        if MIN_STEPS <= len(use.sequence) <= MAX_STEPS:
            by_sequence.setdefault((use.task_type, *use.sequence), []).append(use)
    for same in by_sequence.values():
        is_new = any(use.conversation_id in unread for use in same)
        if is_new and sum(use.succeeded for use in same) >= MIN_CONVERSATIONS:
            yield from (use for use in same if not use.is_counted)
