"""How does one worker process run?"""

from __future__ import annotations

import asyncio

from service import logs
from service.jobs.loop import run_worker
from service.settings import Settings


def work(settings: Settings) -> int:
    """Returns 0 after SIGTERM or Ctrl-C: running jobs end or are given back."""
    logs.set_up(settings.log_level)
    asyncio.run(run_worker(settings))
    return 0
