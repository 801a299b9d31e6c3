"""Short forms of `make chaos`, `make contention` and `make job-chaos`: nothing is lost, doubled or half done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import job_cases
from bench.job_chaos import difference
from service.worker.registry import TASKS
from tests.thorough import THOROUGH, many

ROOT = Path(__file__).parents[2]
KILLS = many(4, 8)
KINDS = ("enrich", "consolidate", "promote", *(("forget_scope", "relevance", "cleanup") if THOROUGH else ()))
AT_ONCE = ("contention", "--seconds", str(many(3, 120)), "--seed", "3", "--policy")
RUNS = {
    "processes are killed": (("chaos", "--rounds", str(KILLS), "--seed", "3"), "back after", KILLS),
    "changes in place at once": ((*AT_ONCE, "in_place"), "all is well", 1),
    **({"superseding at once": ((*AT_ONCE, "supersede"), "all is well", 1)} if THOROUGH else {}),
    "jobs are disturbed": (("job_chaos", "--rounds", "1", "--seed", "2", "--only", *KINDS), " 0 wrong ", len(KINDS)),
}
"""What to run, and what it prints how often."""


@pytest.mark.timeout(400)
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_nothing_is_lost(run: tuple[tuple[str, ...], str, int]) -> None:
    (program, *words), printed, times = run
    command = [sys.executable, "-m", f"bench.{program}", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=390, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert done.stdout.count(printed) == times, done.stdout


def test_every_job_is_disturbed() -> None:
    """A new name needs a case in bench/job_cases.py: a function that gives the job something to do. A new generation of
    vectors concerns the whole service: tests/upkeep/test_reembed.py kills its workers."""
    assert {case.split()[0] for case in job_cases.CASES} == set(TASKS) - {"reembed"}


def test_what_differs_is_told() -> None:
    expected, found = ["history: ADD|a", "memory: a"], ["history: ADD|a", "history: ADD|a", "memory: a"]
    assert difference(expected, expected) == ""
    assert difference(expected, found) == "1 lines differ: +history: ADD|a"
