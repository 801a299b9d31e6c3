"""Opaque keyset cursors: the sort key of the last row of a page, so that pages never shift."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, TypeVar
from uuid import UUID

from annotated_types import Ge, Lt
from pydantic import AfterValidator, TypeAdapter

from service.domain import sizes
from service.domain.errors import InvalidInput

T = TypeVar("T")


def cut(rows: Sequence[T], limit: int, *, share: int = 1) -> tuple[Sequence[T], T | None]:
    """The first `limit` rows, or as many as fit a page or the `share`th part of one; and the last of them if there are
    more."""
    size, count, most = 0, 0, sizes.PAGE_BYTES // share
    while count < min(limit, len(rows)) and size < most:
        size += sizes.weight(rows[count])
        count += 1
    return rows[:count], rows[count - 1] if count < len(rows) else None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place in a list where a page begins; None: its beginning. `of_list` names the list, or is a digest of its
    path and filters: a cursor holds it, so that no other list takes it."""

    of_list: str
    text: str | None = None

    def key(self, *kinds: Any) -> tuple[Any, ...] | None:
        """The values in it, of these types; raises InvalidInput for a cursor of another list."""
        if self.text is None:
            return None
        if unpack(self.text, str, str)[0] != self.of_list:
            raise InvalidInput("cursor: belongs to another list, or to one with other filters.", field="cursor")
        return unpack(self.text, str, *kinds)[1:]

    def moment_and_id(self) -> tuple[datetime, UUID] | None:
        return self.key(Moment, UUID)

    def counts(self, lists: int = 1) -> Sequence[int]:
        """The number of rows of each list on previous pages."""
        return self.key(*[Count] * lists) or [0] * lists

    def cut(self, rows: Sequence[T], limit: int, *names: str) -> tuple[Sequence[T], str | None]:
        """A page of rows that are sorted by these attributes, and the next cursor if there is more."""
        page, last = cut(rows, limit)
        return page, self.pack(*(getattr(last, name) for name in names)) if last else None

    def cut_each(self, limit: int, *lists: Sequence[Any]) -> tuple[list[Sequence[Any]], str | None]:
        """A page of each list, after the rows that earlier pages had, and the next cursor if there is more."""
        pages = [cut(each, limit, share=len(lists)) for each in lists]
        read = (start + len(page) for start, (page, _) in zip(self.counts(len(lists)), pages, strict=True))
        return [page for page, _ in pages], self.pack(*read) if any(last for _, last in pages) else None

    def pack(self, *key: object) -> str:
        return pack(self.of_list, *key)


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
        raise InvalidInput("cursor: is invalid; pass the next_cursor of the previous page.", field="cursor") from None


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
