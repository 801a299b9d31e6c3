"""How does one worker process run?"""

from __future__ import annotations

import asyncio
import os

from service import garbage, logs
from service.jobs.loop import run_worker
from service.settings import Settings


def work(settings: Settings, *, nice: int = 0) -> int:
    """Returns 0 after SIGTERM or Ctrl-C: running jobs end or are given back. `nice`: 0..19, as for the command."""
    os.nice(nice)
    logs.set_up(settings.log_level)
    garbage.look_rarely()
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(run_worker(settings))
    return 0


def _loop() -> asyncio.AbstractEventLoop:
    """The loop that the API runs on, where there is one: uvicorn brings uvloop, but not on every system."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
