"""The number of jobs to claim, and the batches in which they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.domain.job import Job
from service.domain.scope import NIL_WORKSPACE
from service.queue.statements.queue import Lane
from service.worker.registry import Task

AHEAD_S = 0.2  # jobs are claimed ahead if they can be started within this time ...
AHEAD_MAX = 96  # ... up to this number

Batch = tuple[Job, ...]
"""Jobs of one kind that run together."""


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """Kinds of work that are claimed together. `batch_sizes`: the largest batch of each kind; empty for kinds that run
    alone. `at_most_half`: they use at most half of the slots."""

    kinds: tuple[str, ...]
    batch_sizes: tuple[int, ...] = ()
    at_most_half: bool = False

    @property
    def limit(self) -> int | None:
        """The number of jobs per claim; None: as many as there is room for."""
        return max(self.batch_sizes, default=None)

    def batch_size(self, kind: str) -> int:
        """The batch size of a kind."""
        return dict(zip(self.kinds, self.batch_sizes, strict=False)).get(kind, 1)


def claim_groups(tasks: Mapping[str, Task], batch_size: int) -> list[ClaimGroup]:
    """The claims of a round: one for kinds that run alone, one for those limited to half of the slots, one for those
    that run together, with `batch_size` unless the task sets another size."""
    alone = tuple(name for name, task in tasks.items() if task.together is None and not task.at_most_half)
    half = tuple(name for name, task in tasks.items() if task.at_most_half)
    joint = {name: task.max_batch or batch_size for name, task in tasks.items() if task.together is not None}
    groups = [ClaimGroup(alone), ClaimGroup(half, at_most_half=True), ClaimGroup(tuple(joint), tuple(joint.values()))]
    return [group for group in groups if group.kinds]


def split(jobs: Sequence[Job], group: ClaimGroup) -> list[Batch]:
    """Batches of first attempts of one kind and workspace; retries and jobs of the system run alone."""
    alone: list[Batch] = []
    joint: dict[Lane, list[Job]] = {}
    for job in jobs:
        if group.batch_size(job.kind) > 1 and job.attempts == 1 and job.workspace_id != NIL_WORKSPACE:
            joint.setdefault((job.workspace_id, job.kind), []).append(job)
        else:
            alone.append((job,))
    together = []
    for (_, kind), grouped in joint.items():
        size = group.batch_size(kind)
        together += [tuple(grouped[start : start + size]) for start in range(0, len(grouped), size)]
    return alone + together


def may_have_left_some(jobs: Sequence[Job], limit: int) -> bool:
    """Whether a claim of at most `limit` may have left due jobs, since no lane gives more than its share. Jobs locked
    by another worker are run by it, or found by the next poll."""
    lanes = Counter((job.workspace_id, job.kind) for job in jobs)
    return bool(lanes) and max(lanes.values()) >= -(-limit // len(lanes))


def room(*, slots: int, pace_s: float, held: int) -> int:
    """The number of batches to claim now. `pace_s`: seconds per batch.

    Slow jobs are claimed when a slot is free. Quick ones are claimed ahead, but only when half the stock is used up,
    because a claim costs as much as a hundred of them.
    """
    capacity = slots + min(AHEAD_MAX, int(slots * AHEAD_S / pace_s))
    free = max(0, capacity - held)
    return free if held < slots or free > capacity // 2 else 0
