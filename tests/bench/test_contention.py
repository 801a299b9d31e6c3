"""Clients that write, change, delete and purge the same two users. More of it: make contention."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.thorough import THOROUGH, many

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("policy", ["in_place", "supersede"] if THOROUGH else ["in_place"])
def test_nothing_is_lost_and_no_purged_word_is_left(policy: str) -> None:
    seconds = many(3, 120)
    done = subprocess.run(
        [sys.executable, "-m", "bench.contention", "--seconds", str(seconds), "--seed", "3", "--policy", policy],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=390,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "all is well" in done.stdout
