"""Opaque keyset cursors: the sort key of the last row of a page, so that pages never shift."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from service.domain import sizes
from service.domain.errors import InvalidInput
from service.domain.query import PageKey, SortOrder, SortValue

T = TypeVar("T")


def cut(rows: Sequence[T], limit: int, *, share: int = 1) -> tuple[Sequence[T], T | None]:
    """The first `limit` rows, or as many as fit a page or the `share`th part of one; and the last of them if there are
    more."""
    size, count, most = 0, 0, sizes.PAGE_BYTES // share
    while count < min(limit, len(rows)) and size < most:
        size += sizes.weight(rows[count])
        count += 1
    return rows[:count], rows[count - 1] if count < len(rows) else None


def counts(cursor: str | None, lists: int = 1) -> list[int]:
    """The number of rows of each list on previous pages; 0 without a cursor."""

    def parse(text: str) -> list[int]:
        numbers = [int(each) for each in text.split("|")]
        if len(numbers) != lists or not all(0 <= number < 2**31 for number in numbers):
            raise ValueError
        return numbers

    return [0] * lists if cursor is None else unpack(cursor, parse)


def after_counts(*read: int) -> str:
    """A cursor of `counts`."""
    return pack("|".join(map(str, read)))


def cut_each(before: Sequence[int], limit: int, *lists: Sequence[Any]) -> tuple[list[Sequence[Any]], str | None]:
    """A page of each list, after the `before` rows that earlier pages had, and the next cursor if there is more."""
    pages = [cut(each, limit, share=len(lists)) for each in lists]
    read = (start + len(page) for start, (page, _) in zip(before, pages, strict=True))
    return [page for page, _ in pages], after_counts(*read) if any(last for _, last in pages) else None


def encode(moment: datetime, last: UUID) -> str:
    """A cursor for a list that is sorted by time and id."""
    return pack(f"{moment.isoformat()}|{last}")


def decode(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The time and id in a cursor; raises InvalidInput for one that is not ours."""
    return None if cursor is None else unpack(cursor, _moment_and_id)


def encode_key(order: SortOrder, key: PageKey) -> str:
    """A cursor for a list of memories in any order."""
    value = key.key.isoformat() if isinstance(key.key, datetime) else repr(key.key)
    return pack(f"{order.sort}|{int(order.ascending)}|{value}|{key.id}")


def decode_key(cursor: str | None, order: SortOrder) -> PageKey | None:
    """The key in a cursor; raises InvalidInput for one that is not ours or belongs to another order."""

    def parse(text: str) -> PageKey:
        sort, ascending, key, last = text.split("|")
        if (sort, ascending) != (order.sort, str(int(order.ascending))):
            raise InvalidInput("cursor: belongs to a list in another order.", field="cursor")
        value: SortValue = float(key) if sort == "importance" else aware(key)
        return PageKey(value, UUID(last))

    return None if cursor is None else unpack(cursor, parse)


def pack(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def unpack(cursor: str, parse: Callable[[str], T]) -> T:
    """Decodes a cursor with `parse`. Raises InvalidInput if it is not UTF-8 without NUL, or `parse` raises
    ValueError."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        if "\x00" in text:
            raise ValueError
        return parse(text)
    except ValueError:
        raise InvalidInput("cursor: is invalid; pass next_cursor of the previous page.", field="cursor") from None


def _moment_and_id(text: str) -> tuple[datetime, UUID]:
    moment, _, last = text.partition("|")
    return aware(moment), UUID(last)


def aware(text: str) -> datetime:
    """Parses an ISO time in UTC; raises ValueError for any other."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo != UTC:  # as `iso` writes them
        raise ValueError
    return moment
