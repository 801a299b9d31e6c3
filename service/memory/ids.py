"""What is an id, to a caller?"""

from __future__ import annotations

from uuid import UUID

from service.errors import NotFound


def memory_id(text: str) -> UUID:
    """The id; NotFound for anything that is no UUID, because no memory has such an id (C13)."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("There is no memory with this id.", field="id") from None
