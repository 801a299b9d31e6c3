"""A stand-in for `python -m service`: the same commands, no database. What happens is written to $FAKE_LOG.

$FAKE_WORKER=dies makes the worker exit at once; $FAKE_API_STOP_S is how long the API drains.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import FrameType


def note(line: str) -> None:
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(line + "\n")


def on_stop(name: str, drain_s: float = 0.0) -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        time.sleep(drain_s)
        note(f"{name} stopped")
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)


def migrate() -> None:
    note("migrate " + os.environ["LOXODON_BOOTSTRAP_API_KEY"])


def worker() -> None:
    if os.environ.get("FAKE_WORKER") == "dies":
        sys.exit(3)
    on_stop("worker")
    note(f"worker {os.getpid()}")
    signal.pause()


def api(fd: int, gate: int) -> None:
    os.read(gate, 1)

    class PidHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            answer = "{}" if self.path == "/v1/health/details" else str(os.getpid())
            self.wfile.write(answer.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class names it)
            pass

    server = HTTPServer(("", 0), PidHandler, bind_and_activate=False)
    server.socket = socket.socket(fileno=fd)
    on_stop("API", float(os.environ.get("FAKE_API_STOP_S", "0")))
    note(f"API {os.getpid()} {'has' if 'LOXODON_BOOTSTRAP_API_KEY' in os.environ else 'has no'} key")
    server.serve_forever()


if __name__ == "__main__":
    command = sys.argv[1]
    if command == "api":
        api(*(int(sys.argv[sys.argv.index(name) + 1]) for name in ("--fd", "--gate")))
    else:
        {"migrate": migrate, "worker": worker}[command]()
