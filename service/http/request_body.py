"""Reads the body of a request, within limits of size and time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope

from service.domain.errors import BodyTooLarge, RequestTimeout

WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
GRACE_S = 5.0
"""Time that any body may take; longer ones must keep up the minimum rate."""

DRAINED_BYTES = 64_000
"""Unused bodies up to this size are read so that the connection can stay open."""

MAX_DRAINED_BYTES = 16_000_000
DRAINED_S = 2.0
"""Bytes of a rejected body that are read and discarded before closing the connection."""


def announced_bytes(scope: Scope) -> int | None:
    """The size of the body by its header; None for a chunked body."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
        if name == b"transfer-encoding":
            return None
    return 0


def may_be_long(scope: Scope) -> bool:
    """Whether the body may be too long to be read and discarded."""
    announced = announced_bytes(scope)
    return announced is None or announced > DRAINED_BYTES


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits of the size and duration of a body."""

    max_bytes: int
    max_s: float
    min_bytes_per_s: int

    async def read(self, receive: Receive) -> bytes:
        """The whole body; raises BodyTooLarge, or RequestTimeout for one that comes too slowly."""
        chunks: list[bytes] = []
        size = 0
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(self.max_s, GRACE_S)) as limit:
                while True:
                    message = await receive()
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    self.check(size)
                    chunks.append(chunk)
                    if not message.get("more_body", False):  # as in the message of a disconnected client
                        return b"".join(chunks)
                    limit.reschedule(began + min(self.max_s, GRACE_S + size / self.min_bytes_per_s))
        except TimeoutError:
            took_s = asyncio.get_running_loop().time() - began
            detail = f"Only {size} bytes of the body arrived within {took_s:.0f} s."
            raise RequestTimeout(detail, field="body") from None

    def check(self, size: int | None) -> None:
        """Raises BodyTooLarge; an unknown size passes."""
        if size is not None and size > self.max_bytes:
            raise BodyTooLarge(f"The body is larger than {self.max_bytes} bytes.", field="body")


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body already read, then what follows."""
    delivered = False

    async def again() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def drain(receive: Receive) -> None:
    """Reads and discards the body for a moment: closing a connection while the client still sends resets it, and the
    client may lose the response."""
    left = MAX_DRAINED_BYTES
    try:
        async with asyncio.timeout(DRAINED_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        pass
