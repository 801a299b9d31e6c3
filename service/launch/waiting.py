"""Waits until the database can be served: what an init container of Kubernetes does while a Job migrates."""

from __future__ import annotations

import asyncio
import time

from service.domain.errors import ServiceError
from service.kit.settings import Settings
from service.runtime.opening import preflight

PAUSE_S = 2.0


def wait_for_schema(settings: Settings, *, role: str, timeout_s: float) -> None:
    """Returns when a process of the role could start: the database answers, and has a schema that this version can
    serve. Prints what it waits for whenever that changes. After `timeout_s` it raises the error that the start would.
    """
    until, said = time.monotonic() + timeout_s, ""
    while True:
        try:
            asyncio.run(preflight(settings, role=role))
            return
        except ServiceError as exc:
            if time.monotonic() + PAUSE_S > until:
                raise
            if exc.detail != said:
                print(f"waiting: {exc.detail}", flush=True)
                said = exc.detail
        time.sleep(PAUSE_S)
