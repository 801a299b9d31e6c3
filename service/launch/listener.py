"""The listening TCP socket of the API.

The supervisor binds it once and passes it to every API process it starts. So a busy port is reported before anything
runs, nobody can take the port during a restart, and clients that connect then wait instead of being refused.
"""

from __future__ import annotations

import errno
import socket
import time

from service.launch.problems import LaunchError, PortBusy

BACKLOG = 512
RETRY_S = 0.1


def listen(host: str, port: int, *, patience_s: float = 0.0) -> socket.socket:
    """A listening TCP socket. Raises PortBusy after `patience_s`, LaunchError for a host of another machine."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return _bind(host, port)
        except PortBusy:
            if time.monotonic() >= deadline:
                raise
            time.sleep(RETRY_S)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise LaunchError(f"LOXODON_HOST={host} is not an address of this machine: {exc.strerror}.") from exc
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as exc:
        listening.close()
        raise _problem(exc, host, port) from exc
    return listening


def _problem(exc: OSError, host: str, port: int) -> LaunchError:
    if exc.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65535 else 8080
        return PortBusy(
            f"Port {port} on {host} is taken by another program.\n"
            f"Stop that program, or choose another port, for example: LOXODON_PORT={other} make run"
        )
    if exc.errno == errno.EACCES:
        return LaunchError(f"You may not listen on port {port}. Choose one above 1023, e.g. LOXODON_PORT=8080.")
    return LaunchError(f"Cannot listen on {host}:{port}: {exc.strerror}. Set LOXODON_HOST and LOXODON_PORT.")


def reachable_url(host: str, port: int) -> str:
    """The URL under which this machine reaches the socket: a wildcard address becomes a loopback one."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 (not bound here)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
