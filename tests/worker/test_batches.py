"""Enough is claimed of quick jobs, not too much of slow ones, and the right work runs together."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from service.domain.job import Job
from service.domain.scope import NIL_WORKSPACE
from service.runtime.resources import Resources
from service.worker import batches
from service.worker.batches import ClaimGroup
from service.worker.registry import Task

A, B = UUID(int=1), UUID(int=2)


def job(workspace: UUID = A, *, kind: str = "embed", attempts: int = 1) -> Job:
    return Job(workspace, uuid4(), kind, None, {}, attempts, 3, "w")


@pytest.mark.parametrize(
    ("pace_s", "held", "wanted"),
    [
        (5.0, 0, 4),  # slow jobs: what can start
        (5.0, 3, 1),
        (5.0, 4, 0),
        (0.02, 0, 44),  # 40 of them take 0.2 s on four slots
        (0.0001, 0, 100),
        (0.0001, 60, 0),  # half a batch is not worth a claim yet
        (0.0001, 40, 60),
        (0.0001, 3, 97),
        (5.0, 50, 0),  # quick ones became slow: no more
    ],
)
def test_room(pace_s: float, held: int, wanted: int) -> None:
    assert batches.room(slots=4, pace_s=pace_s, held=held) == wanted


def test_first_attempts_of_a_workspace_run_together() -> None:
    jobs = [job(A), job(B), job(A), job(A, attempts=2), job(NIL_WORKSPACE), job(A)]
    group = ClaimGroup(("embed",), (2,))
    assert batches.split(jobs, group) == [(jobs[3],), (jobs[4],), (jobs[0], jobs[2]), (jobs[5],), (jobs[1],)]


@pytest.mark.parametrize("group", [ClaimGroup(("embed",), (1,)), ClaimGroup(("embed",))])
def test_a_batch_of_one_is_every_job_alone(group: ClaimGroup) -> None:
    jobs = [job(), job()]
    assert batches.split(jobs, group) == [(jobs[0],), (jobs[1],)]


def test_each_kind_runs_with_its_like() -> None:
    jobs = [job(), job(kind="enrich"), job(), job(kind="enrich"), job(kind="enrich")]
    found = batches.split(jobs, ClaimGroup(("embed", "enrich"), (20, 2)))
    assert found == [(jobs[0], jobs[2]), (jobs[1], jobs[3]), (jobs[4],)]


def test_kinds_that_run_together_are_claimed_apart_from_the_others() -> None:
    async def one(_job: Job, _res: Resources) -> None: ...
    async def many(_jobs: object, _res: Resources) -> None: ...

    tasks = {"a": Task(one), "b": Task(one, together=many), "c": Task(one), "d": Task(one, together=many, max_batch=50)}
    assert batches.claim_groups(tasks, 20) == [ClaimGroup(("a", "c")), ClaimGroup(("b", "d"), (20, 50))]
    assert batches.claim_groups({"b": tasks["b"]}, 20) == [ClaimGroup(("b",), (20,))]
    assert [each.limit for each in batches.claim_groups(tasks, 20)] == [None, 50]


@pytest.mark.parametrize(
    ("of_a", "of_b", "limit", "cut_off"),
    [
        (0, 0, 10, False),
        (1, 0, 10, False),
        (10, 0, 10, True),
        (1, 0, 1, True),
        (5, 1, 10, True),  # each of two lanes gives five, so the first may have more
        (4, 4, 10, False),
        (3, 2, 5, True),
    ],
)
def test_a_claim_that_was_not_cut_off_left_nothing(of_a: int, of_b: int, limit: int, *, cut_off: bool) -> None:
    jobs = [job(A) for _ in range(of_a)] + [job(B) for _ in range(of_b)]
    assert batches.may_have_left_some(jobs, limit) is cut_off
