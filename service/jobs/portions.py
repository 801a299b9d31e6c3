"""How much is claimed at once, and what of it runs as one?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.db.jobs.queue import Lane
from service.domain.job import Job
from service.domain.scope import NIL_WORKSPACE
from service.jobs.registry import Task

AHEAD_S = 0.2  # claimed ahead: what can be started within this time ...
AHEAD_MAX = 96  # ... and no more than this

Unit = tuple[Job, ...]
"""Jobs of one kind that run as one."""


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds of work that one call claims. `batches`: of those that run together how many at most; empty for those that
    run alone."""

    kinds: tuple[str, ...]
    batches: tuple[int, ...] = ()

    @property
    def limit(self) -> int | None:
        """How many jobs a call claims; None: as many as there is room for."""
        return max(self.batches, default=None)

    def batch(self, kind: str) -> int:
        """How many jobs of this kind make a unit."""
        return dict(zip(self.kinds, self.batches, strict=False)).get(kind, 1)


def groups(tasks: Mapping[str, Task], batch: int) -> list[Group]:
    """The claims of a round: one for everything that runs alone, one for what runs together, `batch` at once unless
    the task says another number."""
    alone = tuple(name for name, task in tasks.items() if task.together is None)
    joint = {name: task.most or batch for name, task in tasks.items() if task.together is not None}
    found = [Group(alone), Group(tuple(joint), tuple(joint.values()))]
    return [each for each in found if each.kinds]


def units(jobs: Sequence[Job], group: Group) -> list[Unit]:
    """First attempts of a kind in one workspace, a batch of them together; all others, and the system's, each alone."""
    alone: list[Unit] = []
    joint: dict[Lane, list[Job]] = {}
    for job in jobs:
        if group.batch(job.kind) > 1 and job.attempts == 1 and job.workspace_id != NIL_WORKSPACE:
            joint.setdefault((job.workspace_id, job.kind), []).append(job)
        else:
            alone.append((job,))
    together = []
    for (_, kind), found in joint.items():
        batch = group.batch(kind)
        together += [tuple(found[start : start + batch]) for start in range(0, len(found), batch)]
    return alone + together


def cut_off(jobs: Sequence[Job], limit: int) -> bool:
    """Whether a claim of at most `limit` may have left due jobs behind: every lane gives no more than its share. What
    another worker held meanwhile is its to start, or the next poll's to find."""
    lanes = Counter((job.workspace_id, job.kind) for job in jobs)
    return bool(lanes) and max(lanes.values()) >= -(-limit // len(lanes))


def room(*, slots: int, pace_s: float, held: int) -> int:
    """How many units to claim now, 0 for none. `pace_s`: seconds a unit takes.

    Slow jobs are claimed when a slot is free. Quick ones are claimed ahead, and only when half the stock is used up:
    a claim costs as much as a hundred of them.
    """
    capacity = slots + min(AHEAD_MAX, int(slots * AHEAD_S / pace_s))
    free = max(0, capacity - held)
    return free if held < slots or free > capacity // 2 else 0
