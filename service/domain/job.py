"""Jobs: work that is done after the answer, and how an attempt at it ended.

A job is written by the transaction that causes it. `priority` orders the jobs of one kind in one workspace: the
smaller runs first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from service.domain.access import NO_WALL, Wall

WorkspaceJobName = Literal["relevance", "decay", "flag_stale", "forget", "promote", "patterns", "consolidate"]
"""Jobs that run for each workspace in which they are due, also on request."""

WORKSPACE_JOBS: Sequence[WorkspaceJobName] = get_args(WorkspaceJobName)

SystemJobName = Literal["embed", "count_terms", "audit_partitions", "cleanup", "sweep_working", "reembed"]
"""Jobs that recur for the whole service."""

JobName = Literal[WorkspaceJobName, SystemJobName, "enrich", "ingest", "forget_scope", "vacuum", "deliver_webhook"]
"""Every kind of job; worker/registry.py has the task of each."""

JobState = Literal["queued", "running", "failed", "dead", "done", "cancelled"]
"""States as shown to people. `failed` waits for another attempt, `dead` for a person; both waiting states are `ready`
in the queue."""


def _check_interval(minutes: float) -> float:
    if 0 < minutes < SHORTEST_MIN:
        raise ValueError(f"must be at least {SHORTEST_MIN}, or 0 for never")
    return minutes


SHORTEST_MIN = 15
"""The interval at which the service looks for due jobs."""

FLAG_STALE_MIN = 1_440.0

Minutes = Annotated[float, Field(ge=0, le=44_640), AfterValidator(_check_interval)]


class JobIntervals(BaseModel):
    """Minutes between the runs of each job that runs for each workspace; 0: only on request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    relevance: Minutes = 60
    decay: Minutes = 1_440
    forget: Minutes = 0
    promote: Minutes = 60
    patterns: Minutes = 60
    consolidate: Minutes = 15

    def of(self, job: JobName) -> float:
        """The minutes between runs of this job, 0 for one that workspaces do not have; memories are flagged as stale
        once a day."""
        return FLAG_STALE_MIN if job == "flag_stale" else float(getattr(self, job, 0))


RunReason = Literal["schedule", "request"]
Payload = Mapping[str, object]
Counts = Mapping[str, int]
"""Counts of a run, stored with its job: {"dropped": 2}."""

MAX_ATTEMPTS = 3
LONG_MAX_ATTEMPTS = 150
"""Attempts for work of hours, during which the worker may be replaced or the model be unavailable: with the longest
wait of service/worker/recorder.py, 10 minutes, about a day."""
NOTHING: Payload = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to be done once its transaction commits, not before `run_after` (the server's clock; None: at once)."""

    kind: JobName
    memory_id: UUID | None = None
    payload: Payload = field(default_factory=lambda: NOTHING)
    run_after: datetime | None = None
    max_attempts: int = field(default_factory=lambda: MAX_ATTEMPTS)
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job. `worker` and `attempts` are its fence: they must still be in the row when it is finished.

    `attempts` counts this one. `waited_s`: seconds between the moment it was due and the claim. `wall`: of the request
    that caused it, directly or through another job.
    """

    workspace_id: UUID
    id: UUID
    kind: str
    memory_id: UUID | None
    payload: Payload
    attempts: int
    max_attempts: int
    worker: str
    waited_s: float = 0.0
    wall: Wall = NO_WALL

    @property
    def is_last_attempt(self) -> bool:
        return self.attempts >= self.max_attempts


@dataclass(frozen=True, slots=True)
class Ending:
    """How one attempt ended: `done`; `ready` again after `delay_s`; `dead`, for a person to look at.

    `counted=False` takes the attempt back: the worker gave the job back, the job did not fail.
    """

    job: Job
    state: Literal["done", "ready", "dead"]
    delay_s: float = 0.0
    error: str | None = None
    counts: Counts | None = None
    counted: bool = True


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as shown to people. `reason`: why its last attempt failed. `progress`: done and total of a long one.
    `begun_s`: seconds since its first attempt began."""

    id: UUID
    name: str
    state: JobState
    reason: str | None
    memory_id: UUID | None
    conversation_id: str | None
    operation_id: str | None
    attempts: int
    max_attempts: int
    created_at: datetime
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: Mapping[str, Any] | None
    age_s: float
    begun_s: float | None
