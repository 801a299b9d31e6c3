"""`python -m service.jobs`: one worker process on the environment's settings."""

from __future__ import annotations

import asyncio
import os

from service.jobs.loop import run_worker
from service.settings import Settings

if __name__ == "__main__":
    asyncio.run(run_worker(Settings.from_env(os.environ)))
