"""Where did the last page end? An opaque keyset cursor: time and id of the last row, so pages never shift."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from uuid import UUID

from service.db.memories.memories import PageKey, SortOrder, SortValue
from service.errors import InvalidInput

NOT_OURS = "cursor: is not one of ours; take next_cursor of the last page."


def encode(moment: datetime, last: UUID) -> str:
    return _packed(f"{moment.isoformat()}|{last}")


def encode_place(order: SortOrder, place: PageKey) -> str:
    """The same for a list in any order."""
    key = place.key.isoformat() if isinstance(place.key, datetime) else repr(place.key)
    return _packed(f"{order.sort}|{int(order.ascending)}|{key}|{place.id}")


def decode_place(cursor: str | None, order: SortOrder) -> PageKey | None:
    """The place behind a cursor; raises InvalidInput for one that is not ours, or of a list in another order."""
    if cursor is None:
        return None
    try:
        sort, ascending, key, last = _unpacked(cursor).split("|")
        if (sort, ascending) != (order.sort, str(int(order.ascending))):
            raise InvalidInput("cursor: comes from a list in another order.", field="cursor")
        value: SortValue = float(key) if sort == "importance" else datetime.fromisoformat(key)
        if isinstance(value, datetime) and value.tzinfo is None:
            raise ValueError
        return PageKey(value, UUID(last))
    except (ValueError, binascii.Error):
        raise InvalidInput(NOT_OURS, field="cursor") from None


def decode(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The key behind a cursor; raises InvalidInput for anything that we did not give out."""
    if cursor is None:
        return None
    try:
        moment, _, last = _unpacked(cursor).partition("|")
        found = datetime.fromisoformat(moment)
        if found.tzinfo is None:
            raise ValueError
        return found, UUID(last)
    except (ValueError, binascii.Error):
        raise InvalidInput(NOT_OURS, field="cursor") from None


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpacked(cursor: str) -> str:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
