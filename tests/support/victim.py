"""A worker process to be killed: `url kind behaviour folder [model_url]`. Each run of its one task leaves a file in
`folder`, but with the behaviour `real`: that is the service's own task of this kind, with the language model at
`model_url`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast
from uuid import uuid4

from bench.superuser import login_url
from service.domain.job import Job, JobName
from service.intake import deferred
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import WORKER
from service.providers.choose import open_llm
from service.queue.wakeup import Wakeup
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from service.worker import loop
from service.worker.loop import Worker
from service.worker.registry import TASKS, Task
from tests.conftest import DIMENSION
from tests.fakes.embedder import AngleEmbedder


async def main(url: str, kind: str, behaviour: str, folder: Path, model_url: str | None = None) -> None:
    async def run(job: Job, _res: Resources) -> None:
        (folder / f"{job.attempts}-{uuid4()}").touch()
        if behaviour == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep({"hang": 3600.0, "slow": 0.5}.get(behaviour, 0.0))
        (folder / f"end-{uuid4()}").touch()

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    access = await find_access(login_url(url, WORKER), wanted_role=WORKER, pooled=False)
    database = Database(access, pool_size=5, pool_timeout_s=5)
    loop.POLL_S, loop.LEASE_S, loop.BACKOFF_S = 0.1, 1.5, 0.05
    settings = Settings.of({"llm_base_url": model_url, "llm_api_key": "key" if model_url else None})
    embedder = CachedEmbedder(AngleEmbedder(DIMENSION), entries=0)
    res = Resources(database, embedder, 1, open_llm(settings), settings, Wakeup(url))
    deferred.QUIET = timedelta(0)
    name = cast(JobName, kind)
    task = replace(TASKS[name], interval_s=None, at_start=False) if behaviour == "real" else Task(run)
    await Worker(res, {name: task}).run(stop)
    await res.wakeup.close()
    await database.close()


if __name__ == "__main__":
    address, name, wanted, where, *model = sys.argv[1:]
    asyncio.run(main(address, name, wanted, Path(where), *model))
