"""Opaque keyset cursors: the sort key of the last row of a page, so that pages never shift."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, TypeVar
from uuid import UUID

from annotated_types import Ge, Lt
from pydantic import AfterValidator, FiniteFloat, TypeAdapter

from service.domain import sizes
from service.domain.errors import InvalidInput
from service.domain.query import PageKey, SortOrder

T = TypeVar("T")


def cut(rows: Sequence[T], limit: int, *, share: int = 1) -> tuple[Sequence[T], T | None]:
    """The first `limit` rows, or as many as fit a page or the `share`th part of one; and the last of them if there are
    more."""
    size, count, most = 0, 0, sizes.PAGE_BYTES // share
    while count < min(limit, len(rows)) and size < most:
        size += sizes.weight(rows[count])
        count += 1
    return rows[:count], rows[count - 1] if count < len(rows) else None


def counts(cursor: str | None, lists: int = 1) -> Sequence[int]:
    """The number of rows of each list on previous pages; 0 without a cursor."""
    return [0] * lists if cursor is None else unpack(cursor, *[Count] * lists)


def cut_each(before: Sequence[int], limit: int, *lists: Sequence[Any]) -> tuple[list[Sequence[Any]], str | None]:
    """A page of each list, after the `before` rows that earlier pages had, and the next cursor if there is more."""
    pages = [cut(each, limit, share=len(lists)) for each in lists]
    read = (start + len(page) for start, (page, _) in zip(before, pages, strict=True))
    return [page for page, _ in pages], pack(*read) if any(last for _, last in pages) else None


def decode(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The time and id in a cursor of a list that is sorted by them."""
    return None if cursor is None else unpack(cursor, Moment, UUID)


def decode_key(cursor: str | None, order: SortOrder) -> PageKey | None:
    """The key in a cursor of a list of memories in any order; raises InvalidInput if it belongs to another one."""
    if cursor is None:
        return None
    sort, ascending, _, last = unpack(cursor, str, bool, str, UUID)
    if (sort, ascending) != (order.sort, order.ascending):
        raise InvalidInput("cursor: belongs to a list in another order.", field="cursor")
    _, _, value, _ = unpack(cursor, str, bool, FiniteFloat if sort == "importance" else Moment, UUID)
    return PageKey(value, last)


def pack(*key: object) -> str:
    """A cursor of these values. Only the last of them may be a text with bars."""
    return base64.urlsafe_b64encode("|".join(map(str, key)).encode()).decode().rstrip("=")


def unpack(cursor: str, *kinds: Any) -> tuple[Any, ...]:
    """The values in a cursor, of these types; raises InvalidInput for one that is not ours."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        if "\x00" in text:
            raise ValueError
        return _key(kinds).validate_python(text.split("|", len(kinds) - 1))
    except ValueError:
        raise InvalidInput("cursor: is invalid; pass next_cursor of the previous page.", field="cursor") from None


@cache
def _key(kinds: tuple[Any, ...]) -> TypeAdapter[tuple[Any, ...]]:
    return TypeAdapter(tuple[kinds])  # type: ignore[valid-type]


def _in_utc(moment: datetime) -> datetime:
    if moment.utcoffset() != timedelta():  # as `pack` writes them
        raise ValueError
    return moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc)]
Count = Annotated[int, Ge(0), Lt(2**31)]
Number = Annotated[int, Ge(0), Lt(2**63)]
