"""The listening TCP socket of the API, and where commands reach the service.

The supervisor binds it once and passes it to every API process it starts. So a busy port is reported before anything
runs, nobody can take the port during a restart, and clients that connect then wait instead of being refused.
"""

from __future__ import annotations

import errno
import socket
import time
from typing import TYPE_CHECKING

from service.kit.settings import Settings
from service.launch import data_dir
from service.launch.problems import LaunchError, PortBusy
from service.providers.endpoints import secret

if TYPE_CHECKING:
    from httpx2 import Headers

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
        made = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise LaunchError(f"LOXODON_HOST={host} is not an address of this machine: {exc.strerror}.") from exc
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as exc:
        made.close()
        raise _problem(exc, host, port) from exc
    return made


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


def service_url(settings: Settings) -> str:
    """LOXODON_URL, else the service on this machine; without a slash at its end."""
    if settings.client.url:
        return settings.client.url.rstrip("/")
    return reachable_url(settings.server.host, settings.server.port)


POSITION = "X-Loxodon-Position"


def note_position(sent: Headers, answered: Headers) -> None:
    """Keeps the greatest position that came with an answer among the headers that are sent, so that this process reads
    what it wrote from whatever server."""
    if POSITION in answered:
        sent[POSITION] = max(answered[POSITION], sent.get(POSITION, ""))


def service_key(settings: Settings) -> str | None:
    """LOXODON_API_KEY; on this machine else the first key, which opens everything and so goes nowhere else. Raises
    LaunchError where it cannot be read."""
    if settings.client.api_key is not None or settings.client.url:
        return secret(settings.client.api_key)
    given = secret(settings.server.bootstrap_api_key)
    return given or data_dir.read_first_key(settings.server.data_dir, secret(settings.database.url))
