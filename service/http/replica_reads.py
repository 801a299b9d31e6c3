"""Reads from standbys: the position that a request brings and gets, and its repetition on the primary.

`X-Loxodon-Position` in the answer of a write is a place in the WAL, as 16 hexadecimal digits. A client sends the
greatest position that it received, which is also the greatest as text; its reads then see all that it wrote. Without
standbys no answer has a position, and none is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.postgres.engine import ReplicaFailed
from service.postgres.replicas import RequestPosition
from service.runtime.resources import Resources

HEADER = "X-Loxodon-Position"
NAME = HEADER.lower().encode()
DIGITS = re.compile(rb"[0-9A-F]{16}")


def begin(request: Request) -> None:
    """Gives the request its position, if there are standbys. An unknown position is served by the primary."""
    res: Resources = request.app.state.resources
    if res.replicas is None:
        return
    given = next((value for name, value in request.scope["headers"] if name == NAME), b"0" * 16)
    is_known = DIGITS.fullmatch(given) is not None
    request.state.position = RequestPosition(res.replicas, int(given, 16) if is_known else 0, stays=not is_known)


def position_of(scope: Scope) -> RequestPosition | None:
    """None without standbys."""
    position: RequestPosition | None = scope["state"].get("position")
    return position


def headers(scope: Scope) -> Sequence[tuple[bytes, bytes]]:
    """The header of the answer, after a commit."""
    position = position_of(scope)
    return [(NAME, b"%016X" % position.reached)] if position is not None and position.reached else []


async def run(app: ASGIApp, scope: Scope, receive: Callable[[], Receive], send: Send) -> None:
    """Runs a request; once more, on the primary, if a standby failed it. `receive`: gives the body from its start."""
    position, begun = position_of(scope), False

    async def watched(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive(), send if position is None else watched)
    except ReplicaFailed:
        if position is None or begun:
            raise
        position.stay()
        await app(scope, receive(), send)
