"""A few rounds of kill -9 under load: nothing lost, doubled or half done. More of them: make chaos ROUNDS=200."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.thorough import many

ROOT = Path(__file__).parents[2]
ROUNDS = many(4, 8)


@pytest.mark.timeout(300)  # 40 s on an idle machine, most of it starts
def test_nothing_is_lost_when_processes_are_killed() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "bench.chaos",
            "--rounds",
            str(ROUNDS),
            "--seed",
            "3",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=290,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "nothing lost, doubled or half done" in done.stdout
    assert done.stdout.count("back after") == ROUNDS
