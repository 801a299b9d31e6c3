"""How does one API process serve, on a socket of its own or on the supervisor's?

The supervisor starts it while the migrations still run and holds it at a gate, a pipe that is closed when the database
is ready: importing everything takes as long as the migrations.
"""

from __future__ import annotations

import importlib
import os
import socket
from typing import Any

import uvicorn

from service.launch import listener
from service.settings import Settings

MAIN = "service.main"
APP = f"{MAIN}:app_from_env"
DRAIN_MARGIN_S = 1  # a request at its deadline still answers


def serve(settings: Settings, *, fd: int | None = None, gate: int | None = None, reload: bool = False) -> int:
    """Returns the exit code when SIGTERM has been obeyed: running requests end, at most for their deadline."""
    if gate is not None:
        _wait_at(gate)
    options: dict[str, Any] = {
        "factory": True,
        "access_log": False,  # it would print ?q= and ?api_key= (B14)
        "log_config": None,  # ours is structlog, set up by the application
        "server_header": False,
        "timeout_graceful_shutdown": int(settings.request_deadline_s) + DRAIN_MARGIN_S,
    }
    if reload:
        where = {"fd": fd} if fd is not None else {"host": settings.host, "port": settings.port}
        uvicorn.run(APP, reload=True, reload_dirs=["service"], **where, **options)
        return 0
    door = socket.socket(fileno=fd) if fd is not None else listener.listen(settings.host, settings.port)
    server = uvicorn.Server(uvicorn.Config(APP, **options))
    server.run(sockets=[door])
    return 0 if server.started else 1


def _wait_at(gate: int) -> None:
    importlib.import_module(MAIN)
    os.read(gate, 1)  # returns at the end of the file: when the supervisor has closed its end
    os.close(gate)
