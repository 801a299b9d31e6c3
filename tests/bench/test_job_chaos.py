"""One round of kill -9 for some kinds of jobs, the ways in turn. All of them: make job-chaos ROUNDS=30."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import job_cases
from bench.job_chaos import difference
from service.worker.registry import TASKS
from tests.thorough import THOROUGH

ROOT = Path(__file__).parents[2]
OFTEN = ("enrich", "consolidate", "promote")
TRIED = OFTEN if not THOROUGH else (*OFTEN, "forget_scope", "relevance", "cleanup")


def test_every_job_is_disturbed() -> None:
    """A new name needs a case in bench/job_cases.py: a function that gives the job something to do. A new generation of
    vectors concerns the whole service: tests/upkeep/test_reembed.py kills its workers."""
    assert {case.split()[0] for case in job_cases.CASES} == set(TASKS) - {"reembed"}


def test_what_differs_is_told() -> None:
    expected, found = ["history: ADD|a", "memory: a"], ["history: ADD|a", "history: ADD|a", "memory: a"]
    assert difference(expected, expected) == ""
    assert difference(expected, found) == "1 lines differ: +history: ADD|a"


@pytest.mark.timeout(300)
def test_disturbed_jobs_end_as_if_undisturbed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.job_chaos", "--rounds", "1", "--seed", "2", "--only", *TRIED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=290,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "all ended as if undisturbed" in done.stdout
    assert done.stdout.count(" 0 wrong ") == len(TRIED)
