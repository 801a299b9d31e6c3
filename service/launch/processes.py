"""The long-running processes: one API process, one worker process."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import socket
import sys
from typing import Any

from service.kit import process
from service.kit.settings import Settings
from service.launch import listener
from service.observability import logs, tracing

MAIN = "service.app.main"
APP = f"{MAIN}:app_from_env"
HTTP = "service.launch.http_protocol:BoundedHttp"
DRAIN_MARGIN_S = 1  # a request at its deadline still answers
MAX_CONNECTIONS = 800
"""Connections with a request and a good key in one process; each costs some 50 kB, more get 503."""


def serve(settings: Settings, *, fd: int | None = None, gate: int | None = None) -> int:
    """Serves until SIGTERM; running requests may end, at most until their deadline. Returns the exit code.

    `fd`: the supervisor's listening socket; None binds one. `gate`: a pipe that the supervisor closes when the
    migrations are through. Until then the process only imports, which takes as long as the migrations. Raises a
    ServiceError when the database cannot be served.
    """
    import uvicorn  # the worker does without it

    from service.runtime.opening import preflight

    if gate is not None:
        _wait_at(gate)
    note = asyncio.run(preflight(settings))
    if note is not None:
        print(f"\nloxodon: {note}\n", file=sys.stderr, flush=True)
    options: dict[str, Any] = {
        "factory": True,
        "access_log": False,  # it would print ?q= and ?api_key=
        "log_config": None,  # ours is structlog, set up by the application
        "server_header": False,
        "http": HTTP,
        "ws": "none",
        "limit_concurrency": MAX_CONNECTIONS,
        "forwarded_allow_ips": settings.server.trusted_proxies,
        "timeout_graceful_shutdown": int(settings.server.request_deadline_s) + DRAIN_MARGIN_S,
    }
    address = settings.server.host, settings.server.port
    listening = socket.socket(fileno=fd) if fd is not None else listener.listen(*address)

    class DrainingServer(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            process.begin_shutdown()
            await super().shutdown(sockets)

    server = DrainingServer(uvicorn.Config(APP, **options))
    # uvicorn raises the signal again at its end, and what is registered with atexit has to run
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.run(sockets=[listening])
    return 0 if server.started else 1


def _wait_at(gate: int) -> None:
    importlib.import_module(MAIN)
    os.read(gate, 1)  # returns at end of file: when the supervisor has closed its end
    os.close(gate)


def work(settings: Settings, *, nice: int = 0) -> int:
    """Works until SIGTERM or Ctrl-C, then returns 0: running jobs end or are given back. `nice`: 0..19."""
    from service.worker.loop import run_worker

    os.nice(nice)
    logs.set_up(settings)
    tracing.set_up(os.environ, "worker")
    process.collect_garbage_rarely()
    try:
        with asyncio.Runner(loop_factory=_loop) as runner:
            runner.run(run_worker(settings))
    finally:
        tracing.shut_down()
    return 0


def _loop() -> asyncio.AbstractEventLoop:
    """uvloop, as in the API, where it is installed: uvicorn does not bring it on every system."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
