"""How much is claimed at once, and what of it runs as one?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from service.domain.job import Job
from service.domain.scope import NIL_WORKSPACE
from service.jobs.registry import Task

AHEAD_S = 0.2  # claimed ahead: what can be started within this time ...
AHEAD_MAX = 96  # ... and no more than this

Unit = tuple[Job, ...]
"""Jobs of one kind that run as one."""


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds of work that one call claims; a `together` kind has a call of its own, for a batch."""

    kinds: tuple[str, ...]
    together: bool


def groups(tasks: Mapping[str, Task]) -> list[Group]:
    """The claims of a round: one for everything that runs alone, one for each kind that runs together."""
    single = tuple(name for name, task in tasks.items() if task.together is None)
    joint = [Group((name,), True) for name, task in tasks.items() if task.together is not None]
    return [Group(single, False), *joint] if single else joint


def units(jobs: Sequence[Job], batch: int) -> list[Unit]:
    """First attempts in one workspace, at most `batch` together; all others, and the system's, each alone."""
    alone: list[Unit] = []
    joint: dict[UUID, list[Job]] = {}
    for job in jobs:
        if batch > 1 and job.attempts == 1 and job.workspace_id != NIL_WORKSPACE:
            joint.setdefault(job.workspace_id, []).append(job)
        else:
            alone.append((job,))
    together = [
        tuple(found[start : start + batch]) for found in joint.values() for start in range(0, len(found), batch)
    ]
    return alone + together


def cut_off(jobs: Sequence[Job], limit: int) -> bool:
    """Whether a claim of at most `limit` may have left due jobs behind: every lane gives no more than its share. What
    another worker held meanwhile is its to start, or the next poll's to find."""
    lanes = Counter((job.workspace_id, job.kind) for job in jobs)
    return bool(lanes) and max(lanes.values()) >= -(-limit // len(lanes))


def room(*, slots: int, pace_s: float, held: int) -> int:
    """How many units to claim now, 0 for none. `pace_s`: seconds a job takes.

    Slow jobs are claimed when a slot is free. Quick ones are claimed ahead, and only when half the stock is used up:
    a claim costs as much as a hundred of them.
    """
    capacity = slots + min(AHEAD_MAX, int(slots * AHEAD_S / pace_s))
    free = max(0, capacity - held)
    return free if held < slots or free > capacity // 2 else 0
