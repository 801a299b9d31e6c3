"""Where did the last page end? An opaque keyset cursor: time and id of the last row, so pages never shift."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from uuid import UUID

from service.errors import InvalidInput


def encode(moment: datetime, last: UUID) -> str:
    return base64.urlsafe_b64encode(f"{moment.isoformat()}|{last}".encode()).decode().rstrip("=")


def decode(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The key behind a cursor; raises InvalidInput for anything that we did not give out."""
    if cursor is None:
        return None
    try:
        moment, _, last = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition("|")
        found = datetime.fromisoformat(moment)
        if found.tzinfo is None:
            raise ValueError
        return found, UUID(last)
    except (ValueError, binascii.Error, UnicodeDecodeError):
        raise InvalidInput("cursor: is not one of ours; take next_cursor of the last page.", field="cursor") from None
