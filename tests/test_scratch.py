"""Nothing stays in the temporary folder: not after a stop, and after a kill not longer than until the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

USES = """
import asyncio, sys
from service.rule_processes import RuleProcesses

async def main():
    processes = RuleProcesses(1)
    await processes.run(abs, -1)
    print("started", flush=True)
    sys.stdin.read()
    processes.close()

asyncio.run(main())
"""


def started(folder: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-c", USES], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def test_what_a_kill_leaves_is_removed_by_the_next_start(tmp_path: Path) -> None:
    killed, other = started(tmp_path), started(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    time.sleep(0.1)
    next_one = started(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2, "of the two that live"
    for each in (other, next_one):
        each.communicate()
        assert each.returncode == 0
    assert list(tmp_path.iterdir()) == []
