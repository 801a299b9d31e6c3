"""The position that a process of ours sends to the service, so that it reads what it wrote from whatever server."""

from __future__ import annotations

from httpx2 import Headers

HEADER = "X-Loxodon-Position"


def note_position(sent: Headers, answered: Headers) -> None:
    """Keeps the greatest position that came with an answer among the headers that are sent."""
    if HEADER in answered:
        sent[HEADER] = max(answered[HEADER], sent.get(HEADER, ""))
